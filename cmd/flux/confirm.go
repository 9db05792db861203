package main

import "context"

// confirm asks a question; the wait for the answer ends with ctx, so that
// Ctrl-C works while a question stands.
func (a *app) confirm(ctx context.Context, question string) (bool, error) {
	type reply struct {
		yes bool
		err error
	}
	// Reading a terminal cannot be cut short, so on ctx the goroutine stays
	// until the process ends, which it does then.
	answer := make(chan reply, 1)
	go func() {
		yes, err := a.ui.Confirm(question)
		answer <- reply{yes, err}
	}()
	select {
	case <-ctx.Done():
		a.ui.Line("")
		return false, context.Cause(ctx)
	case got := <-answer:
		return got.yes, got.err
	}
}
