//go:build !unix

package ui

import "os"

// Resized returns a channel that never receives: this system has no signal for terminal resizes.
func Resized() (changes <-chan os.Signal, stop func()) { return nil, func() {} }
