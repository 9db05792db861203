package ui

import "golang.org/x/sys/windows"

// stopEcho makes a console not show what is typed.
func stopEcho(fd int) error {
	var mode uint32
	if err := windows.GetConsoleMode(windows.Handle(fd), &mode); err != nil {
		return err
	}
	return windows.SetConsoleMode(windows.Handle(fd), mode&^windows.ENABLE_ECHO_INPUT)
}
