package registry_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/fluxkit/flux/internal/registry"
)

func gzipped(t testing.TB, content []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write(content); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func unzipped(t testing.TB, content []byte) []byte {
	t.Helper()
	r, err := gzip.NewReader(bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	all, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// FuzzExtract checks that an archive writes nothing outside of its folder, that files are the only
// things it creates in it, and that a malformed archive leaves nothing behind.
func FuzzExtract(f *testing.F) {
	for _, headers := range [][]tar.Header{
		{{Typeflag: tar.TypeReg, Name: "a/b", Mode: 0o755}, {Typeflag: tar.TypeReg, Name: "c", Mode: 0o644}},
		{{Typeflag: tar.TypeReg, Name: "../out", Mode: 0o644}},
		{{Typeflag: tar.TypeReg, Name: "/out", Mode: 0o644}},
		{{Typeflag: tar.TypeSymlink, Name: "l", Linkname: ".."}, {Typeflag: tar.TypeReg, Name: "l/out", Mode: 0o644}},
		{{Typeflag: tar.TypeLink, Name: "l", Linkname: "/etc/passwd"}, {Typeflag: tar.TypeFifo, Name: "p"}},
		{{Typeflag: tar.TypeReg, Name: "a", Mode: 0o644}, {Typeflag: tar.TypeReg, Name: "a/b", Mode: 0o644}},
		{{Typeflag: tar.TypeDir, Name: "d", Mode: 0}, {Typeflag: tar.TypeReg, Name: "d/e", Mode: 0o4777}},
	} {
		f.Add(unzipped(f, pack(f, headers...)), true)
	}
	f.Add([]byte{0x1f, 0x8b, 8, 0}, false)
	f.Fuzz(func(t *testing.T, content []byte, zip bool) {
		if zip {
			content = gzipped(t, content)
		}
		parent := t.TempDir()
		folder := filepath.Join(parent, "in")
		_, err := registry.Extract(t.Context(), bytes.NewReader(content), folder)
		entries, listed := os.ReadDir(parent)
		switch {
		case listed != nil:
			t.Fatal(listed)
		case err != nil && len(entries) > 0, err == nil && (len(entries) != 1 || entries[0].Name() != "in"):
			t.Fatalf("created: %v (%v)", entries, err)
		case err != nil:
			return
		}
		walked := filepath.WalkDir(folder, func(name string, entry fs.DirEntry, err error) error {
			if err == nil && !entry.IsDir() && !entry.Type().IsRegular() {
				err = errors.New(name + " is neither a file nor a folder")
			}
			if info, _ := entry.Info(); err == nil && info.Mode()&(fs.ModeSetuid|fs.ModeSetgid|0o022) != 0 {
				err = errors.New(name + " has mode " + info.Mode().String())
			}
			return err
		})
		if walked != nil {
			t.Error(walked)
		}
	})
}
