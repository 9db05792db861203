package testlimit

import (
	"context"
	"sync/atomic"
)

// Deadline is a context whose deadline passes when a test calls Expire. It is canceled with its parent.
type Deadline struct {
	context.Context
	cancel  context.CancelCauseFunc
	cause   error
	done    chan struct{}
	expired atomic.Bool
}

// NewDeadline returns a context whose deadline has not passed. cause is the cause after the deadline.
func NewDeadline(parent context.Context, cause error) *Deadline {
	ctx, cancel := context.WithCancelCause(parent)
	d := &Deadline{Context: ctx, cancel: cancel, cause: cause, done: make(chan struct{})}
	context.AfterFunc(ctx, func() { close(d.done) })
	return d
}

// Expire makes the deadline pass.
func (d *Deadline) Expire() {
	d.expired.Store(true)
	d.cancel(d.cause)
	<-d.done
}

// Done is closed when the deadline has passed or the parent is canceled. It is not the channel of the embedded context, so that
// contexts that are derived from the Deadline call its Err.
func (d *Deadline) Done() <-chan struct{} { return d.done }

// Err is context.DeadlineExceeded after the deadline.
func (d *Deadline) Err() error {
	select {
	case <-d.done:
	default:
		return nil
	}
	if d.expired.Load() {
		return context.DeadlineExceeded
	}
	return d.Context.Err()
}
