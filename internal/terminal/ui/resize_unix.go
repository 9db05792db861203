//go:build unix

package ui

import (
	"os"
	"os/signal"
	"syscall"
)

// Resized reports every change of the terminal's size until stop is called, and that the process continues after
// Ctrl-Z: the shell has written to the terminal since then.
func Resized() (changes <-chan os.Signal, stop func()) {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGWINCH, syscall.SIGCONT)
	return c, func() { signal.Stop(c) }
}
