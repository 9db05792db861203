package sourcetree_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"io/fs"
	"testing"
	"testing/fstest"
	"unicode/utf8"

	"github.com/fluxkit/flux/internal/budget"
	"github.com/fluxkit/flux/pkg/build/sourcetree"
)

// tarOf returns an archive of headers, each with its name as content.
func tarOf(f *testing.F, headers ...tar.Header) []byte {
	f.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, h := range headers {
		if h.Typeflag == tar.TypeReg {
			h.Size = int64(len(h.Name))
		}
		if err := w.WriteHeader(&h); err != nil {
			f.Fatal(err)
		}
		if h.Typeflag == tar.TypeReg {
			if _, err := w.Write([]byte(h.Name)); err != nil {
				f.Fatal(err)
			}
		}
	}
	if err := w.Close(); err != nil {
		f.Fatal(err)
	}
	return b.Bytes()
}

// FuzzArchive checks that an unpacked archive is a file system in itself, within the limits.
func FuzzArchive(f *testing.F) {
	file := func(name string) tar.Header { return tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644} }
	for _, headers := range [][]tar.Header{
		{file("a.yaml"), file("apps/b.yaml")}, {file("../../etc/passwd"), file("/abs")}, {file("a"), file("a/b")}, {file("a/b"), file("a")},
		{file("."), file("a/..")}, {file("a"), file("./a")}, {{Typeflag: tar.TypeSymlink, Name: "l", Linkname: "/etc"}, file("l/passwd")},
	} {
		f.Add(tarOf(f, headers...))
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		var packed bytes.Buffer
		w := gzip.NewWriter(&packed)
		if _, err := w.Write(content); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		tree, err := sourcetree.Archive(&packed)
		if err != nil {
			return
		}
		var total int64
		valid, found := true, []string(nil)
		err = fs.WalkDir(tree, ".", func(name string, entry fs.DirEntry, err error) error {
			valid = valid && utf8.ValidString(name)
			if err != nil || entry.IsDir() {
				return err
			}
			found = []string{name}
			text, err := fs.ReadFile(tree, name)
			total += int64(len(text))
			return err
		})
		if err != nil && valid {
			t.Errorf("walking the tree: %v", err)
		}
		if valid {
			if err := fstest.TestFS(tree, found...); err != nil {
				t.Error(err)
			}
		}
		if total > budget.Default().Bytes {
			t.Errorf("%d bytes are unpacked", total)
		}
	})
}
