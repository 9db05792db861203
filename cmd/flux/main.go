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
	"sync/atomic"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/clierr"
	"github.com/fluxkit/flux/cmd/flux/internal/root"
	"github.com/fluxkit/flux/internal/kube/transport"
)

// memory is the soft memory limit, independent of the input: near the limit, the garbage collector
// trades CPU time for memory. GOMEMLIMIT overrides it.
const memory = 768 << 20

// The version, Git commit and commit time of this program, set by the build. The Flux version that
// it installs is controllers.DefaultVersion.
var version, commit, date string //nolint:gochecknoglobals // the linker needs variables

func main() {
	if _, set := os.LookupEnv("GOMEMLIMIT"); !set {
		debug.SetMemoryLimit(memory)
	}
	os.Exit(start(time.Now, collectLater()))
}

// defaultGOGC is the default of the variable GOGC.
const defaultGOGC = 100

// collectLater lets the heap grow to 16 MiB before the garbage collector first runs: the default is 4 MiB, which is reached
// while the command line is parsed, and most commands end before they need a collection. After the first collection, the
// heap may grow by GOGC percent. The returned function lowers both limits, at the cost of a fifth more CPU time for large clusters.
func collectLater() (save func()) {
	const later, sooner, saving = 400, 200, 50
	var next struct {
		percent   atomic.Int32
		collected atomic.Bool
	}
	next.percent.Store(int32(debug.SetGCPercent(later)))
	runtime.AddCleanup(new(*byte), func(struct{}) {
		next.collected.Store(true)
		debug.SetGCPercent(int(next.percent.Load()))
	}, struct{}{})
	return func() {
		switch {
		case !next.percent.CompareAndSwap(defaultGOGC, saving): // set by GOGC
		case next.collected.Load():
			debug.SetGCPercent(saving)
		default:
			debug.SetGCPercent(sooner)
		}
	}
}

// limitMemory lowers the memory limit.
func limitMemory(bytes int64) {
	if debug.SetMemoryLimit(-1) > bytes {
		debug.SetMemoryLimit(bytes)
	}
}

// start runs the command line of the process and returns the exit code. saveMemory makes the garbage collector run more often.
func start(now func() time.Time, saveMemory func()) int {
	// Kubernetes client logs duplicate errors, which flux prints with better messages.
	klog.SetLogger(logr.Discard())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second interrupt ends the process immediately
	// A second SIGTERM does not end the process, so that temporary files and sandboxes are removed: timeout(1),
	// for example, sends two.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGTERM)
	a := app.New(os.Stdin, os.Stdout, os.Stderr, os.Getenv, now)
	a.LookupEnv = os.LookupEnv
	a.Environ = os.Environ
	a.LimitMemory = limitMemory
	a.SaveMemory = saveMemory
	a.Build = app.Build{Version: cmp.Or(version, app.DevVersion), Commit: commit, Date: date}
	code := root.Run(ctx, a, os.Args[1:])
	if code != clierr.ExitSuccess {
		transport.EndCredentialPlugins()
	}
	return code
}
