package sourcetree

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
	"slices"
	"strings"

	"github.com/fluxcd/pkg/sourceignore"
	"github.com/fluxcd/pkg/sourceignore/gitignore"
)

// ArtifactOptions selects the files of an artifact.
type ArtifactOptions struct {
	// Ignore holds patterns in the format of .gitignore for files to exclude.
	Ignore []string
	// ResolveSymlinks packs the targets of symbolic links. Without it, symbolic links are excluded,
	// as in source-controller.
	ResolveSymlinks bool
	// Skip holds the absolute paths of files to exclude, such as the artifact itself.
	Skip []string
}

// Artifact packs a directory or a single file into a gzipped tar file in the format of
// source-controller. The same content results in the same bytes: owners and modification times are
// omitted.
func Artifact(ctx context.Context, w io.Writer, from string, o ArtifactOptions) error {
	from, err := filepath.Abs(from)
	if err != nil {
		return fmt.Errorf("finding %s: %w", from, err)
	}
	zipped := gzip.NewWriter(w)
	p := &packing{ctx: ctx, archive: tar.NewWriter(zipped), options: o}
	p.matcher = sourceignore.NewMatcher(sourceignore.ReadPatterns(strings.NewReader(strings.Join(o.Ignore, "\n")), nil))
	info, err := os.Stat(from) // the directory itself may be a symbolic link
	if err != nil {
		return fmt.Errorf("reading the directory: %w", err)
	}
	if info.IsDir() {
		p.open = []string{realPath(from)}
		if err = p.header("."); err == nil {
			err = p.directory(from, "")
		}
	} else {
		err = p.file(from, filepath.Base(from), info)
	}
	if err != nil {
		return err
	}
	if err := errors.Join(p.archive.Close(), zipped.Close()); err != nil {
		return fmt.Errorf("writing the artifact: %w", err)
	}
	return nil
}

type packing struct {
	ctx     context.Context
	archive *tar.Writer
	matcher gitignore.Matcher
	options ArtifactOptions
	// open holds the real paths of the parent directories: a link to one of them would cause infinite
	// recursion.
	open []string
}

// directory packs the entries of a directory on disk, sorted by name.
func (p *packing) directory(at, name string) error {
	entries, err := os.ReadDir(at)
	if err != nil {
		return fmt.Errorf("reading the directory: %w", err)
	}
	for _, entry := range entries {
		if err := p.entry(filepath.Join(at, entry.Name()), path.Join(name, entry.Name())); err != nil {
			return err
		}
	}
	return nil
}

func (p *packing) entry(at, name string) error {
	if err := p.ctx.Err(); err != nil {
		return err
	}
	info, err := os.Lstat(at)
	if err == nil && info.Mode()&fs.ModeSymlink != 0 && p.options.ResolveSymlinks {
		info, err = os.Stat(at)
	}
	if err != nil {
		return fmt.Errorf("reading a file: %w", err)
	}
	if slices.Contains(p.options.Skip, at) || p.matcher.Match(strings.Split(name, "/"), info.IsDir()) {
		return nil
	}
	switch {
	case info.IsDir():
		return p.below(at, name)
	case info.Mode().IsRegular():
		return p.file(at, name, info)
	}
	return nil // symbolic links, sockets and devices
}

// below packs a subdirectory.
func (p *packing) below(at, name string) error {
	real := realPath(at)
	for _, above := range p.open {
		if above == real {
			return fmt.Errorf("%s is a symbolic link to one of its parent directories", at)
		}
	}
	if err := p.header(name); err != nil {
		return err
	}
	p.open = append(p.open, real)
	defer func() { p.open = p.open[:len(p.open)-1] }()
	return p.directory(at, name)
}

// header packs the entry of a directory, including the root, with a name without a trailing slash, so
// that the digest of a directory is the same as with the flux CLI of Flux 2.9.
func (p *packing) header(folder string) error {
	header := &tar.Header{Typeflag: tar.TypeDir, Name: folder, Mode: 0o755, Format: tar.FormatPAX}
	if err := p.archive.WriteHeader(header); err != nil {
		return fmt.Errorf("packing %s: %w", folder, err)
	}
	return nil
}

func realPath(folder string) string {
	if real, err := filepath.EvalSymlinks(folder); err == nil {
		return real
	}
	return folder
}

func (p *packing) file(at, name string, info fs.FileInfo) (err error) {
	content, err := os.Open(at)
	if err != nil {
		return fmt.Errorf("reading a file: %w", err)
	}
	defer func() { err = errors.Join(err, content.Close()) }()
	mode := int64(0o644)
	if info.Mode()&0o111 != 0 {
		mode = 0o755
	}
	header := &tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: mode, Size: info.Size(), Format: tar.FormatPAX}
	if err := p.archive.WriteHeader(header); err != nil {
		return fmt.Errorf("packing %s: %w", name, err)
	}
	if _, err := io.Copy(p.archive, content); err != nil {
		return fmt.Errorf("packing %s: %w", name, err)
	}
	return nil
}
