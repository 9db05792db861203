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

// takeTime is the time for which the lock of a server is awaited.
const takeTime = time.Second

// serverLock is the file whose lock a running server holds.
func serverLock(root string) string { return filepath.Join(root, "server.lock") }

// takeRoot locks the folder against a second server. It waits for a moment, because a command that checks whether a
// server runs holds the lock for an instant, as does a child between fork and exec.
func takeRoot(ctx context.Context, root string) (*os.File, error) {
	bounded, cancel := context.WithTimeout(ctx, takeTime)
	defer cancel()
	lock, err := file.Lock(bounded, serverLock(root))
	if ctx.Err() == nil && errors.Is(err, file.ErrLocked) {
		err = fmt.Errorf("another git server already serves %s: %w", root, err)
	}
	return lock, err
}

// changing runs a change of the folder's files under a lock shared by all processes.
func changing(root string, change func() error) error {
	lock, err := file.Lock(context.Background(), filepath.Join(root, "change.lock"))
	if err != nil {
		return err
	}
	return errors.Join(change(), lock.Close())
}
