// Package process starts, identifies and stops operating system processes. No process is
// left running or confused with another one.
package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

// Identity uniquely identifies a process: the kernel reuses process IDs, but not with the
// same start time.
type Identity struct {
	PID   int    `json:"pid,omitempty"`
	Birth string `json:"birth,omitempty"`
}

// Self returns the identity of the calling process.
func Self() Identity { return Identify(os.Getpid()) }

// Identify returns the identity of a running process.
func Identify(pid int) Identity { return Identity{PID: pid, Birth: birth(pid)} }

// Alive reports whether the process is still running.
func (i Identity) Alive() bool {
	if i.PID <= 0 {
		return false
	}
	if err := syscall.Kill(i.PID, 0); err != nil && !errors.Is(err, syscall.EPERM) {
		return false
	}
	return i.Birth != "" && birth(i.PID) == i.Birth
}

// End sends SIGTERM to the process, kills it after grace, and returns after its exit.
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

// waitGone returns when the process has exited. It polls, because the process may
// not be a child.
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

// Signal sends a signal to the process, if it is still running.
func (i Identity) Signal(sig syscall.Signal) error {
	if !i.Alive() {
		return nil
	}
	return i.signal(sig)
}

func (i Identity) signal(sig syscall.Signal) error {
	err := syscall.Kill(i.PID, sig)
	if err == nil || errors.Is(err, syscall.ESRCH) {
		return nil
	}
	return fmt.Errorf("sending %s to process %d: %w", sig, i.PID, err)
}
