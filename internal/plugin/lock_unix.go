//go:build !windows

package plugin

import (
	"errors"
	"os"
	"syscall"
)

// lockFile takes an exclusive lock without waiting.
func lockFile(path string) (unlock func() error, err error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		err = errLocked
	}
	if err == nil && !current(file, path) {
		err = errLocked // the holder has removed the file, and another process may have created a new one
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return func() error { return errors.Join(os.Remove(path), file.Close()) }, nil
}

// current reports whether a path still refers to an open file.
func current(file *os.File, path string) bool {
	open, err := file.Stat()
	if err != nil {
		return false
	}
	there, err := os.Stat(path)
	return err == nil && os.SameFile(open, there)
}
