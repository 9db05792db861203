package controller

import (
	"debug/buildinfo"
	"fmt"
	"path/filepath"
)

// Version returns the version of a controller binary in a directory, as recorded by the
// linker. The image tag in the pod can differ.
func Version(dir, name string) (string, error) {
	info, err := buildinfo.ReadFile(filepath.Join(dir, name))
	if err != nil {
		return "", fmt.Errorf("reading the version of %s: %w", name, err)
	}
	return info.Main.Version, nil
}
