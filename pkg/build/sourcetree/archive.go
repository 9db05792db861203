package sourcetree

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"

	"github.com/fluxkit/flux/internal/budget"
	"github.com/fluxkit/flux/internal/git/filetree"
)

// unzippedMax is the maximum unpacked size of an archive, including its headers and the entries
// that Archive excludes.
const unzippedMax = 512 << 20

// Archive unpacks a gzipped tar file into memory, such as the artifact of a source.
func Archive(r io.Reader) (*filetree.Tree, error) {
	unzipped, err := gzip.NewReader(r)
	if err != nil {
		return nil, fmt.Errorf("unzipping the archive: %w", err)
	}
	files := map[string][]byte{}
	limits := budget.New(budget.Default())
	// Excluded entries are decompressed as well, so they count.
	bounded := &io.LimitedReader{R: unzipped, N: unzippedMax}
	for archive := tar.NewReader(bounded); ; {
		header, err := archive.Next()
		if bounded.N <= 0 {
			err = &budget.ExceededError{Fact: "the archive unpacks to more than " + budget.Size(unzippedMax)}
		}
		if errors.Is(err, io.EOF) {
			return unpacked(files)
		}
		if err == nil {
			err = limits.Entry(header.Name)
		}
		if err != nil {
			return nil, fmt.Errorf("unpacking the archive: %w", err)
		}
		if header.Typeflag != tar.TypeReg {
			continue // directories are implied by their files; source-controller does not pack links
		}
		if err := limits.File(header.Name, header.Size); err != nil {
			return nil, fmt.Errorf("unpacking the archive: %w", err)
		}
		content := make([]byte, header.Size)
		if _, err := io.ReadFull(archive, content); err != nil {
			return nil, fmt.Errorf("unpacking %s: %w", header.Name, err)
		}
		files[Clean(header.Name)] = content
	}
}

// unpacked returns a tree of the files of an archive. It returns an error if a path is both a file and a directory, since no
// controller can unpack such an archive.
func unpacked(files map[string][]byte) (*filetree.Tree, error) {
	if _, root := files["."]; root {
		return nil, errors.New("unpacking the archive: its root is a file")
	}
	tree, err := filetree.InMemory(files)
	var conflict *filetree.ConflictError
	if errors.As(err, &conflict) {
		return nil, fmt.Errorf("unpacking the archive: %q is a file and a directory", conflict.Path)
	}
	return tree, err
}
