package plugin

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/clierr"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/command"
	"github.com/fluxkit/flux/internal/config"
	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/internal/kube/kubeconfig"
	"github.com/fluxkit/flux/internal/plugin"
)

// pluginLine is a command line that runs a plugin.
type pluginLine struct {
	plugin plugin.Plugin
	// before contains the flags before the name, after contains the arguments of the plugin.
	before, after []string
}

// Run runs the plugin that a command line specifies. It returns false if there is no plugin. It
// does not search for plugins if the first word is a built-in command.
func Run(ctx context.Context, a *app.App, root *cobra.Command, args []string) (handled bool, err error) {
	line, word, ok := parsePluginLine(a, root, args)
	if !ok {
		if word == "" {
			return false, nil
		}
		AddCommands(ctx, a, root)
		return true, command.NoSubcommand(root, []string{word})
	}
	env, err := pluginEnvironment(a, root, line)
	if err != nil {
		return true, err
	}
	code, err := plugin.Run(plugin.Process{
		Path: line.plugin.Path, Args: line.after, Env: env,
		In: a.In, Out: app.Unmasked(a.Out), Err: app.Unmasked(a.Err),
	})
	switch {
	case err != nil:
		err = hint.Errorf(fmt.Sprintf("check that the file is built for %s/%s, or begins with #! if it is a script", runtime.GOOS, runtime.GOARCH), "%w", err)
	case code != 0:
		err = &clierr.ExitCodeError{Code: code}
	}
	return true, err
}

// parsePluginLine returns the plugin that a command line specifies. If there is none, word is the first
// word, unless that is a command.
func parsePluginLine(a *app.App, root *cobra.Command, args []string) (line pluginLine, word string, ok bool) {
	i := firstWord(root.PersistentFlags(), args)
	if i == len(args) || slices.ContainsFunc(args[:i], isHelpOrVersion) {
		return line, "", false
	}
	before, word, after := args[:i], args[i], args[i+1:]
	if word == "help" && len(after) == 1 && !ReservedCommand(a, after[0]) {
		p, ok := installed(a).Find(after[0])
		return pluginLine{p, before, []string{"--help"}}, "", ok
	}
	if ReservedCommand(a, word) {
		return line, "", false
	}
	p, ok := installed(a).Find(word)
	return pluginLine{p, before, after}, word, ok
}

func isHelpOrVersion(arg string) bool {
	return arg == "-h" || arg == "--help" || arg == "-v" || arg == "--version"
}

// firstWord returns the index of the first argument that is neither a flag nor
// the value of one, or the number of arguments.
func firstWord(flags *pflag.FlagSet, args []string) int {
	for i := 0; i < len(args); i++ {
		switch arg := args[i]; {
		case arg == "--":
			return len(args)
		case strings.HasPrefix(arg, "--"):
			name, _, assigned := strings.Cut(arg[2:], "=")
			if f := flags.Lookup(name); !assigned && f != nil && f.NoOptDefVal == "" {
				i++
			}
		case len(arg) == 2 && arg[0] == '-':
			if f := flags.ShorthandLookup(arg[1:]); f != nil && f.NoOptDefVal == "" {
				i++
			}
		case len(arg) > 1 && arg[0] == '-':
		default:
			return i
		}
	}
	return len(args)
}

// forwardedFlags are the flags that may precede a plugin's name: they can be
// passed in its environment.
func forwardedFlags() []string { return []string{"kubeconfig", "context", "namespace", "cache-dir"} }

// pluginEnvironment returns the environment of a plugin: the environment of this
// process, with the flags before the plugin's name.
func pluginEnvironment(a *app.App, root *cobra.Command, line pluginLine) ([]string, error) {
	flags := root.PersistentFlags()
	if err := root.ParseFlags(line.before); err != nil {
		return nil, err
	}
	var refused error
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Changed && !slices.Contains(forwardedFlags(), f.Name) && refused == nil {
			refused = hint.Errorf("pass the plugin's own flags after its name: flux "+line.plugin.Name+" …", "--%s cannot be forwarded to the plugin %q", f.Name, line.plugin.Name)
		}
	})
	if refused != nil {
		return nil, refused
	}
	explicit := flags.Changed("context") || flags.Changed("namespace")
	if err := config.Apply(flags, a.Env); err != nil {
		return nil, err
	}
	return forward(a, flags, explicit)
}

