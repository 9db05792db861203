// Command flux puts Flux on a Kubernetes cluster out of a Git repository and
// lets people and scripts see and steer what Flux does there.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
)

func main() { os.Exit(start(time.Now)) }

// start runs the process's command line by a clock and returns the exit code.
func start(now func() time.Time) int {
	// What the Kubernetes client logs comes back as an error too, in better words.
	klog.SetLogger(logr.Discard())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return newApp(os.Stdin, os.Stdout, os.Stderr, os.Getenv, now).run(ctx, os.Args[1:])
}
