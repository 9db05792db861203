package plugin

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"go.yaml.in/yaml/v3"

	"github.com/fluxkit/flux/internal/budget"
	"github.com/fluxkit/flux/internal/terminal/printable"
)

// Receipt records the installation of a plugin. It is stored next to the program, in the format of Flux 2.9.
type Receipt struct {
	Name        string   `yaml:"name" json:"name"`
	Version     string   `yaml:"version" json:"version"`
	InstalledAt string   `yaml:"installedAt" json:"installedAt"`
	Platform    Platform `yaml:"platform" json:"platform"`
}

// receiptMax is the maximum size of a receipt.
const receiptMax = 64 << 10

func receiptPath(folder, name string) string { return filepath.Join(folder, prefix+name+".yaml") }

// readReceipt returns the receipt of a plugin, or nil if it cannot be read. A plugin without a
// receipt is treated as not installed by flux.
func readReceipt(folder, name string) *Receipt {
	data, err := readFile(receiptPath(folder, name), receiptMax)
	if err != nil {
		return nil
	}
	var r Receipt
	if yaml.Unmarshal(data, &r) != nil || r.Name != name {
		return nil
	}
	r.Version, r.InstalledAt = printable.Line(r.Version), printable.Line(r.InstalledAt)
	for _, s := range []*string{&r.Platform.OS, &r.Platform.Arch, &r.Platform.URL, &r.Platform.Checksum, &r.Platform.ExtractPath} {
		*s = printable.Line(*s)
	}
	return &r
}

// readFile reads a regular file of limited size.
func readFile(path string, limit int64) (data []byte, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", path)
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	return readAll(file, path, limit)
}

// readAll reads r to the end. It returns an error if r contains more than limit bytes.
func readAll(r io.Reader, name string, limit int64) ([]byte, error) {
	data, err := budget.ReadAll(r, "", "the file", limit)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", name, err)
	}
	return data, nil
}
