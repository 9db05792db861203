// Package state manages the directory of a sandbox: the paths of its files, the
// chosen ports, the recorded processes, and the locks between commands.
package state

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/fluxkit/flux/sandbox/internal/file"
)

// Folder is the root directory of a sandbox. A sandbox writes nowhere else.
type Folder string

// Open returns the directory at path, made absolute. It creates nothing.
func Open(path string) (Folder, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("resolving sandbox directory %q: %w", path, err)
	}
	return Folder(abs), nil
}

// Create creates the directory and its subdirectories, readable by their owner only,
// because they contain keys and tokens.
func (f Folder) Create() error {
	for _, dir := range []string{"", "pki", "logs", "etcd", "pods", "git", "registry", "kwok", "programs", "policies"} {
		path := f.Path(dir)
		if err := os.MkdirAll(path, 0o700); err != nil {
			return fmt.Errorf("creating sandbox directory: %w", err)
		}
		if err := os.Chmod(path, 0o700); err != nil {
			return fmt.Errorf("setting the mode of the sandbox directory: %w", err)
		}
	}
	return nil
}

// Exists reports whether a sandbox has been started in the directory before.
func (f Folder) Exists() bool {
	_, err := os.Stat(f.Path("sandbox.json"))
	return err == nil
}

// Path joins elements to the directory.
func (f Folder) Path(elements ...string) string {
	return filepath.Join(append([]string{string(f)}, elements...)...)
}

// Kubeconfig returns the path of the kubeconfig for users.
func (f Folder) Kubeconfig() string { return f.Path("kubeconfig") }

// PartKubeconfig returns the path of the kubeconfig of a control plane component.
func (f Folder) PartKubeconfig(part string) string { return f.Path("pki", part+".kubeconfig") }

// PKI returns the path of a certificate, key or token file.
func (f Folder) PKI(name string) string { return f.Path("pki", name) }

// Log returns the path of the log of a component.
func (f Folder) Log(part string) string { return f.Path("logs", part+".log") }

// Pods returns the directory with one subdirectory for each pod that runs as a process.
func (f Folder) Pods() string { return f.Path("pods") }

// Programs returns the directory with the programs that controllers find on PATH.
func (f Folder) Programs() string { return f.Path("programs") }

// WriteFile replaces a private file atomically: readers see the old or the new content.
func WriteFile(path string, data []byte) error { return file.Replace(path, data, 0o600) }

// writeJSON writes v as an indented private file.
func writeJSON(path string, v any) error {
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding %s: %w", path, err)
	}
	return WriteFile(path, append(data, '\n'))
}

// readJSON decodes a file into v; a missing file leaves v unchanged.
func readJSON(path string, v any) error {
	data, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading %s: %w", path, err)
	}
	if err := json.Unmarshal(data, v); err != nil {
		return fmt.Errorf("reading %s: %w", path, err)
	}
	return nil
}
