package screen

import (
	"errors"
	"io"

	tea "charm.land/bubbletea/v2"
)

// suspension stops the dashboard in the same way as Ctrl-Z stops other programs. It implements tea.ExecCommand, so that
// the terminal is restored meanwhile. tea.Suspend would wait forever without a shell that can continue the program.
type suspension struct{}

// SetStdin implements tea.ExecCommand.
func (*suspension) SetStdin(io.Reader) {}

// SetStdout implements tea.ExecCommand.
func (*suspension) SetStdout(io.Writer) {}

// SetStderr implements tea.ExecCommand.
func (*suspension) SetStderr(io.Writer) {}

// Run implements tea.ExecCommand.
func (*suspension) Run() error { return stop() }

// errNotStopped is returned if nothing could continue the program, because its shell has no job control.
var errNotStopped = errors.New("Ctrl-Z requires a shell with job control")

// resumedMsg is sent when the dashboard continues after a suspension.
type resumedMsg struct{ err error }

// resumed closes the dashboard if the terminal is lost.
func (m *model) resumed(msg resumedMsg) tea.Cmd {
	switch {
	case errors.Is(msg.err, errNotStopped):
		m.status = msg.err.Error()
	case msg.err != nil:
		return tea.Quit
	}
	return nil
}
