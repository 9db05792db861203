package state

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/fluxkit/flux/sandbox/internal/file"
)

// TryLock acquires the named lock in the directory, or returns file.ErrLocked. Closing it releases the
// lock.
func (f Folder) TryLock(name string) (*os.File, error) { return file.TryLock(f.Path(name + ".lock")) }

// WaitLock waits until the named lock is released, and acquires it.
func (f Folder) WaitLock(ctx context.Context, name string) (*os.File, error) {
	lock, err := file.Lock(ctx, f.Path(name+".lock"))
	if err != nil && ctx.Err() != nil {
		err = fmt.Errorf("waiting for another command on this sandbox to finish: %w", context.Cause(ctx))
	}
	return lock, err
}

// Held reports whether a process holds the named lock.
func (f Folder) Held(name string) bool {
	if _, err := os.Stat(f.Path(name + ".lock")); err != nil {
		return false
	}
	lock, err := f.TryLock(name)
	if err != nil {
		return errors.Is(err, file.ErrLocked)
	}
	return lock.Close() != nil
}
