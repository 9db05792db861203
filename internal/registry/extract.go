package registry

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"syscall"

	"github.com/fluxkit/flux/internal/budget"
)

// ErrLost is returned if the connection ended before the end of an archive. A malformed archive
// causes different errors.
var ErrLost = errors.New("the connection to the registry was lost")

const (
	// leftOutMax is the maximum size of the headers and excluded entries of an archive, which take
	// time but no disk space.
	leftOutMax = 512 << 20
	// trailingMax is the maximum size of the data after the archive.
	trailingMax = 64 << 20
)

// Extract writes the files of an archive to a directory, which is created if it does not exist. It
// first reads the whole archive into a temporary directory on the same file system: if the archive is
// malformed or too large, or ctx ends, the directory is not changed. No file is written outside of the
// directory. Entries other than files and directories are excluded, as in source-controller, and their
// names are returned.
func Extract(ctx context.Context, archive io.Reader, folder string) (left []string, err error) {
	folder, err = filepath.Abs(folder)
	if err != nil {
		return nil, fmt.Errorf("finding the directory: %w", err)
	}
	at, err := existing(folder)
	if err != nil {
		return nil, err
	}
	temporary, err := os.MkdirTemp(at, ".flux-pull-*")
	if err != nil {
		return nil, fmt.Errorf("creating a temporary directory: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(temporary)) }()
	u := &unpacking{ctx: ctx, budget: budget.New(budget.Unpacking())}
	if err := u.unpack(archive, temporary); err != nil {
		return nil, err
	}
	if at == folder {
		return u.left, u.merge(folder, filepath.Base(temporary))
	}
	return u.left, move(temporary, folder)
}

// existing returns the directory, or the nearest parent directory that exists.
func existing(folder string) (string, error) {
	for at := folder; ; at = filepath.Dir(at) {
		info, err := os.Stat(at)
		switch {
		case err == nil && info.IsDir():
			return at, nil
		case err == nil:
			return "", fmt.Errorf("%s is not a directory", at)
		case !errors.Is(err, fs.ErrNotExist) || at == filepath.Dir(at):
			return "", fmt.Errorf("opening the directory: %w", err)
		}
	}
}

// move renames a temporary directory to the target directory.
func move(temporary, folder string) error {
	if err := os.MkdirAll(filepath.Dir(folder), 0o755); err != nil {
		return fmt.Errorf("creating the directory: %w", err)
	}
	if err := os.Chmod(temporary, 0o755); err != nil {
		return fmt.Errorf("creating the directory: %w", err)
	}
	if err := os.Rename(temporary, folder); err != nil {
		return fmt.Errorf("creating the directory: %w", err)
	}
	return nil
}

// unpacking is the state of extracting an archive.
type unpacking struct {
	ctx    context.Context // unpacking is used for a single call
	budget *budget.Budget
	left   []string
	// read is the number of bytes read from the decompressed archive, and written the number of bytes written to
	// files.
	read, written int64
	// directories and files list the cleaned names of the unpacked directories and files in the order of the archive.
	directories, files []string
}

func (u *unpacking) unpack(archive io.Reader, temporary string) (err error) {
	root, err := os.OpenRoot(temporary)
	if err != nil {
		return fmt.Errorf("opening the temporary directory: %w", err)
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	from := budget.Checked(budget.Interruptible(u.ctx, archive), func(_ []byte, err error) error {
		if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) {
			return fmt.Errorf("%w: %w", ErrLost, err)
		}
		return nil
	})
	unzipped, err := gzip.NewReader(from)
	if err != nil {
		return fmt.Errorf("unzipping the archive: %w", u.cause(err))
	}
	counted := budget.Counted(unzipped, 0, func(done, _ int64) { u.read = done })
	for entries := tar.NewReader(counted); ; {
		header, err := entries.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			err = u.entry(root, header, entries)
		}
		if err != nil {
			return fmt.Errorf("unpacking the archive: %w", u.cause(err))
		}
	}
	// The digest is verified at the end of the response.
	tooMuch := &budget.ExceededError{Fact: "the archive is followed by more than " + budget.Size(trailingMax) + " of data"}
	if _, err := io.Copy(io.Discard, budget.Reader(from, trailingMax, tooMuch)); err != nil {
		return fmt.Errorf("unpacking the archive: %w", u.cause(err))
	}
	return nil
}

// cause returns the reason why the context ended, or err if it has not.
func (u *unpacking) cause(err error) error {
	if u.ctx.Err() != nil {
		return context.Cause(u.ctx)
	}
	return err
}

func (u *unpacking) entry(root *os.Root, header *tar.Header, content io.Reader) error {
	if err := u.budget.Entry(header.Name); err != nil {
		return err
	}
	leftOut := u.read - u.written
	if header.Typeflag != tar.TypeReg {
		leftOut += header.Size // counted before the entry is read
	}
	if leftOut > leftOutMax {
		return &budget.ExceededError{Fact: "the headers and excluded entries are larger than " + budget.Size(leftOutMax)}
	}
	name := filepath.FromSlash(path.Clean(header.Name))
	if !filepath.IsLocal(name) {
		return fmt.Errorf("the archive contains %q, which would be written outside of the directory", header.Name)
	}
	switch header.Typeflag {
	case tar.TypeDir:
		u.directories = append(u.directories, name)
		return root.MkdirAll(name, 0o755)
	case tar.TypeReg:
		if err := u.budget.File(header.Name, header.Size); err != nil {
			return err
		}
		u.files = append(u.files, name)
		u.written += header.Size
		return writeFile(root, name, header.FileInfo().Mode(), content)
	}
	u.left = append(u.left, header.Name)
	return nil
}

func writeFile(root *os.Root, name string, mode fs.FileMode, content io.Reader) (err error) {
	if err := root.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	allowed := fs.FileMode(0o644)
	if mode&0o111 != 0 {
		allowed = 0o755
	}
	file, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, allowed)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, content)
	return errors.Join(err, file.Close())
}

// merge moves unpacked files into an existing directory. It checks all files before it replaces the
// first one.
func (u *unpacking) merge(folder, temporary string) (err error) {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return fmt.Errorf("opening the directory: %w", err)
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	for _, name := range u.files {
		if info, err := root.Lstat(name); err == nil && info.IsDir() {
			return fmt.Errorf("%s is a directory, but a file in the archive", name)
		}
		u.directories = append(u.directories, filepath.Dir(name))
	}
	for _, name := range u.directories {
		if err := root.MkdirAll(name, 0o755); err != nil {
			return fmt.Errorf("creating a directory: %w", err)
		}
	}
	moved := map[string]bool{}
	for _, name := range u.files {
		if moved[name] { // the archive contains the file twice
			continue
		}
		moved[name] = true
		if err := root.Rename(filepath.Join(temporary, name), name); err != nil {
			return fmt.Errorf("replacing a file: %w", err)
		}
	}
	return nil
}
