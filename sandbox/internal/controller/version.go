package controller

import (
	"debug/buildinfo"
	"fmt"
	"path/filepath"
)

// Version returns the version of the binary of a controller in a folder, as the
// linker recorded it. The tag of an image can be that of another version.
func Version(dir, name string) (string, error) {
	info, err := buildinfo.ReadFile(filepath.Join(dir, name))
	if err != nil {
		return "", fmt.Errorf("reading the version of %s: %w", name, err)
	}
	return info.Main.Version, nil
}
