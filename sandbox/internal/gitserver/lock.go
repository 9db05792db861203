package gitserver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/fluxkit/flux/sandbox/internal/file"
)

// takeTime is the maximum time to wait for the lock of a server.
const takeTime = time.Second

// serverLock is the name of the file that a running server locks.
func serverLock(root string) string { return filepath.Join(root, "server.lock") }

// takeRoot locks the directory against a second server. It waits briefly, because a command that checks whether a
// server is running holds the lock for a moment, as does a child process between fork and exec.
func takeRoot(ctx context.Context, root string) (*os.File, error) {
	bounded, cancel := context.WithTimeout(ctx, takeTime)
	defer cancel()
	lock, err := file.Lock(bounded, serverLock(root))
	if ctx.Err() == nil && errors.Is(err, file.ErrLocked) {
		err = fmt.Errorf("another git server already serves %s: %w", root, err)
	}
	return lock, err
}

// changing changes files in the directory while it holds a lock shared by all processes.
func changing(root string, change func() error) error {
	lock, err := file.Lock(context.Background(), filepath.Join(root, "change.lock"))
	if err != nil {
		return err
	}
	return errors.Join(change(), lock.Close())
}
