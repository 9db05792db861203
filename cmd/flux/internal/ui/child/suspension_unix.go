//go:build !windows

package child

import (
	"os"
	"os/signal"
	"syscall"
	"time"
)

// stopDelay is the time within which the system stops a process, continueDelay that within which a continued process
// receives the signal.
const stopDelay, continueDelay = 500 * time.Millisecond, 100 * time.Millisecond

// stop stops the process group until the shell continues it. The system ignores the signal if the shell has no job
// control.
func stop() error {
	continued := make(chan os.Signal, 1)
	signal.Notify(continued, syscall.SIGCONT)
	defer signal.Stop(continued)
	if err := syscall.Kill(0, syscall.SIGTSTP); err != nil {
		return err
	}
	for _, delay := range []time.Duration{stopDelay, continueDelay} { // the first one has also passed when the process continues
		select {
		case <-continued:
			return nil
		case <-time.After(delay):
		}
	}
	return ErrNotStopped
}
