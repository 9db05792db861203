package ui

import "golang.org/x/sys/windows"

// stopEcho disables the echo of a console.
func stopEcho(fd int) error {
	var mode uint32
	if err := windows.GetConsoleMode(windows.Handle(fd), &mode); err != nil {
		return err
	}
	return windows.SetConsoleMode(windows.Handle(fd), mode&^windows.ENABLE_ECHO_INPUT)
}
