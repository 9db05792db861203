package testterminal

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

func open(columns, lines int) (master, slave *os.File, err error) {
	master, err = os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, nil, err
	}
	slave, err = slaveOf(master, columns, lines)
	if err != nil {
		return nil, nil, errors.Join(err, master.Close())
	}
	return master, slave, nil
}

func slaveOf(master *os.File, columns, lines int) (*os.File, error) {
	fd := int(master.Fd())
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		return nil, fmt.Errorf("unlocking the terminal: %w", err)
	}
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		return nil, fmt.Errorf("naming the terminal: %w", err)
	}
	if err := resize(fd, columns, lines); err != nil {
		return nil, fmt.Errorf("setting the size of the terminal: %w", err)
	}
	return os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
}

func resize(fd, columns, lines int) error {
	return unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: uint16(lines), Col: uint16(columns)}) // tests give small sizes
}

// session makes the terminal the controlling terminal of a program.
func session() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true, Setctty: true} }

// kill terminates the remaining processes of a session.
func kill(pid int) {
	_ = syscall.Kill(-pid, syscall.SIGKILL) // usually there are none
}

// cooked reports whether a terminal edits and echoes lines, and sends signals for keys.
func cooked(fd int) bool {
	state, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	const flags = unix.ICANON | unix.ECHO | unix.ISIG
	return err == nil && state.Lflag&flags == flags && state.Oflag&unix.OPOST != 0
}
