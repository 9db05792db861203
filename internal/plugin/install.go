package plugin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/fluxkit/flux/internal/budget"
	"github.com/fluxkit/flux/internal/hint"
)

// downloadMax is the maximum size of a download.
const downloadMax = 512 << 20

// Directory is the plugin directory. Only one process at a time may change it.
type Directory struct {
	Path string
	// Now returns the current time for receipts.
	Now func() time.Time
	// Downloaded is called with the progress of a download and its total size, if known. It may be
	// nil.
	Downloaded func(done, total int64)
}

// Install downloads and verifies a release, and installs it in place of any other version. After an error, or if the
// process is killed, the directory contains either the old program and receipt or the new program and receipt.
func (f Directory) Install(ctx context.Context, c *Catalog, r *Release) (err error) {
	if err := os.MkdirAll(f.Path, 0o755); err != nil {
		return fmt.Errorf("creating the plugin directory: %w", err)
	}
	unlock, err := f.lock()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	target := filepath.Join(f.Path, fileName(r.Name))
	if exists(target) && readReceipt(f.Path, r.Name) == nil {
		return ForeignError(target)
	}
	s := f.staged(r.Name)
	defer func() { err = errors.Join(err, s.remove()) }()
	if err := f.stage(ctx, c, r, s); err != nil {
		return err
	}
	return s.commit()
}

// stage writes the program and the receipt under temporary names.
func (f Directory) stage(ctx context.Context, c *Catalog, r *Release, s staged) error {
	size, err := f.download(ctx, c, r, s.download)
	if err != nil {
		return err
	}
	if err := unpack(ctx, r, s, size); err != nil {
		return fmt.Errorf("%s: %w", c.address(r.Platform.URL), err)
	}
	receipt := Receipt{Name: r.Name, Version: r.Version, InstalledAt: f.Now().UTC().Format(time.RFC3339), Platform: r.Platform}
	receipt.Platform.URL = c.address(r.Platform.URL)
	text, err := yaml.Marshal(receipt)
	if err != nil {
		return fmt.Errorf("encoding the receipt: %w", err)
	}
	return writeWhole(s.receipt, 0o644, func(file *os.File) error {
		_, err := file.Write(text)
		return err
	})
}

// download writes a download to a file. It returns an error if the checksum does not match.
func (f Directory) download(ctx context.Context, c *Catalog, r *Release, to string) (size int64, err error) {
	body, err := c.open(ctx, r.Platform.URL)
	if err != nil {
		return 0, downloadError(r, err)
	}
	defer body.Close()
	var sum string
	err = writeWhole(to, 0o600, func(file *os.File) error {
		size, sum, err = body.Copy(file, downloadMax, f.Downloaded)
		return err
	})
	if cause := context.Cause(ctx); err != nil && cause != nil {
		return 0, cause
	}
	var tooLarge *budget.ExceededError
	switch got := "sha256:" + sum; {
	case errors.As(err, &tooLarge):
		return 0, fmt.Errorf("%s is larger than %d MiB", c.address(r.Platform.URL), downloadMax>>20)
	case err != nil:
		return 0, downloadError(r, fmt.Errorf("%s: %w", c.address(r.Platform.URL), err))
	case got != r.Platform.Checksum:
		return 0, hint.Errorf("nothing was installed: run the command again, and report it to the plugin's maintainers if the checksum differs again",
			"checksum of %s does not match: expected %s, got %s", c.address(r.Platform.URL), r.Platform.Checksum, got)
	case size == 0:
		return 0, fmt.Errorf("%s is empty", c.address(r.Platform.URL))
	}
	return size, nil
}

// unpack extracts the program from a download whose checksum was verified.
func unpack(ctx context.Context, r *Release, s staged, size int64) (err error) {
	archive, err := os.Open(s.download)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, archive.Close()) }()
	f := formatOf(r.fileName(), archive)
	return writeWhole(s.program, 0o755, func(file *os.File) error {
		if f == plainProgram {
			_, err := io.Copy(file, archive)
			return err
		}
		return extract(ctx, f, archive, size, r.inArchive(), file)
	})
}

// fileName returns the last element of the download's path.
func (r *Release) fileName() string {
	u, err := url.Parse(r.Platform.URL)
	if err != nil {
		return ""
	}
	return path.Base(u.Path)
}

// writeWhole creates a file and syncs it to disk.
func writeWhole(path string, mode os.FileMode, write func(*os.File) error) (err error) {
	// O_EXCL does not follow symbolic links.
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if err := write(file); err != nil {
		return err
	}
	if err := file.Chmod(mode); err != nil {
		return err
	}
	return file.Sync()
}

// Uninstall removes the program and the receipt of a plugin that was installed by Install.
func (f Directory) Uninstall(name string) (err error) {
	target := filepath.Join(f.Path, fileName(name))
	if !validName(runnable(), name) || !exists(target) && !exists(receiptPath(f.Path, name)) {
		return NotInstalledError(name, f.Path)
	}
	unlock, err := f.lock()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	if readReceipt(f.Path, name) == nil {
		return ForeignError(target)
	}
	// Remove the receipt last, so that an interrupted removal can be repeated.
	if err := os.Remove(target); err != nil && !isMissing(err) {
		return fmt.Errorf("removing the plugin: %w", err)
	}
	if err := os.Remove(receiptPath(f.Path, name)); err != nil && !isMissing(err) {
		return fmt.Errorf("removing the receipt of the plugin: %w", err)
	}
	return nil
}
