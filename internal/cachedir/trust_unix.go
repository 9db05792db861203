//go:build unix

package cachedir

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// trusted returns an error for a file that another user could have written.
func trusted(info fs.FileInfo) error {
	stat, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !info.Mode().IsRegular():
		return errors.New("not a regular file")
	case !ok || int(stat.Uid) != os.Geteuid():
		return errors.New("the file belongs to another user")
	case info.Mode().Perm()&0o022 != 0:
		return errors.New("other users can write to the file")
	}
	return nil
}
