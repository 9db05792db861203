//go:build !unix

package ui

import "os"

// Resized reports nothing where no signal tells of the terminal's size.
func Resized() (changes <-chan os.Signal, stop func()) { return nil, func() {} }
