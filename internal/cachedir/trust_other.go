//go:build !unix

package cachedir

import (
	"errors"
	"io/fs"
)

// trusted returns an error for a file that is not regular. Directories protect the files of a user.
func trusted(info fs.FileInfo) error {
	if !info.Mode().IsRegular() {
		return errors.New("not a regular file")
	}
	return nil
}
