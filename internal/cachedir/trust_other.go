//go:build !unix

package cachedir

import (
	"errors"
	"io/fs"
)

// trusted returns an error for a file that is not regular. On this system, directory permissions protect a user's
// files.
func trusted(info fs.FileInfo) error {
	if !info.Mode().IsRegular() {
		return errors.New("not a regular file")
	}
	return nil
}
