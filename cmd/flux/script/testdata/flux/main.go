// Command flux is the flux that the command scripts run: its clock shows the time in the variable CLOCK, and
// SIGUSR1 makes the time of --timeout pass.
// It is smaller than the test binary and starts in a third of the time.
package main

import (
	"context"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/cmd/flux/internal/root"
)

// garbage is the percentage by which the heap may grow, as in flux.
const garbage = 400

func main() {
	debug.SetGCPercent(garbage)
	klog.SetLogger(logr.Discard())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	a := app.New(os.Stdin, os.Stdout, os.Stderr, os.Getenv, now)
	a.LookupEnv, a.Environ = os.LookupEnv, os.Environ
	// Results must not depend on the speed of the machine.
	a.Deadline, a.DiagnosisTimeout, a.BriefTimeout = deadline, time.Minute, time.Minute
	code := root.Run(ctx, a, os.Args[1:])
	stop()
	os.Exit(code)
}

// now is the time in the variable CLOCK, which the command clock of the scripts sets; without it, the
// current time.
func now() time.Time {
	if at, err := time.Parse(time.RFC3339, os.Getenv("CLOCK")); err == nil {
		return at
	}
	return time.Now()
}
