// Command flux installs Flux on a Kubernetes cluster from a Git repository, and
// inspects and operates it.
package main

import (
	"cmp"
	"context"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/clierr"
	"github.com/fluxkit/flux/cmd/flux/internal/root"
	"github.com/fluxkit/flux/internal/kube/transport"
)

// memory is the soft memory limit: near it, the garbage collector trades CPU time for memory,
// whatever the input is. GOMEMLIMIT overrides it.
const memory = 768 << 20

// The version, Git commit and commit time of this program, set by the build. The Flux version that
// it installs is controllers.DefaultVersion.
var version, commit, date string //nolint:gochecknoglobals // the linker needs variables

func main() {
	if _, set := os.LookupEnv("GOMEMLIMIT"); !set {
		debug.SetMemoryLimit(memory)
	}
	collectLater()
	os.Exit(start(time.Now))
}

// collectLater lets the heap grow to 16 MiB before the first garbage collection. The default of 4
// MiB is reached while the command line is parsed, and most commands finish before they need a
// collection. After the first collection, the default pace applies.
func collectLater() {
	usual := debug.SetGCPercent(400)
	runtime.AddCleanup(new(*byte), func(percent int) { debug.SetGCPercent(percent) }, usual)
}

// limitMemory lowers the memory limit.
func limitMemory(bytes int64) {
	if debug.SetMemoryLimit(-1) > bytes {
		debug.SetMemoryLimit(bytes)
	}
}

// start runs the command line of the process and returns the exit code.
func start(now func() time.Time) int {
	// Kubernetes client logs duplicate errors, which flux prints with better messages.
	klog.SetLogger(logr.Discard())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second interrupt ends the process immediately
	// A second SIGTERM does not, so that temporary files and sandboxes are removed: the program timeout,
	// for example, sends two.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGTERM)
	a := app.New(os.Stdin, os.Stdout, os.Stderr, os.Getenv, now)
	a.LookupEnv = os.LookupEnv
	a.Environ = os.Environ
	a.LimitMemory = limitMemory
	a.Build = app.Build{Version: cmp.Or(version, app.DevVersion), Commit: commit, Date: date}
	code := root.Run(ctx, a, os.Args[1:])
	if code != clierr.ExitSuccess {
		transport.EndCredentialPlugins()
	}
	return code
}
