//go:build unix

package git

import (
	"os"
	"os/exec"
	"syscall"
)

// separate starts a command in a separate process group and terminates the whole group when the command's context is
// done, because git does not terminate its ssh process. On a terminal the command stays in the process group of flux,
// because only the foreground group may prompt for a key's passphrase.
func separate(cmd *exec.Cmd) {
	if terminal, err := os.OpenFile("/dev/tty", os.O_RDWR, 0); err == nil {
		_ = terminal.Close() // opened read-only
		return
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
}
