package fakeapi

import (
	"context"
	"sync"
)

// Deadline is a context whose deadline a test controls.
type Deadline struct {
	context.Context
	done chan struct{}
	once sync.Once
}

// NewDeadline returns a context whose deadline has not passed.
func NewDeadline(ctx context.Context) *Deadline {
	return &Deadline{Context: ctx, done: make(chan struct{})}
}

// Expire makes the deadline pass.
func (d *Deadline) Expire() { d.once.Do(func() { close(d.done) }) }

// Done is closed once the deadline has passed.
func (d *Deadline) Done() <-chan struct{} { return d.done }

// Err is context.DeadlineExceeded once the deadline has passed.
func (d *Deadline) Err() error {
	select {
	case <-d.done:
		return context.DeadlineExceeded
	default:
		return nil
	}
}
