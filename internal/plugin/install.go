package plugin

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"time"

	"go.yaml.in/yaml/v3"
)

// downloadMax bounds a download.
const downloadMax = 512 << 20

// Folder is the plugin folder, which one process changes at a time.
type Folder struct {
	Path string
	// Now is the clock that receipts are dated by.
	Now func() time.Time
	// Downloaded is told how much of a download has come, of how much where that
	// is known; it may be nil.
	Downloaded func(done, total int64)
}

// Install downloads a release, verifies it and puts it in place of the one that
// is there. After an error, or when the process is killed, the folder has either
// the old program with its receipt or the new one.
func (f Folder) Install(ctx context.Context, c *Catalogue, r *Release) (err error) {
	if err := os.MkdirAll(f.Path, 0o755); err != nil {
		return fmt.Errorf("making the plugin folder: %w", err)
	}
	unlock, err := f.lock()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	target := filepath.Join(f.Path, fileName(r.Name))
	if exists(target) && readReceipt(f.Path, r.Name) == nil {
		return &ForeignError{r.Name, target}
	}
	s := f.staged(r.Name)
	defer func() { err = errors.Join(err, s.remove()) }()
	if err := f.stage(ctx, c, r, s); err != nil {
		return err
	}
	return s.commit()
}

// stage writes the program and the receipt under temporary names.
func (f Folder) stage(ctx context.Context, c *Catalogue, r *Release, s staged) error {
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

// download writes what the catalogue offers to a file, and fails where it is not
// what the checksum says.
func (f Folder) download(ctx context.Context, c *Catalogue, r *Release, to string) (size int64, err error) {
	body, err := c.open(ctx, r.Platform.URL)
	if err != nil {
		return 0, &DownloadError{r.Name, r.Version, err}
	}
	defer body.Close()
	sum := sha256.New()
	err = writeWhole(to, 0o600, func(file *os.File) error {
		size, err = io.Copy(io.MultiWriter(file, sum), &countedReader{from: io.LimitReader(body, downloadMax+1), total: body.size, told: f.Downloaded})
		return err
	})
	if cause := context.Cause(ctx); err != nil && cause != nil {
		return 0, cause
	}
	switch got := "sha256:" + hex.EncodeToString(sum.Sum(nil)); {
	case err != nil:
		return 0, &DownloadError{r.Name, r.Version, fmt.Errorf("%s: %w", c.address(r.Platform.URL), err)}
	case size > downloadMax:
		return 0, fmt.Errorf("%s is larger than %d MiB", c.address(r.Platform.URL), downloadMax>>20)
	case got != r.Platform.Checksum:
		return 0, &ChecksumError{c.address(r.Platform.URL), r.Platform.Checksum, got}
	case size == 0:
		return 0, fmt.Errorf("%s is empty", c.address(r.Platform.URL))
	}
	return size, nil
}

// countedReader tells how much has been read.
type countedReader struct {
	from        io.Reader
	done, total int64
	told        func(done, total int64)
}

func (c *countedReader) Read(p []byte) (int, error) {
	n, err := c.from.Read(p)
	if c.done += int64(n); c.told != nil {
		c.told(c.done, c.total)
	}
	return n, err
}

// unpack makes the program of a verified download.
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

// fileName is the last part of the download's path.
func (r *Release) fileName() string {
	u, err := url.Parse(r.Platform.URL)
	if err != nil {
		return ""
	}
	return path.Base(u.Path)
}

// writeWhole makes a file that is on disk when it returns.
func writeWhole(path string, mode os.FileMode, write func(*os.File) error) (err error) {
	// O_EXCL does not follow a link that somebody has put there.
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

// Uninstall removes a plugin that was installed by Install: the program and
// the receipt.
func (f Folder) Uninstall(name string) (err error) {
	target := filepath.Join(f.Path, fileName(name))
	if !validName(runnable, name) || !exists(target) && !exists(receiptPath(f.Path, name)) {
		return &NotInstalledError{name, f.Path}
	}
	unlock, err := f.lock()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	if readReceipt(f.Path, name) == nil {
		return &ForeignError{name, target}
	}
	// The receipt goes last: what is cut off in between can be repeated.
	if err := os.Remove(target); err != nil && !isMissing(err) {
		return fmt.Errorf("removing the plugin: %w", err)
	}
	if err := os.Remove(receiptPath(f.Path, name)); err != nil && !isMissing(err) {
		return fmt.Errorf("removing the receipt of the plugin: %w", err)
	}
	return nil
}
