// Package state manages the folder of a sandbox: the paths of its files, the
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

// Folder is the root of one sandbox. A sandbox writes nowhere else.
type Folder string

// Open returns the folder at path, made absolute. It creates nothing.
func Open(path string) (Folder, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("resolving sandbox folder %q: %w", path, err)
	}
	return Folder(abs), nil
}

// Create creates the folder and its subfolders, readable by their owner only,
// because they contain keys and tokens.
func (f Folder) Create() error {
	for _, dir := range []string{"", "pki", "logs", "etcd", "pods", "git", "registry", "kwok", "programs", "policies"} {
		path := f.Path(dir)
		if err := os.MkdirAll(path, 0o700); err != nil {
			return fmt.Errorf("creating sandbox folder: %w", err)
		}
		if err := os.Chmod(path, 0o700); err != nil {
			return fmt.Errorf("setting the mode of the sandbox folder: %w", err)
		}
	}
	return nil
}

// Exists reports whether a sandbox was ever started in the folder.
func (f Folder) Exists() bool {
	_, err := os.Stat(f.Path("sandbox.json"))
	return err == nil
}

// Path joins elements to the folder.
func (f Folder) Path(elements ...string) string {
	return filepath.Join(append([]string{string(f)}, elements...)...)
}

// Kubeconfig returns the path of the kubeconfig for users.
func (f Folder) Kubeconfig() string { return f.Path("kubeconfig") }

// PartKubeconfig returns the path of the kubeconfig of a part of the control plane.
func (f Folder) PartKubeconfig(part string) string { return f.Path("pki", part+".kubeconfig") }

// PKI returns the path of a certificate, key or token file.
func (f Folder) PKI(name string) string { return f.Path("pki", name) }

// Log returns the path of the log of a part.
func (f Folder) Log(part string) string { return f.Path("logs", part+".log") }

// Pods returns the folder with one subfolder for each pod that runs as a process.
func (f Folder) Pods() string { return f.Path("pods") }

// Programs returns the folder with the programs that controllers find on PATH.
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
