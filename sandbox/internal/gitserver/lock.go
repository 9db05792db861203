package gitserver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// takeRoot locks the folder against a second server. It retries for a moment, because a command that checks whether a
// server runs holds the lock for an instant, as does a child between fork and exec.
func takeRoot(ctx context.Context, root string) (*os.File, error) {
	const attempts, pause = 50, 20 * time.Millisecond
	for attempt := 1; ; attempt++ {
		lock, err := tryRoot(root)
		if err == nil || attempt == attempts || !errors.Is(err, syscall.EWOULDBLOCK) {
			return lock, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(pause):
		}
	}
}

// tryRoot takes the lock of the folder. The kernel releases it when the process exits.
func tryRoot(root string) (*os.File, error) {
	lock, err := lockFile(filepath.Join(root, "server.lock"), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, fmt.Errorf("another git server already serves %s: %w", root, err)
	}
	return lock, err
}

// changing runs a change of the folder's files under a lock shared by all processes.
func changing(root string, change func() error) error {
	lock, err := lockFile(filepath.Join(root, "change.lock"), syscall.LOCK_EX)
	if err != nil {
		return err
	}
	return errors.Join(change(), lock.Close())
}

func lockFile(path string, how int) (*os.File, error) {
	lock, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("locking the git server's folder: %w", err)
	}
	if err := syscall.Flock(int(lock.Fd()), how); err != nil {
		return nil, errors.Join(fmt.Errorf("locking %s: %w", path, err), lock.Close())
	}
	return lock, nil
}
