package app

import (
	"context"
	"time"

	"github.com/spf13/cobra"
)

// stopGrace is the time that work has to stop by itself: long enough to remove
// what it has created, and less than the second in which a signal ends flux.
const stopGrace = 600 * time.Millisecond

// Interruptible runs work that may compute for seconds without a look at its
// context, since it decodes, renders, compares and prints what others wrote. If it
// does not stop when flux is interrupted or --timeout is over, Interruptible
// returns without it; the process is about to exit then.
func (a *App) Interruptible(cmd *cobra.Command, work func() error) error {
	ctx, cancel := a.WithTimeout(cmd.Context())
	defer cancel()
	stopped := make(chan error, 1)
	go func() { stopped <- work() }()
	select {
	case err := <-stopped:
		return err
	case <-ctx.Done():
	}
	grace := time.NewTimer(stopGrace)
	defer grace.Stop()
	select {
	case err := <-stopped:
		return err
	case <-grace.C:
		return context.Cause(ctx)
	}
}
