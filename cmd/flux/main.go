// Command flux installs Flux on a Kubernetes cluster from a Git repository, and
// inspects and operates it.
package main

import (
	"context"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
)

// memory is where the garbage collector trades time for space, whatever a
// repository, a registry or a cluster sends. GOMEMLIMIT overrides it.
const memory = 768 << 20

func main() {
	if _, set := os.LookupEnv("GOMEMLIMIT"); !set {
		debug.SetMemoryLimit(memory)
	}
	collectLater()
	os.Exit(start(time.Now))
}

// collectLater lets the heap grow to 16 MiB before the garbage collector first
// runs. The usual 4 MiB are reached while the command line is still being read,
// and most commands end before they would need a collection at all. After the
// first one the collector keeps the pace that it has everywhere.
func collectLater() {
	usual := debug.SetGCPercent(400)
	runtime.AddCleanup(new(*byte), func(percent int) { debug.SetGCPercent(percent) }, usual)
}

// start runs the process's command line by a clock and returns the exit code.
func start(now func() time.Time) int {
	// What the Kubernetes client logs comes back as an error too, in better words.
	klog.SetLogger(logr.Discard())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	a := newApp(os.Stdin, os.Stdout, os.Stderr, os.Getenv, now)
	a.lookupEnv = os.LookupEnv
	a.environ = os.Environ
	return a.run(ctx, os.Args[1:])
}
