package registry_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fluxkit/flux/internal/registry"
)

func archive(t *testing.T, headers ...tar.Header) io.Reader {
	t.Helper()
	return bytes.NewReader(pack(t, headers...))
}

func pack(t testing.TB, headers ...tar.Header) []byte {
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
	left, err := registry.Extract(t.Context(), archive(t,
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
		_, err := registry.Extract(t.Context(), archive(t,
			tar.Header{Typeflag: tar.TypeReg, Name: "first", Mode: 0o644},
			tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644},
		), folder)
		if err == nil || !strings.Contains(err.Error(), "outside of the directory") {
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
	if _, err := registry.Extract(t.Context(), archive(t, tar.Header{Typeflag: tar.TypeReg, Name: "a/b", Mode: 0o644}), folder); err == nil {
		t.Error("no error")
	}
	if entries, err := os.ReadDir(outside); err != nil || len(entries) > 0 {
		t.Errorf("written outside: %v, %v", entries, err)
	}
}

// failing is an archive that breaks off after what is in it.
type failing struct{ io.Reader }

func (f failing) Read(p []byte) (int, error) {
	n, err := f.Reader.Read(p)
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

// A folder that exists is as it was where the archive cannot be unpacked to its
// end, be it only that its digest is wrong.
func TestExtractChangesNothingHalfway(t *testing.T) {
	t.Parallel()
	packed := pack(t, tar.Header{Typeflag: tar.TypeReg, Name: "a/kept", Mode: 0o644}, tar.Header{Typeflag: tar.TypeReg, Name: "b", Mode: 0o644})
	stopped, cancel := context.WithCancelCause(t.Context())
	reason := errors.New("time is over")
	cancel(reason)
	for name, c := range map[string]struct {
		ctx  context.Context
		from io.Reader
		want error
	}{
		"broken off":   {t.Context(), failing{bytes.NewReader(packed[:len(packed)/2])}, io.ErrUnexpectedEOF},
		"wrong digest": {t.Context(), failing{bytes.NewReader(packed)}, io.ErrUnexpectedEOF},
		"interrupted":  {stopped, bytes.NewReader(packed), reason},
	} {
		folder := t.TempDir()
		if err := os.MkdirAll(filepath.Join(folder, "a"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, "a", "kept"), []byte("mine"), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := registry.Extract(c.ctx, c.from, folder); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
		entries, err := os.ReadDir(folder)
		content, readErr := os.ReadFile(filepath.Join(folder, "a", "kept"))
		if err != nil || readErr != nil || len(entries) != 1 || string(content) != "mine" {
			t.Errorf("%s: the folder has changed: %v, %q, %v, %v", name, entries, content, err, readErr)
		}
	}
}

func TestExtractReplacesFiles(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	for _, name := range []string{"a", "mine"} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte("before"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := registry.Extract(t.Context(), archive(t, tar.Header{Typeflag: tar.TypeReg, Name: "a", Mode: 0o644}, tar.Header{Typeflag: tar.TypeDir, Name: "empty"}), folder); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(folder)
	if err != nil || len(entries) != 3 {
		t.Fatalf("in the folder: %v, %v", entries, err)
	}
	for name, want := range map[string]string{"a": "a", "mine": "before"} {
		if content, err := os.ReadFile(filepath.Join(folder, name)); err != nil || string(content) != want {
			t.Errorf("%s holds %q, %v", name, content, err)
		}
	}
	if _, err := registry.Extract(t.Context(), archive(t, tar.Header{Typeflag: tar.TypeReg, Name: "empty", Mode: 0o644}), folder); err == nil {
		t.Error("a file has taken the place of a folder")
	}
}
