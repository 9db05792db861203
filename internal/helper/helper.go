// Package helper runs work in flux-helper, a program that is installed in the same directory as flux: Helm,
// kustomize, SOPS with its key services, logins to cloud registries, signatures, and Graphviz. The libraries of
// these tools would slow down the start of every command, and the memory of a separate process can be limited.
//
// Both sides exchange lines of JSON over a pipe. A job may send queries to flux while it runs, for example for the
// files that kustomize reads. Files, secrets and keys are passed through the pipe only.
package helper

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
)

// Program is the name of the helper program.
const Program = "flux-helper"

// Dashboard is the name of the program that contains the terminal user interface.
const Dashboard = "flux-ui"

// Sandbox is the name of the program that contains Kubernetes for local use.
const Sandbox = "flux-sandbox"

// ErrNotFound is returned by Find if the program is not in the directory of the running program.
var ErrNotFound = errors.New("not found")

// Self returns the path of the running program.
func Self() (string, error) {
	self, err := os.Executable()
	if err == nil {
		self, err = filepath.EvalSymlinks(self)
	}
	if err != nil {
		return "", fmt.Errorf("finding the directory of the program: %w", err)
	}
	return self, nil
}

// Find returns the path of a program in the directory of the running program. It does not search
// PATH or the current directory, which may contain an untrusted program of this name.
func Find(name string) (string, error) {
	self, err := Self()
	if err != nil {
		return "", err
	}
	if runtime.GOOS == "windows" {
		name += ".exe"
	}
	path := filepath.Join(filepath.Dir(self), name)
	if _, err := exec.LookPath(path); err != nil {
		return "", fmt.Errorf("%s: %w", path, ErrNotFound)
	}
	return path, nil
}

// Network returns the environment variables of a process that sends requests without credentials:
// proxies, certificates, and settings of the runtime.
func Network() []string {
	return []string{
		"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy", "SSL_CERT_FILE", "SSL_CERT_DIR", "GODEBUG", "GOMEMLIMIT",
		"TMPDIR", "SystemRoot", "TEMP", "TMP", // the last three on Windows
	}
}
