// Package helper finds the programs that come with flux.
package helper

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
)

// Helm is a program of its own: Helm's SDK would cost every other
// command a third of its time to start.
const Helm = "flux-helm"

// Sandbox is a program of its own, because a whole Kubernetes is in it.
const Sandbox = "flux-sandbox"

// Find looks for a program in the folder of this one, then on PATH.
func Find(name string) (string, error) {
	if runtime.GOOS == "windows" {
		name += ".exe"
	}
	if self, err := os.Executable(); err == nil {
		if resolved, err := filepath.EvalSymlinks(self); err == nil {
			self = resolved
		}
		if path, err := exec.LookPath(filepath.Join(filepath.Dir(self), name)); err == nil {
			return path, nil
		}
	}
	return exec.LookPath(name)
}
