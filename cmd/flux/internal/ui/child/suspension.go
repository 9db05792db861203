package child

import (
	"errors"
	"io"
)

// Suspension stops the dashboard in the same way as Ctrl-Z stops other programs. It implements tea.ExecCommand, so that
// the terminal is restored meanwhile. tea.Suspend would wait forever without a shell that can continue the program.
type Suspension struct{}

// SetStdin implements tea.ExecCommand.
func (*Suspension) SetStdin(io.Reader) {}

// SetStdout implements tea.ExecCommand.
func (*Suspension) SetStdout(io.Writer) {}

// SetStderr implements tea.ExecCommand.
func (*Suspension) SetStderr(io.Writer) {}

// Run implements tea.ExecCommand.
func (*Suspension) Run() error { return stop() }

// ErrNotStopped is returned if nothing could continue the program, because its shell has no job control.
var ErrNotStopped = errors.New("Ctrl-Z requires a shell with job control")
