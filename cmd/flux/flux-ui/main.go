// Command flux-ui is the dashboard of flux. It is a separate program, because the libraries for terminal user
// interfaces would make flux larger and delay the start of every command. flux starts it with its own
// arguments; see `flux help ui`.
package main

import (
	"bytes"
	"cmp"
	"context"
	"os"
	"os/signal"
	"runtime/debug"
	"sync"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/klog/v2"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/clierr"
	"github.com/fluxkit/flux/cmd/flux/internal/ui/overview"
	"github.com/fluxkit/flux/cmd/flux/internal/ui/screen"
	"github.com/fluxkit/flux/internal/kube/transport"
)

// version is the version of this program, set by the build.
var version string

// notices buffers output that would disturb the screen, such as API server warnings, until the dashboard is
// closed.
type notices struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// garbage is the GC percentage. It limits the memory overhead of evaluations of a large cluster.
const garbage = 50

// noticesMax is the maximum size of the notices.
const noticesMax = 16 << 10

// Write implements io.Writer.
func (n *notices) Write(p []byte) (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.text.Len() < noticesMax {
		n.text.Write(p)
	}
	return len(p), nil
}

func main() {
	debug.SetGCPercent(garbage)
	os.Exit(start())
}

func start() int {
	klog.SetLogger(logr.Discard())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	said := &notices{}
	a := app.New(os.Stdin, os.Stdout, said, os.Getenv, time.Now)
	a.LookupEnv, a.Environ = os.LookupEnv, os.Environ
	a.Build.Version = cmp.Or(version, app.DevVersion)
	a.AddEnvironmentSecrets()
	root := &cobra.Command{Use: "flux", SilenceErrors: true, SilenceUsage: true, PersistentPreRun: func(cmd *cobra.Command, args []string) {
		a.AddFlagSecrets(cmd, args)
	}}
	a.Global.Add(root.PersistentFlags(), a.Env("FLUX_SYSTEM_NAMESPACE"))
	root.AddCommand(overview.NewCommand(a, func(cmd *cobra.Command, o overview.Options) error { return screen.Run(a, cmd, o, os.Stdout) }))
	err := root.ExecuteContext(ctx)
	code := clierr.ExitSuccess
	switch {
	case err != nil && ctx.Err() != nil:
		code = clierr.ExitInterrupted
	case err != nil:
		a.Report(err)
		code = clierr.ExitUndetermined
	}
	a.Flush()
	transport.EndCredentialPlugins()
	said.mu.Lock()
	defer said.mu.Unlock()
	_, _ = os.Stderr.Write(said.text.Bytes()) // the terminal may be closed
	return code
}
