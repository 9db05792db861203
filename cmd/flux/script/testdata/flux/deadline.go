package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/fluxkit/flux/test/support/testlimit"
)

// deadline is context.WithTimeoutCause for a context that SIGUSR1 expires, too.
func deadline(ctx context.Context, timeout time.Duration, cause error) (context.Context, context.CancelFunc) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGUSR1)
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, cause)
	d := testlimit.NewDeadline(ctx, cause)
	go func() {
		defer signal.Stop(signals)
		select {
		case <-signals:
			d.Expire()
		case <-d.Done():
		}
	}()
	return d, cancel
}
