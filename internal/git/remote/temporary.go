package remote

import (
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/fluxkit/flux/internal/lazy"
)

// Repositories are fetched into temporary directories. A killed process leaves its directory behind; a later process
// removes it after a day. Only directories with the name prefix and the marker of this program are removed.
const (
	folderPrefix = "flux-repository-"
	marker       = "flux-temporary"
	abandoned    = 24 * time.Hour
)

var folderName = lazy.Regexp(`^` + folderPrefix + `[0-9]+$`)

// makeDirectory returns a new temporary directory, and removes abandoned ones.
func makeDirectory() (string, error) {
	folder, err := os.MkdirTemp("", folderPrefix)
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(filepath.Join(folder, marker), nil, 0o600); err != nil {
		return "", errors.Join(err, os.RemoveAll(folder))
	}
	info, err := os.Stat(folder)
	if err != nil {
		return "", err
	}
	sweep(filepath.Dir(folder), info.ModTime())
	return folder, nil
}

// sweep removes abandoned directories. now is the time according to the file system. Errors are
// ignored because they are caused by directories of other users.
func sweep(dir string, now time.Time) {
	found, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, entry := range found {
		if !entry.IsDir() || !folderName().MatchString(entry.Name()) {
			continue
		}
		folder := filepath.Join(dir, entry.Name())
		mark, err := os.Lstat(filepath.Join(folder, marker))
		if err != nil || !mark.Mode().IsRegular() {
			continue
		}
		if info, err := entry.Info(); err == nil && now.Sub(info.ModTime()) > abandoned {
			_ = os.RemoveAll(folder)
		}
	}
}
