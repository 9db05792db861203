// Package process starts, names and stops operating-system processes so that
// none is left behind and none is mistaken for another.
package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

// Identity names one process for good: a process id alone is used again by
// the kernel, the id together with the start time is not.
type Identity struct {
	PID   int    `json:"pid,omitempty"`
	Birth string `json:"birth,omitempty"`
}

// Self is the identity of the calling process.
func Self() Identity { return Identify(os.Getpid()) }

// Identify reads the identity of a running process.
func Identify(pid int) Identity { return Identity{PID: pid, Birth: birth(pid)} }

// Alive reports whether that very process still runs.
func (i Identity) Alive() bool {
	if i.PID <= 0 {
		return false
	}
	if err := syscall.Kill(i.PID, 0); err != nil && !errors.Is(err, syscall.EPERM) {
		return false
	}
	return i.Birth != "" && birth(i.PID) == i.Birth
}

// End asks the process to stop, kills it after grace, and returns when it is gone.
func (i Identity) End(ctx context.Context, grace time.Duration) error {
	if !i.Alive() {
		return nil
	}
	if err := i.signal(syscall.SIGTERM); err != nil {
		return err
	}
	bounded, cancel := context.WithTimeout(ctx, grace)
	defer cancel()
	if i.waitGone(bounded) == nil {
		return nil
	}
	if err := i.signal(syscall.SIGKILL); err != nil {
		return err
	}
	return i.waitGone(ctx)
}

// waitGone returns when the process has ended. It is not necessarily a child,
// so there is nothing to wait on but its entry in the process table.
func (i Identity) waitGone(ctx context.Context) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for i.Alive() {
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for process %d to end: %w", i.PID, context.Cause(ctx))
		case <-tick.C:
		}
	}
	return nil
}

func (i Identity) signal(sig syscall.Signal) error {
	err := syscall.Kill(i.PID, sig)
	if err == nil || errors.Is(err, syscall.ESRCH) {
		return nil
	}
	return fmt.Errorf("sending %s to process %d: %w", sig, i.PID, err)
}
