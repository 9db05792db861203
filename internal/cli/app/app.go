// Package app has what a command gets: the streams, the clock, the environment,
// the cluster and the terminal.
package app

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"

	"github.com/fluxkit/flux/internal/cli/clierr"
	"github.com/fluxkit/flux/internal/cli/objref"
	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/internal/kubeconfig"
	"github.com/fluxkit/flux/internal/printable"
	"github.com/fluxkit/flux/internal/redact"
	"github.com/fluxkit/flux/internal/ui"
)

// App is everything that a command may touch of the world around it. No
// other place reads the environment or the clock or knows the streams.
type App struct {
	In  io.Reader
	Out io.Writer
	Err io.Writer
	Env func(string) string
	// LookupEnv tells an empty variable from one that is not set.
	LookupEnv func(string) (string, bool)
	// Environ is the whole environment, for programs that run in place of flux.
	Environ func() []string
	Now     func() time.Time
	// Build identifies this program.
	Build Build
	// Commands are the names of the built-in commands, which no plugin can have.
	Commands []string
	UI       *ui.Terminal

	// Secrets are the credentials that the process knows: nothing prints them.
	Secrets *redact.Set

	Global GlobalFlags
	// Settings is what is wrong with the environment and the configuration file.
	Settings error
	Client   func() (*kube.Client, error)
	// operation is the context that --timeout bounds, once there is one.
	operation *atomic.Pointer[context.Context]
	// Kustomizers are the processes that run kustomize, by what they may fetch.
	Kustomizers *Kustomizers
	// DiagnosisTimeout bounds how long the cause of a failure is looked for.
	DiagnosisTimeout time.Duration
	// Suggest returns a hint at the object that a name was meant to be.
	Suggest func(*objref.NotFoundError) string
}

// Build identifies a build: its version and, where they are known, the Git
// commit that it was built from and the time of this commit in RFC 3339.
type Build struct{ Version, Commit, Date string }

// DevVersion is the version of a program that was built without one.
const DevVersion = "0.0.0-dev"

// New returns an App with these streams, environment and clock.
func New(in io.Reader, out, err io.Writer, env func(string) string, now func() time.Time) *App {
	secrets := &redact.Set{}
	masked := secrets.NewWriter(err)
	a := &App{
		In: in, Out: secrets.NewWriter(out), Err: masked, Env: env, Now: now, UI: ui.New(in, masked, env), Secrets: secrets, DiagnosisTimeout: diagnosisTimeout, Build: Build{Version: DevVersion},
		Kustomizers: &Kustomizers{}, operation: &atomic.Pointer[context.Context]{},
	}
	a.UI.Mask(secrets.Text)
	a.LookupEnv = func(name string) (string, bool) { value := env(name); return value, value != "" }
	a.Environ = func() []string { return nil }
	a.Global.Kube = kubeconfig.New(env)
	a.Client = a.connectOnce()
	return a
}

// connectOnce makes the client when a command first asks for it, so that
// commands that need no cluster never read a kubeconfig.
func (a *App) connectOnce() func() (*kube.Client, error) {
	var client *kube.Client
	return func() (*kube.Client, error) {
		if client != nil {
			return client, nil
		}
		if a.Settings != nil {
			return nil, a.Settings
		}
		cfg, err := a.RESTConfig()
		if err != nil {
			return nil, err
		}
		client, err = kube.New(cfg)
		return client, err
	}
}

// RESTConfig returns the configuration of the client for the chosen cluster.
func (a *App) RESTConfig() (*rest.Config, error) {
	cfg, err := a.Global.Kube.REST()
	if err != nil {
		return nil, &clierr.ConfigError{Err: err}
	}
	cfg.UserAgent = "flux/" + a.Build.Version
	a.learnCluster(cfg)
	cfg.WarningHandler = &warnings{say: a.UI.Warning, said: map[string]bool{}}
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

// Namespace is where objects are looked for: -n, else the context's where
// --ns-follows-kube-context asks for it, else FLUX_SYSTEM_NAMESPACE or flux-system.
func (a *App) Namespace(cmd *cobra.Command) (string, error) {
	namespace := a.Global.Namespace
	if !cmd.Flags().Changed("namespace") && a.Global.followContext {
		var err error
		if namespace, err = a.Global.Kube.Namespace(); err != nil {
			return "", &clierr.ConfigError{Err: err}
		}
	}
	if len(validation.IsDNS1123Label(namespace)) > 0 {
		return "", fmt.Errorf("invalid namespace %q: must be an RFC 1123 label: at most 63 lower-case letters, digits and '-'", namespace)
	}
	return namespace, nil
}

// Connect is the cluster and the namespace that a command line is about.
func (a *App) Connect(cmd *cobra.Command) (*kube.Client, string, error) {
	client, err := a.Client()
	if err != nil {
		return nil, "", err
	}
	namespace, err := a.Namespace(cmd)
	return client, namespace, err
}

// WithTimeout gives an operation the time of --timeout. It is not for what lives
// until it is interrupted.
func (a *App) WithTimeout(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeoutCause(ctx, a.Global.Timeout, &clierr.TimeoutError{After: a.Global.Timeout})
	a.operation.Store(&ctx)
	return ctx, cancel
}

// Printf writes a part of the answer to standard output. Texts among the
// arguments can control no terminal.
func (a *App) Printf(format string, args ...any) error {
	return a.Print(fmt.Sprintf(format, printable.Args(args)...))
}

// Print writes text whose parts are fit to be printed, and which may be in colour.
func (a *App) Print(text string) error {
	_, err := io.WriteString(a.Out, text)
	return err
}

// Document writes text for programs: every byte of it, except on a terminal.
func (a *App) Document(text string) error {
	_, err := io.WriteString(a.Answer(""), text)
	return err
}

// Answer returns standard output for an -o format that prints values as they
// are. In JSON whatever could control a terminal is escaped, which does not
// change a value; other formats are for people only on a terminal.
func (a *App) Answer(format string) io.Writer {
	switch {
	case format == "json" || strings.HasPrefix(format, "jsonpath-as-json="):
		return printable.NewJSONWriter(a.Out)
	case ui.IsTerminal(a.Out):
		return printable.NewWriter(a.Out)
	default:
		return a.Out
	}
}

// FluxNamespace is where the controllers are unless a flag says otherwise.
func (a *App) FluxNamespace() string {
	if namespace := a.Env("FLUX_SYSTEM_NAMESPACE"); namespace != "" {
		return namespace
	}
	return DefaultNamespace
}
