package registry_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fluxkit/flux/internal/registry"
)

func pack(t *testing.T, headers ...tar.Header) []byte {
	t.Helper()
	var packed bytes.Buffer
	zipped := gzip.NewWriter(&packed)
	w := tar.NewWriter(zipped)
	for _, h := range headers {
		if h.Typeflag == tar.TypeReg {
			h.Size = int64(len(h.Name))
		}
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if h.Typeflag == tar.TypeReg {
			if _, err := io.WriteString(w, h.Name); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := zipped.Close(); err != nil {
		t.Fatal(err)
	}
	return packed.Bytes()
}

func TestExtract(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "new")
	left, err := registry.Extract(pack(t,
		tar.Header{Typeflag: tar.TypeDir, Name: ".", Mode: 0o755},
		tar.Header{Typeflag: tar.TypeReg, Name: "a/run", Mode: 0o755},
		tar.Header{Typeflag: tar.TypeSymlink, Name: "link", Linkname: "/etc/passwd"},
	), folder)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"link"}, left); diff != "" {
		t.Error(diff)
	}
	content, err := os.ReadFile(filepath.Join(folder, "a", "run"))
	if err != nil || string(content) != "a/run" {
		t.Errorf("read %q, %v", content, err)
	}
	if info, err := os.Stat(filepath.Join(folder, "a", "run")); err != nil || info.Mode()&0o100 == 0 {
		t.Errorf("the file cannot be run: %v", err)
	}
	if _, err := os.Lstat(filepath.Join(folder, "link")); err == nil {
		t.Error("the link was written")
	}
}

func TestExtractStaysInside(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"../out", "a/../../out", "/out"} {
		parent := t.TempDir()
		folder := filepath.Join(parent, "in")
		_, err := registry.Extract(pack(t,
			tar.Header{Typeflag: tar.TypeReg, Name: "first", Mode: 0o644},
			tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644},
		), folder)
		if err == nil || !strings.Contains(err.Error(), "outside of the folder") {
			t.Errorf("%s: %v", name, err)
		}
		if entries, err := os.ReadDir(parent); err != nil || len(entries) > 0 {
			t.Errorf("%s: written: %v, %v", name, entries, err)
		}
	}
}

// A link that is in the folder already is no way out either.
func TestExtractFollowsNoLinkOut(t *testing.T) {
	t.Parallel()
	outside, folder := t.TempDir(), t.TempDir()
	if err := os.Symlink(outside, filepath.Join(folder, "a")); err != nil {
		t.Fatal(err)
	}
	if _, err := registry.Extract(pack(t, tar.Header{Typeflag: tar.TypeReg, Name: "a/b", Mode: 0o644}), folder); err == nil {
		t.Error("no error")
	}
	if entries, err := os.ReadDir(outside); err != nil || len(entries) > 0 {
		t.Errorf("written outside: %v, %v", entries, err)
	}
}
