package app

import (
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"

	"github.com/fluxkit/flux/internal/secrets/redact"
	"github.com/fluxkit/flux/internal/terminal/printable"
)

// credentialCommands lists the commands that print credentials on standard
// output, with the reason. Their standard error is masked as usual.
var credentialCommands = map[string]string{
	"flux create secret":       "--export prints the Secret, to be encrypted and committed",
	"flux create source":       "--export prints the Secret of --username and --password",
	"flux export source":       "--with-credentials prints the Secrets of sources",
	"flux build":               "prints what is applied; --show-secrets prints the values of Secrets",
	"flux envsubst":            "prints the values of variables",
	"flux debug kustomization": "--show-secrets prints variables that come from Secrets",
	"flux debug helmrelease":   "prints the values of a release",
}

// PrintsCredentials reports whether a command prints credentials to standard output on purpose.
func PrintsCredentials(cmd *cobra.Command) bool {
	for path := range credentialCommands {
		if cmd != nil && (cmd.CommandPath() == path || strings.HasPrefix(cmd.CommandPath(), path+" ")) {
			return true
		}
	}
	return false
}

// AddEnvironmentSecrets adds the credentials of the environment to a.Secrets.
func (a *App) AddEnvironmentSecrets() {
	for _, variable := range a.Environ() {
		name, value, _ := strings.Cut(variable, "=")
		switch {
		case strings.Contains(value, "://"):
			a.Secrets.AddURL(value)
		case redact.Named(name) && !strings.HasPrefix(value, "/") && name != "AZURE_TOKEN_CREDENTIALS": // it names types
			a.Secrets.Add(value)
		}
	}
	for line := range strings.Lines(a.Env("SOPS_AGE_KEY")) {
		a.Secrets.Add(line)
	}
}

// AddFlagSecrets adds the credentials of a command line to a.Secrets.
func (a *App) AddFlagSecrets(cmd *cobra.Command, args []string) {
	cmd.Flags().Visit(func(f *pflag.Flag) {
		values := []string{f.Value.String()}
		if list, ok := f.Value.(pflag.SliceValue); ok {
			values = list.GetSlice()
		}
		for _, value := range values {
			_, part, _ := strings.Cut(value, "=") // of key=value
			a.Secrets.AddURL(value)
			a.Secrets.AddURL(part)
			switch {
			case f.Name == "creds":
				user, password, both := strings.Cut(value, ":")
				if !both {
					password = user
				}
				a.Secrets.AddLogin(user, password)
				a.Secrets.Add(value)
			case f.Value.Type() == "bool", strings.HasSuffix(f.Name, "secret"): // the name of a Secret
			case redact.Named(f.Name):
				a.Secrets.Add(value)
			}
		}
	})
	for _, arg := range args {
		a.Secrets.AddURL(arg)
	}
}

// addClusterSecrets adds the credentials in a kubeconfig to a.Secrets. The credentials of an exec
// plugin are added when a request uses them.
func (a *App) addClusterSecrets(cfg *rest.Config) {
	a.Secrets.Add(cfg.BearerToken, string(cfg.KeyData))
	a.Secrets.AddLogin(cfg.Username, cfg.Password)
	for _, file := range []string{cfg.BearerTokenFile, cfg.KeyFile} {
		if text, err := os.ReadFile(file); err == nil { // the client reports the error
			a.Secrets.Add(string(text))
		}
	}
	if cfg.ExecProvider != nil {
		for _, variable := range cfg.ExecProvider.Env {
			if redact.Named(variable.Name) {
				a.Secrets.Add(variable.Value)
			}
		}
	}
	a.Secrets.AddURL(cfg.Host)
	cfg.Wrap(a.Secrets.Transport)
}

// Flush writes buffered output. The writers hold back text that may be the start of a secret or of a workflow
// command of a CI system.
func (a *App) Flush() {
	for _, w := range []io.Writer{a.Out, a.Err} {
		for w != nil {
			if held, ok := w.(interface{ Flush() error }); ok {
				_ = held.Flush() // standard error is closed as well
			}
			wrapper, ok := w.(interface{ Unwrap() io.Writer })
			if !ok {
				break
			}
			w = wrapper.Unwrap()
		}
	}
	if a.program != nil {
		_ = a.program.Flush()
	}
}

// Unmasked returns the stream that neither masks credentials nor escapes workflow commands, for
// plugins and for output that contains credentials on purpose.
func Unmasked(w io.Writer) io.Writer {
	masked, ok := w.(*redact.Writer)
	if !ok {
		return w
	}
	if commands, ok := masked.Unwrap().(*printable.CommandWriter); ok {
		return commands.Unwrap()
	}
	return masked.Unwrap()
}
