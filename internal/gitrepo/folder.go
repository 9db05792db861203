package gitrepo

import (
	"os"
	"path/filepath"
	"time"
)

// Repositories are fetched into folders of this name. A process that is killed
// cannot remove its own, so the next one does, once no run can be using it.
const (
	folderPrefix = "flux-repository-"
	abandoned    = 24 * time.Hour
)

func makeFolder() (string, error) {
	folder, err := os.MkdirTemp("", folderPrefix)
	if err != nil {
		return "", err
	}
	info, err := os.Stat(folder)
	if err != nil {
		return "", err
	}
	sweep(filepath.Dir(folder), info.ModTime())
	return folder, nil
}

// sweep removes folders that were left long before now, which is the file
// system's time. What cannot be removed belongs to others and stays.
func sweep(dir string, now time.Time) {
	found, err := filepath.Glob(filepath.Join(dir, folderPrefix+"*"))
	if err != nil {
		return
	}
	for _, folder := range found {
		if info, err := os.Lstat(folder); err == nil && info.IsDir() && now.Sub(info.ModTime()) > abandoned {
			_ = os.RemoveAll(folder)
		}
	}
}
