//go:build unix

package ui

import (
	"os"
	"os/signal"
	"syscall"
)

// Resized reports every change of the terminal's size until stop is called.
func Resized() (changes <-chan os.Signal, stop func()) {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGWINCH)
	return c, func() { signal.Stop(c) }
}
