//go:build unix

package snapshot

import (
	"os"
	"os/exec"
	"syscall"
)

// separate gives a command a process group of its own, and ends all of it when the context of the
// command is done: git does not end its ssh. On a terminal the command stays in the group of flux,
// because only the foreground group may prompt for the passphrase of a key.
func separate(cmd *exec.Cmd) {
	if terminal, err := os.OpenFile("/dev/tty", os.O_RDWR, 0); err == nil {
		_ = terminal.Close() // nothing was written
		return
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
}