// forward returns the environment with the selected cluster and namespace. No variable selects a
// context, so KUBECONFIG starts with a file that does. Without a kubeconfig, no context can be
// selected: this is an error for explicit flags, but not for settings, which would make all plugins
// fail.
func forward(a *app.App, flags *pflag.FlagSet, explicit bool) ([]string, error) {
	env := a.Environ()
	// If the plugin runs flux, these variables take precedence over the kubeconfig.
	for _, name := range []string{"context", "namespace"} {
		if f := flags.Lookup(name); f.Changed {
			env = setVariable(env, "FLUX_"+strings.ToUpper(name), f.Value.String())
		}
	}
	if f := flags.Lookup("kubeconfig"); f.Changed {
		env = setVariable(env, "KUBECONFIG", f.Value.String())
	}
	namespace := ""
	if flags.Changed("namespace") {
		namespace = a.Global.Namespace
	}
	if !flags.Changed("context") && namespace == "" {
		return env, nil
	}
	overlay, files, err := a.Global.Kube.Overlay(namespace)
	if errors.Is(err, kubeconfig.ErrNoContext) && !explicit {
		return env, nil
	}
	if err != nil {
		return nil, &clierr.ConfigError{Err: err}
	}
	path, err := writeOverlay(a, flags.Lookup("cache-dir").Value.String(), overlay)
	if err != nil {
		return nil, hint.Errorf("make the directory writable, or choose the context with 'kubectl config use-context'", "forwarding the context to the plugin: %w", err)
	}
	return setVariable(env, "KUBECONFIG", strings.Join(append([]string{path}, files...), string(os.PathListSeparator))), nil
}

// writeOverlay writes a kubeconfig that selects a context to the cache, under a
// name derived from its content: the plugin may run longer than flux.
func writeOverlay(a *app.App, cache string, content []byte) (string, error) {
	folder, err := filepath.Abs(filepath.Join(os.Expand(cache, func(name string) string { return expand(a, name) }), "flux"))
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(content)
	path := filepath.Join(folder, "context-"+hex.EncodeToString(sum[:8])+".yaml")
	if there, err := os.ReadFile(path); err == nil && string(there) == string(content) {
		return path, nil
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return "", err
	}
	file, err := os.CreateTemp(folder, "context-")
	if err != nil {
		return "", err
	}
	defer os.Remove(file.Name()) //nolint:errcheck // after the rename there is nothing to remove
	if _, err = file.Write(content); err != nil {
		_ = file.Close() // the write error is more specific
		return "", err
	}
	if err := file.Close(); err != nil {
		return "", err
	}
	return path, os.Rename(file.Name(), path)
}

// expand returns the value of a variable in a path.
func expand(a *app.App, name string) string {
	if name == "HOME" {
		return config.Home(a.Env)
	}
	return a.Env(name)
}

func setVariable(env []string, name, value string) []string {
	env = slices.DeleteFunc(slices.Clone(env), func(entry string) bool { return strings.HasPrefix(entry, name+"=") })
	return append(env, name+"="+value)
}

// AddCommands adds the plugins to the root command, for help, completion and
// suggestions.
func AddCommands(ctx context.Context, a *app.App, root *cobra.Command) {
	ctx, cancel := context.WithTimeout(ctx, a.BriefTimeout)
	defer cancel()
	plugins, _ := installed(a).All(ctx)
	if len(plugins) == 0 {
		return
	}
	const group = "plugins"
	root.AddGroup(&cobra.Group{ID: group, Title: "Plugin Commands:"})
	for _, p := range plugins {
		root.AddCommand(&cobra.Command{
			Use: p.Name, Short: "Run the " + p.Name + " plugin", GroupID: group,
			DisableFlagParsing: true, Run: func(*cobra.Command, []string) {},
		})
	}
}

// Complete completes a plugin's name or arguments. It returns false for built-in commands. Plugins
// in the plugin directory complete their own arguments; other programs on PATH must not run unless
// the user runs them.
func Complete(ctx context.Context, a *app.App, root *cobra.Command, args []string) bool {
	if len(args) < 2 {
		return false
	}
	words := args[1 : len(args)-1]
	if firstWord(root.PersistentFlags(), words) == len(words) {
		AddCommands(ctx, a, root)
		return false
	}
	line, _, ok := parsePluginLine(a, root, words)
	if !ok {
		return false
	}
	answer := fmt.Sprintf(":%d\n", cobra.ShellCompDirectiveError)
	if filepath.Dir(line.plugin.Path) == pluginDirectory(a) {
		if env, err := pluginEnvironment(a, root, line); err == nil {
			ctx, cancel := context.WithTimeout(ctx, a.BriefTimeout)
			defer cancel()
			after := append(slices.Clone(line.after), args[len(args)-1])
			if text, ok := plugin.Complete(ctx, line.plugin.Path, args[0], after, env); ok {
				answer = text
			}
		}
	}
	_, _ = a.Out.Write([]byte(answer)) // fails only if the shell has exited
	return true
}
