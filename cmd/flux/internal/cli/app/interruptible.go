package app

import (
	"context"
	"time"

	"github.com/spf13/cobra"
)

// stopGrace is the time that interrupted work has to stop: long enough to clean up, and less than
// the second after which a signal ends flux.
const stopGrace = 600 * time.Millisecond

// Interruptible runs work that may not check its context for seconds, such as decoding, rendering,
// comparing or printing untrusted input. If work does not stop after an interrupt or --timeout,
// Interruptible returns anyway, because the process is about to exit.
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
