package mapped

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fluxkit/flux/internal/budget"
	"github.com/fluxkit/flux/internal/git/filetree"
)

// Chart is a packed chart. Metadata is its Chart.yaml.
type Chart struct {
	Name, Version string
	Metadata      map[string]any
	Packed        []byte
	// files holds the unpacked files once they are used.
	files fs.FS
}

const chartFile = "Chart.yaml"

// ChartsIn returns the packed and unpacked charts in a directory and its subdirectories, or the packed chart
// in a file.
func ChartsIn(ctx context.Context, name string) ([]Chart, error) {
	if name == "" {
		return nil, nil
	}
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		packed, err := ReadFile(name)
		if err != nil {
			return nil, err
		}
		c, err := unpacked(packed)
		if c == nil || err != nil {
			return nil, err
		}
		return []Chart{*c}, nil
	}
	files, err := ReadFiles(ctx, filetree.Directory(name))
	if err != nil {
		return nil, err
	}
	if files[chartFile] != nil { // the charts below are its dependencies
		c, err := pack(files, ".")
		return []Chart{c}, err
	}
	var found []Chart
	for _, file := range slices.Sorted(maps.Keys(files)) {
		folder, depth := path.Dir(file), strings.Count(file, "/")
		switch {
		case path.Base(file) == chartFile && depth == 1:
			c, err := pack(files, folder)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", file, err)
			}
			found = append(found, c)
		case strings.HasSuffix(file, ".tgz") && depth <= 1:
			c, err := unpacked(files[file])
			if err != nil {
				return nil, fmt.Errorf("%s: %w", file, err)
			}
			if c != nil {
				found = append(found, *c)
			}
		}
	}
	return found, nil
}

// describe reads Chart.yaml.
func (c *Chart) describe(text []byte) error {
	if err := budget.Unmarshal(chartFile, text, &c.Metadata); err != nil {
		return err
	}
	c.Name, _ = c.Metadata["name"].(string)
	c.Version, _ = c.Metadata["version"].(string)
	if c.Name == "" || c.Version == "" || c.Name != path.Base(c.Name) {
		return errors.New("the chart requires a valid name and a version")
	}
	return nil
}

// pack packs the chart in a directory as Helm does.
func pack(files map[string][]byte, folder string) (Chart, error) {
	c := Chart{}
	if err := c.describe(files[path.Join(folder, chartFile)]); err != nil {
		return c, err
	}
	own := map[string][]byte{}
	for name, content := range files {
		inside, ok := strings.CutPrefix(name, folder+"/")
		if folder == "." {
			inside, ok = name, true
		}
		if ok {
			own[path.Join(c.Name, inside)] = content
		}
	}
	var err error
	c.Packed, err = PackFiles(own)
	return c, err
}

// PackFiles returns a reproducible gzipped tar archive of files.
func PackFiles(files map[string][]byte) ([]byte, error) {
	var b bytes.Buffer
	compressed := gzip.NewWriter(&b)
	archive := tar.NewWriter(compressed)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		header := &tar.Header{Name: name, Mode: 0o644, Size: int64(len(files[name])), Typeflag: tar.TypeReg}
		if err := archive.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := archive.Write(files[name]); err != nil {
			return nil, err
		}
	}
	err := errors.Join(archive.Close(), compressed.Close())
	return b.Bytes(), err
}

// unpacked reads a packed chart. It returns nil for another archive.
func unpacked(packed []byte) (*Chart, error) {
	compressed, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	limits := budget.Default()
	archive := tar.NewReader(budget.Reader(compressed, limits.Bytes, budget.TooLarge("the archive", "archive", limits.Bytes)))
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		if path.Base(header.Name) != chartFile || strings.Count(path.Clean(header.Name), "/") != 1 {
			continue
		}
		text, err := budget.ReadAll(archive, header.Name, "file", limits.FileBytes)
		if err != nil {
			return nil, err
		}
		c := &Chart{Packed: packed}
		return c, c.describe(text)
	}
}

// ReadFiles reads the files of a tree within the limits of artifacts.
func ReadFiles(ctx context.Context, tree fs.FS) (map[string][]byte, error) {
	files := map[string][]byte{}
	limits := budget.New(budget.Default())
	err := filetree.Walk(ctx, tree, func(name string, entry fs.DirEntry) error {
		info, err := entry.Info()
		if err != nil {
			return err
		}
		if err := limits.File(name, info.Size()); err != nil {
			return err
		}
		files[name], err = fs.ReadFile(tree, name)
		return err
	})
	return files, err
}

// ReadFile reads a file within the limits of artifacts.
func ReadFile(name string) ([]byte, error) {
	folder, base := filepath.Split(filepath.Clean(name))
	if folder == "" {
		folder = "."
	}
	tree := filetree.Directory(folder)
	info, err := fs.Stat(tree, path.Clean(base))
	if err != nil {
		return nil, err
	}
	if err := budget.New(budget.Default()).File(base, info.Size()); err != nil {
		return nil, err
	}
	return fs.ReadFile(tree, base)
}
