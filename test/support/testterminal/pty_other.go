//go:build !linux

package testterminal

import (
	"errors"
	"os"
	"syscall"
)

func open(int, int) (master, slave *os.File, err error) {
	return nil, nil, errors.ErrUnsupported
}

func resize(int, int, int) error { return errors.ErrUnsupported }

func session() *syscall.SysProcAttr { return nil }

func kill(int) {}

func cooked(int) bool { return true }
