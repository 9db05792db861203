package plugin

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"path"
	"path/filepath"
	"strings"

	"github.com/fluxkit/flux/internal/budget"
)

const (
	// programMax is the maximum size of a program, and of the archive entries before the program.
	programMax = 1 << 30
	// entriesMax is the maximum number of entries that are read from an archive.
	entriesMax = 10_000
	// directoryMax is the maximum size of the central directory of a zip archive, which is read as
	// a whole.
	directoryMax = 4 << 20
)

// format is the file format of a download.
type format int

const (
	plainProgram format = iota
	tarArchive
	gzipArchive
	zipArchive
)

// formatOf returns the format of a download from the file name in its URL, or else from its first
// bytes.
func formatOf(name string, file io.ReaderAt) format {
	switch name = strings.ToLower(name); {
	case strings.HasSuffix(name, ".tar.gz"), strings.HasSuffix(name, ".tgz"):
		return gzipArchive
	case strings.HasSuffix(name, ".tar"):
		return tarArchive
	case strings.HasSuffix(name, ".zip"):
		return zipArchive
	case strings.HasSuffix(name, windowsSuffix):
		return plainProgram
	}
	// If the file is shorter than head, the rest of head is zero, which matches no format.
	head := make([]byte, 262)
	_, _ = file.ReadAt(head, 0)
	switch {
	case bytes.HasPrefix(head, []byte{0x1f, 0x8b}):
		return gzipArchive
	case bytes.HasPrefix(head, []byte("PK\x03\x04")):
		return zipArchive
	case bytes.Equal(head[257:], []byte("ustar")):
		return tarArchive
	}
	return plainProgram
}

// wanted specifies the program in an archive.
type wanted struct {
	// path is the path of the file, or only its name if exact is false.
	path  string
	exact bool
}

// is reports whether a name in an archive is the name of the program. Names that point outside of the archive never
// match, although the program is not extracted under its name in the archive.
func (w wanted) is(name string) bool {
	name = path.Clean(name)
	return name == w.path || !w.exact && path.Base(name) == w.path && filepath.IsLocal(name)
}

// source is a download that supports sequential and random reads.
type source interface {
	io.Reader
	io.ReaderAt
}

// extract copies the program from an archive.
func extract(ctx context.Context, f format, archive source, size int64, name wanted, to io.Writer) error {
	switch f {
	case zipArchive:
		return fromZip(ctx, archive, size, name, to)
	case gzipArchive:
		unzipped, err := gzip.NewReader(archive)
		if err != nil {
			return fmt.Errorf("unpacking the archive: %w", err)
		}
		return fromTar(ctx, unzipped, name, to)
	}
	return fromTar(ctx, archive, name, to)
}

func fromTar(ctx context.Context, r io.Reader, name wanted, to io.Writer) error {
	archive := tar.NewReader(bounded(ctx, r))
	for range entriesMax {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return fmt.Errorf("file %q not found in the archive", name.path)
		}
		if err != nil {
			return fmt.Errorf("unpacking the archive: %w", err)
		}
		if !name.is(header.Name) {
			continue
		}
		if header.Typeflag != tar.TypeReg {
			return fmt.Errorf("%q in the archive is not a regular file", name.path)
		}
		return copyProgram(to, archive)
	}
	return fmt.Errorf("the archive has more than %d entries", entriesMax)
}

func fromZip(ctx context.Context, file io.ReaderAt, size int64, name wanted, to io.Writer) error {
	directory := &directory{file, directoryMax}
	archive, err := zip.NewReader(directory, size)
	if err != nil {
		return fmt.Errorf("unpacking the archive: %w", err)
	}
	directory.left = math.MaxInt64
	for _, entry := range archive.File {
		if !name.is(entry.Name) {
			continue
		}
		if !entry.Mode().IsRegular() {
			return fmt.Errorf("%q in the archive is not a regular file", name.path)
		}
		content, err := entry.Open()
		if err != nil {
			return fmt.Errorf("unpacking the archive: %w", err)
		}
		defer content.Close()
		return copyProgram(to, bounded(ctx, content))
	}
	return fmt.Errorf("file %q not found in the archive", name.path)
}

func copyProgram(to io.Writer, from io.Reader) error {
	n, err := io.Copy(to, from)
	if err != nil {
		return fmt.Errorf("unpacking the archive: %w", err)
	}
	if n == 0 {
		return errors.New("the program in the archive is empty")
	}
	return nil
}

// bounded limits the size of a program and of the entries before it.
func bounded(ctx context.Context, from io.Reader) io.Reader {
	return budget.Reader(budget.Interruptible(ctx, from), programMax, fmt.Errorf("larger than %d MiB", programMax>>20))
}

// directory limits the size of the central directory, which zip reads as a whole.
type directory struct {
	from io.ReaderAt
	left int64
}

// ReadAt implements io.ReaderAt.
func (d *directory) ReadAt(p []byte, at int64) (int, error) {
	if d.left -= int64(len(p)); d.left < 0 {
		return 0, fmt.Errorf("the zip directory is larger than %d MiB", directoryMax>>20)
	}
	return d.from.ReadAt(p, at)
}
