// Package app provides commands with the streams, the clock, the environment, the API client and
// the terminal.
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

	"github.com/fluxkit/flux/cmd/flux/internal/cli/clierr"
	"github.com/fluxkit/flux/internal/ci"
	"github.com/fluxkit/flux/internal/helper"
	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/internal/kube/kubeconfig"
	"github.com/fluxkit/flux/internal/kube/objref"
	"github.com/fluxkit/flux/internal/secrets/redact"
	"github.com/fluxkit/flux/internal/terminal/output"
	"github.com/fluxkit/flux/internal/terminal/printable"
	"github.com/fluxkit/flux/internal/terminal/ui"
)

// App holds the dependencies of a command. Commands read the environment and
// the clock and write to the standard streams only through it, so that tests
// can replace them.
type App struct {
	In  io.Reader
	Out io.Writer
	Err io.Writer
	Env func(string) string
	// LookupEnv also reports whether the variable is set, as os.LookupEnv does.
	LookupEnv func(string) (string, bool)
	// Environ returns the environment for plugins, as os.Environ does.
	Environ func() []string
	Now     func() time.Time
	// LimitMemory lowers the memory limit of the garbage collector. The default does nothing, because the
	// limit applies to the whole process.
	LimitMemory func(bytes int64)
	// SaveMemory makes the garbage collector run more often, for commands that read all objects of a cluster and keep few. New
	// sets a function that does nothing.
	SaveMemory func()
	// Build identifies this program.
	Build Build
	// Commands lists the built-in commands, which take precedence over plugins.
	Commands []string
	UI       *ui.Terminal

	// Secrets is the set of known credentials, which are masked in all output.
	Secrets *redact.Set

	Global GlobalFlags
	// SettingsErr is the error from reading the environment and the configuration file.
	SettingsErr error
	Client      func() (*kube.Client, error)
	// operation is the context that --timeout bounds, nil before WithTimeout.
	operation *atomic.Pointer[context.Context]
	// unreachable contains the reported messages about unreachable clusters.
	unreachable *sync.Map
	// program writes machine-readable formats to standard output, see exact.
	program *redact.Writer
	// Helpers runs the helper processes.
	Helpers *helper.Pool
	// Deadline creates the context of WithTimeout. The default is context.WithTimeoutCause.
	Deadline func(ctx context.Context, timeout time.Duration, cause error) (context.Context, context.CancelFunc)
	// DiagnosisTimeout bounds the diagnosis of a failure.
	DiagnosisTimeout time.Duration
	// BriefTimeout bounds the requests for completions, hints and the name of the user, for which users should not wait.
	BriefTimeout time.Duration
	// Suggest returns a hint for an object that is not found, "" for none.
	Suggest func(*objref.NotFoundError) string
	// Context is the kubeconfig context of a Fork, "" for the one that the flags select.
	Context string
	// Merge receives the tables of a Fork. It is nil for other commands.
	Merge func(output.Table, TableStyle) error
}

// Build identifies a build by its version and, if known, by its Git commit and
// the commit's date in RFC 3339.
type Build struct{ Version, Commit, Date string }

// DevVersion is the version of builds that do not set one.
const DevVersion = "0.0.0-dev"

// New returns an App with these streams, environment and clock.
func New(in io.Reader, out, err io.Writer, env func(string) string, now func() time.Time) *App {
	return newApp(in, out, err, env, now, &redact.Set{})
}

// Fork returns an App for a command on one of several clusters. The command runs with the kubeconfig context, without
// input, and its tables are passed to merge.
func Fork(a *App, context string, out, err io.Writer, merge func(output.Table, TableStyle) error) *App {
	fork := newApp(strings.NewReader(""), out, err, a.Env, a.Now, a.Secrets)
	fork.LookupEnv, fork.Environ, fork.LimitMemory, fork.SaveMemory = a.LookupEnv, a.Environ, a.LimitMemory, a.SaveMemory
	fork.Build, fork.Deadline, fork.DiagnosisTimeout, fork.BriefTimeout = a.Build, a.Deadline, a.DiagnosisTimeout, a.BriefTimeout
	fork.Context, fork.Merge = context, merge
	return fork
}

// ClientIn returns the client of another kubeconfig context.
func ClientIn(a *App, context string) (*kube.Client, error) {
	fork := Fork(a, context, a.Out, a.Err, nil)
	fork.Global.Kube = a.Global.Kube.InContext(context)
	return fork.Client()
}

func newApp(in io.Reader, out, err io.Writer, env func(string) string, now func() time.Time, secrets *redact.Set) *App {
	inPipeline := ci.Detected(env)
	if inPipeline {
		out, err = printable.NewCommandWriter(out), printable.NewCommandWriter(err)
	}
	masked := secrets.NewWriter(err)
	a := &App{
		In: in, Out: secrets.NewWriter(out), Err: masked, Env: env, Now: now, UI: ui.New(in, masked, env), Secrets: secrets, Deadline: context.WithTimeoutCause, DiagnosisTimeout: diagnosisTimeout, BriefTimeout: briefTimeout, LimitMemory: func(int64) {}, SaveMemory: func() {}, Build: Build{Version: DevVersion},
		operation: &atomic.Pointer[context.Context]{}, unreachable: &sync.Map{},
	}
	a.UI.Mask(secrets.Text)
	a.UI.Prefix = inPipeline
	a.LookupEnv = func(name string) (string, bool) { value := env(name); return value, value != "" }
	a.Environ = func() []string { return nil }
	a.Helpers = &helper.Pool{
		LookupEnv: func(name string) (string, bool) { return a.LookupEnv(name) },
		Environ:   func() []string { return a.Environ() },
		Warn:      func(text string) { a.UI.Warning("%s", text) },
	}
	a.Global.Kube = kubeconfig.New(env)
	a.Client = a.connectOnce()
	return a
}

