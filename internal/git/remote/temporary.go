package remote

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"time"
)

// Repositories are fetched into temporary directories. A killed process leaves
// its directory behind; a later process removes it after a day. It removes only
// directories of this program: with the prefix of os.MkdirTemp and the marker.
const (
	folderPrefix = "flux-repository-"
	marker       = "flux-temporary"
	abandoned    = 24 * time.Hour
)

var folderName = regexp.MustCompile(`^` + folderPrefix + `[0-9]+$`)

// makeFolder returns a new temporary directory, and removes abandoned ones.
func makeFolder() (string, error) {
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

// sweep removes abandoned directories. now is the time of the file system. Errors are ignored: such
// a directory belongs to another user.
func sweep(dir string, now time.Time) {
	found, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, entry := range found {
		if !entry.IsDir() || !folderName.MatchString(entry.Name()) {
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
