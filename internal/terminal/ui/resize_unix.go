//go:build unix

package ui

import (
	"os"
	"os/signal"
	"syscall"
)

// Resized reports every resize of the terminal until stop is called. It also reports when the process continues
// after Ctrl-Z, because the shell has written to the terminal in the meantime.
func Resized() (changes <-chan os.Signal, stop func()) {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGWINCH, syscall.SIGCONT)
	return c, func() { signal.Stop(c) }
}
