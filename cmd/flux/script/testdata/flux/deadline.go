package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// expiring is a context whose deadline passes when the process receives SIGUSR1.
type expiring struct {
	context.Context
	done chan struct{}
	// err is set before done is closed.
	err error
}

// deadline is context.WithTimeoutCause for a context that SIGUSR1 expires, too.
func deadline(ctx context.Context, timeout time.Duration, cause error) (context.Context, context.CancelFunc) {
	expired := make(chan os.Signal, 1)
	signal.Notify(expired, syscall.SIGUSR1)
	ctx, stop := context.WithTimeoutCause(ctx, timeout, cause)
	ctx, cancel := context.WithCancelCause(ctx)
	e := &expiring{Context: ctx, done: make(chan struct{})}
	go func() {
		defer close(e.done)
		defer signal.Stop(expired)
		select {
		case <-expired:
			cancel(cause)
			e.err = context.DeadlineExceeded
		case <-ctx.Done():
			e.err = ctx.Err()
		}
	}()
	return e, func() {
		stop()
		cancel(nil)
		<-e.done
	}
}

// Done is closed when the deadline has passed or the context is canceled.
func (e *expiring) Done() <-chan struct{} { return e.done }

// Err is context.DeadlineExceeded after the deadline.
func (e *expiring) Err() error {
	select {
	case <-e.done:
		return e.err
	default:
		return nil
	}
}
