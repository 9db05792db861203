package registry

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
)

// unpackedMax bounds what an archive may unpack to.
const unpackedMax = 1 << 30

// Extract writes the files of an archive below a folder, which is made where
// it is missing. Nothing is written where one of the files would be outside
// of it, and no symbolic link leads out. Links in the archive are left out, as
// source-controller does; their names are returned.
func Extract(archive []byte, folder string) (left []string, err error) {
	if left, err = inspect(archive); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return nil, fmt.Errorf("making the folder: %w", err)
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		return nil, fmt.Errorf("opening the folder: %w", err)
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	return left, each(archive, func(header *tar.Header, content io.Reader) error {
		name := filepath.FromSlash(path.Clean(header.Name))
		switch header.Typeflag {
		case tar.TypeDir:
			return root.MkdirAll(name, 0o755)
		case tar.TypeReg:
			return writeFile(root, name, header.FileInfo().Mode(), content)
		}
		return nil
	})
}

// inspect reads an archive to its end before anything of it is written.
func inspect(archive []byte) (left []string, err error) {
	size := int64(0)
	err = each(archive, func(header *tar.Header, content io.Reader) error {
		if !filepath.IsLocal(filepath.FromSlash(path.Clean(header.Name))) {
			return fmt.Errorf("it holds %q, which would be written outside of the folder", header.Name)
		}
		if header.Typeflag != tar.TypeDir && header.Typeflag != tar.TypeReg {
			left = append(left, header.Name)
		}
		n, err := io.Copy(io.Discard, io.LimitReader(content, unpackedMax-size+1))
		if size += n; err == nil && size > unpackedMax {
			err = fmt.Errorf("it unpacks to more than %d MiB", unpackedMax>>20)
		}
		return err
	})
	return left, err
}

func each(archive []byte, visit func(*tar.Header, io.Reader) error) error {
	unzipped, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		return fmt.Errorf("unzipping the archive: %w", err)
	}
	for files := tar.NewReader(unzipped); ; {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = visit(header, files)
		}
		if err != nil {
			return fmt.Errorf("unpacking the archive: %w", err)
		}
	}
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
