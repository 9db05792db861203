package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/internal/kubeconfig"
	"github.com/fluxkit/flux/internal/printable"
	"github.com/fluxkit/flux/internal/redact"
	"github.com/fluxkit/flux/internal/ui"
)

// app is everything that a command may touch of the world around it. No
// other place reads the environment or the clock or knows the streams.
type app struct {
	in  io.Reader
	out io.Writer
	err io.Writer
	env func(string) string
	// lookupEnv tells an empty variable from one that is not set.
	lookupEnv func(string) (string, bool)
	// environ is the whole environment, for programs that run in place of flux.
	environ func() []string
	now     func() time.Time
	ui      *ui.Terminal

	// secrets are the credentials that the process knows: nothing prints them.
	secrets *redact.Set

	global globalFlags
	// settings is what is wrong with the environment and the configuration file.
	settings error
	cluster  func() (*kube.Client, error)
	// operation is the context that --timeout bounds, once there is one.
	operation *atomic.Pointer[context.Context]
	// kustomizers are the processes that run kustomize, by what they may fetch.
	kustomizers *kustomizers
	// blameTime bounds how long the cause of a failure is looked for.
	blameTime time.Duration
	// suggest returns a hint at the object that a name was meant to be.
	suggest func(*notFoundError) string
}

func newApp(in io.Reader, out, err io.Writer, env func(string) string, now func() time.Time) *app {
	secrets := &redact.Set{}
	masked := secrets.NewWriter(err)
	a := &app{
		in: in, out: secrets.NewWriter(out), err: masked, env: env, now: now, ui: ui.New(in, masked, env), secrets: secrets, blameTime: blameTime,
		kustomizers: &kustomizers{}, operation: &atomic.Pointer[context.Context]{},
	}
	a.ui.Mask(secrets.Text)
	a.lookupEnv = func(name string) (string, bool) { value := env(name); return value, value != "" }
	a.environ = func() []string { return nil }
	a.global.kube = kubeconfig.New(env)
	a.cluster = a.connectOnce()
	return a
}

// run executes one command line and returns the exit code.
func (a *app) run(ctx context.Context, args []string) int {
	defer a.flush()
	a.learnEnvironment()
	a.suggest = a.newSuggest(ctx)
	root := newRoot(a, args)
	if len(args) > 0 && strings.HasPrefix(args[0], cobra.ShellCompRequestCmd) {
		if a.completePlugin(ctx, root, args) {
			return exitDone
		}
		a.completeEveryFlag(root)
	} else if handled, err := a.runPlugin(ctx, root, args); handled {
		return a.exit(ctx, root, err)
	}
	root.SetArgs(args)
	root.SetIn(a.in)
	root.SetOut(a.out)
	root.SetErr(a.err)
	cmd, err := root.ExecuteContextC(ctx)
	err = errors.Join(err, a.kustomizers.close())
	return a.exit(ctx, cmd, err)
}

// connectOnce makes the client when a command first asks for it, so that
// commands that need no cluster never read a kubeconfig.
func (a *app) connectOnce() func() (*kube.Client, error) {
	var client *kube.Client
	return func() (*kube.Client, error) {
		if client != nil {
			return client, nil
		}
		if a.settings != nil {
			return nil, a.settings
		}
		cfg, err := a.restConfig()
		if err != nil {
			return nil, err
		}
		client, err = kube.New(cfg)
		return client, err
	}
}

func (a *app) restConfig() (*rest.Config, error) {
	cfg, err := a.global.kube.REST()
	if err != nil {
		return nil, &configError{err}
	}
	cfg.UserAgent = "flux/" + version
	a.learnCluster(cfg)
	cfg.WarningHandler = &warnings{say: a.ui.Warning, said: map[string]bool{}}
	return cfg, nil
}

// warnings shows what the API server warns of, each warning once.
type warnings struct {
	say  func(format string, args ...any)
	mu   sync.Mutex
	said map[string]bool
}

// HandleWarningHeader implements rest.WarningHandler; 299 is the only code that RFC 7234 leaves for this.
func (w *warnings) HandleWarningHeader(code int, _, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if code != 299 || text == "" || w.said[text] {
		return
	}
	w.said[text] = true
	w.say("%s", redact.Text(text))
}

// Notice implements kube.Notifier. Unlike a warning, what it tells may happen again.
func (w *warnings) Notice(text string) { w.say("%s", redact.Text(text)) }

// namespace is where objects are looked for: -n, else the context's where
// --ns-follows-kube-context asks for it, else FLUX_SYSTEM_NAMESPACE or flux-system.
func (a *app) namespace(cmd *cobra.Command) (string, error) {
	namespace := a.global.namespace
	if !cmd.Flags().Changed("namespace") && a.global.followContext {
		var err error
		if namespace, err = a.global.kube.Namespace(); err != nil {
			return "", &configError{err}
		}
	}
	if len(validation.IsDNS1123Label(namespace)) > 0 {
		return "", fmt.Errorf("invalid namespace %q: must be an RFC 1123 label: at most 63 lower-case letters, digits and '-'", namespace)
	}
	return namespace, nil
}

// place is the cluster and the namespace that a command line is about.
func (a *app) place(cmd *cobra.Command) (*kube.Client, string, error) {
	client, err := a.cluster()
	if err != nil {
		return nil, "", err
	}
	namespace, err := a.namespace(cmd)
	return client, namespace, err
}

// bounded gives an operation the time of --timeout. It is not for what lives
// until it is interrupted.
func (a *app) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeoutCause(ctx, a.global.timeout, &timeoutError{a.global.timeout})
	a.operation.Store(&ctx)
	return ctx, cancel
}

// printf writes a part of the answer to standard output. Texts among the
// arguments can control no terminal.
func (a *app) printf(format string, args ...any) error {
	return a.print(fmt.Sprintf(format, printable.Args(args)...))
}

// print writes text whose parts are fit to be printed, and which may be in colour.
func (a *app) print(text string) error {
	_, err := io.WriteString(a.out, text)
	return err
}

// document writes text for programs: every byte of it, except on a terminal.
func (a *app) document(text string) error {
	_, err := io.WriteString(a.answer(""), text)
	return err
}

// answer returns standard output for an -o format that prints values as they
// are. In JSON whatever could control a terminal is escaped, which does not
// change a value; other formats are for people only on a terminal.
func (a *app) answer(format string) io.Writer {
	switch {
	case format == "json" || strings.HasPrefix(format, "jsonpath-as-json="):
		return printable.NewJSONWriter(a.out)
	case ui.IsTerminal(a.out):
		return printable.NewWriter(a.out)
	default:
		return a.out
	}
}
