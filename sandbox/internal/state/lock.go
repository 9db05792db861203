package state

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// ErrLocked is returned when another process holds the lock.
var ErrLocked = errors.New("locked by another process")

// Lock is a file lock. The kernel releases it when its process exits, so a killed
// process leaves no lock behind.
type Lock struct{ file *os.File }

// TryLock takes the lock called name in the folder, or returns ErrLocked.
func (f Folder) TryLock(name string) (*Lock, error) {
	path := f.Path(name + ".lock")
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening lock %s: %w", path, err)
	}
	err = unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if err == nil {
		return &Lock{file: file}, nil
	}
	if errors.Is(err, unix.EWOULDBLOCK) {
		err = ErrLocked
	}
	return nil, errors.Join(fmt.Errorf("taking lock %s: %w", path, err), file.Close())
}

// WaitLock takes the lock called name when its holder releases it.
func (f Folder) WaitLock(ctx context.Context, name string) (*Lock, error) {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		lock, err := f.TryLock(name)
		if err == nil || !errors.Is(err, ErrLocked) {
			return lock, err
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("waiting for another command on this sandbox to finish: %w", context.Cause(ctx))
		case <-tick.C:
		}
	}
}

// Held reports whether a process holds the lock called name.
func (f Folder) Held(name string) bool {
	if _, err := os.Stat(f.Path(name + ".lock")); err != nil {
		return false
	}
	lock, err := f.TryLock(name)
	if err != nil {
		return errors.Is(err, ErrLocked)
	}
	return lock.Release() != nil
}

// Release releases the lock.
func (l *Lock) Release() error { return l.file.Close() }
