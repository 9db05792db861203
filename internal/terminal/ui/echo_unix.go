//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package ui

import "golang.org/x/sys/unix"

// stopEcho makes a terminal not show what is typed. Unlike in raw mode, lines are edited and Ctrl-C
// interrupts, and what is typed before a read is read as a line.
func stopEcho(fd int) error {
	mode, err := unix.IoctlGetTermios(fd, getTerminal)
	if err != nil {
		return err
	}
	mode.Lflag &^= unix.ECHO
	return unix.IoctlSetTermios(fd, setTerminal, mode)
}
