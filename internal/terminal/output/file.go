package output

import (
	"errors"
	"os"
	"path/filepath"
)

// ReplaceFile writes a file with mode 0644. If an error occurs, an existing file keeps its content.
func ReplaceFile(name string, content []byte) (err error) {
	part, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+"-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(part.Name()))
		}
	}()
	const readable = 0o644
	_, err = part.Write(content)
	if err = errors.Join(err, part.Chmod(readable), part.Close()); err != nil {
		return err
	}
	return os.Rename(part.Name(), name)
}