// connectOnce returns a function that creates the client on its first call, so
// that commands without a cluster do not read the kubeconfig.
func (a *App) connectOnce() func() (*kube.Client, error) {
	var client *kube.Client
	return func() (*kube.Client, error) {
		if client != nil {
			return client, nil
		}
		if a.SettingsErr != nil {
			return nil, a.SettingsErr
		}
		cfg, err := a.RESTConfig()
		if err != nil {
			return nil, err
		}
		a.Now = a.Global.Kube.Clock(a.Now)
		client, err = kube.New(cfg)
		return client, err
	}
}

// RESTConfig returns the client configuration for the selected cluster.
func (a *App) RESTConfig() (*rest.Config, error) {
	cfg, err := a.Global.Kube.REST()
	if err != nil {
		return nil, &clierr.ConfigError{Err: err}
	}
	cfg.UserAgent = "flux/" + a.Build.Version
	a.addClusterSecrets(cfg)
	cfg.WarningHandler = &warnings{warn: a.UI.Warning, printed: map[string]bool{}}
	return cfg, nil
}

// warnings prints each warning of the API server once.
type warnings struct {
	warn    func(format string, args ...any)
	mu      sync.Mutex
	printed map[string]bool
}

// HandleWarningHeader implements rest.WarningHandler. The API server sends only
// code 299 of RFC 7234.
func (w *warnings) HandleWarningHeader(code int, _, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if code != 299 || text == "" || w.printed[text] {
		return
	}
	w.printed[text] = true
	w.warn("%s", redact.Text(text))
}

// Notice implements transport.Notifier. Repeated notices are printed again, because each one reports
// a new occurrence.
func (w *warnings) Notice(text string) { w.warn("%s", redact.Text(text)) }

// Namespace returns the namespace of a command: --namespace, or the namespace of
// the kubeconfig context with --ns-follows-kube-context, or
// FLUX_SYSTEM_NAMESPACE, or flux-system.
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

// Connect returns the client and the namespace of a command.
func (a *App) Connect(cmd *cobra.Command) (*kube.Client, string, error) {
	client, err := a.Client()
	if err != nil {
		return nil, "", err
	}
	namespace, err := a.Namespace(cmd)
	return client, namespace, err
}

// WithTimeout returns a context that --timeout bounds. Commands that run until
// they are interrupted do not use it.
func (a *App) WithTimeout(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := a.Deadline(ctx, a.Global.Timeout, &clierr.TimeoutError{After: a.Global.Timeout})
	a.operation.Store(&ctx)
	return ctx, cancel
}

// Printf formats to standard output. It escapes terminal control sequences in
// the arguments.
func (a *App) Printf(format string, args ...any) error {
	return a.Print(fmt.Sprintf(format, printable.Args(args)...))
}

// Print writes text to standard output unchanged. The caller escapes terminal
// control sequences of untrusted parts; the text may contain colors.
func (a *App) Print(text string) error {
	_, err := io.WriteString(a.Out, text)
	return err
}

// Document writes a machine-readable document to standard output, unchanged unless it is a
// terminal.
func (a *App) Document(text string) error {
	_, err := io.WriteString(a.Output(""), text)
	return err
}

// People is the -o format for text that users read.
const People = "human"

// Output returns the writer of standard output for an -o format. JSON output escapes terminal
// control characters in strings, which preserves the values; other formats escape them only on a
// terminal. In a CI system, workflow commands in human-readable text are escaped.
func (a *App) Output(format string) io.Writer {
	w := a.Out
	if format != People {
		w = exact(a)
	}
	switch {
	case format == "json" || strings.HasPrefix(format, "jsonpath-as-json="):
		return printable.NewJSONWriter(w)
	case ui.IsTerminal(w):
		return printable.NewWriter(w)
	default:
		return w
	}
}

// WriteText writes human-readable text to standard output. Control characters are escaped on a
// terminal.
func WriteText(a *App, text string) error {
	_, err := io.WriteString(a.Output(People), text)
	return err
}

// exact returns standard output for machine-readable formats: only credentials are replaced, and
// workflow commands of CI systems are not escaped.
func exact(a *App) io.Writer {
	masked, ok := a.Out.(*redact.Writer)
	if !ok {
		return a.Out
	}
	commands, ok := masked.Unwrap().(*printable.CommandWriter)
	if !ok {
		return a.Out
	}
	if a.program == nil {
		a.program = a.Secrets.NewWriter(commands.Unwrap())
	}
	a.Flush() // human-readable text comes first
	return a.program
}

// FluxNamespace returns the default namespace of the controllers.
func (a *App) FluxNamespace() string {
	if namespace := a.Env("FLUX_SYSTEM_NAMESPACE"); namespace != "" {
		return namespace
	}
	return DefaultNamespace
}
