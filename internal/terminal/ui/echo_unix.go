//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package ui

import "golang.org/x/sys/unix"

// stopEcho disables the echo of a terminal. Unlike in raw mode, line editing and Ctrl-C work, and
// text typed before the read is read as a line.
func stopEcho(fd int) error {
	mode, err := unix.IoctlGetTermios(fd, getTerminal)
	if err != nil {
		return err
	}
	mode.Lflag &^= unix.ECHO
	return unix.IoctlSetTermios(fd, setTerminal, mode)
}
