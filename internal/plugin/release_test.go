package plugin

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// entry is a file of an archive.
type entry struct {
	name, content string
	link          string
	mode          fs.FileMode
}

func tarOf(t testing.TB, entries ...entry) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, e := range entries {
		h := &tar.Header{Name: e.name, Size: int64(len(e.content)), Mode: 0o755, Typeflag: tar.TypeReg}
		if e.link != "" {
			h.Typeflag, h.Linkname = tar.TypeSymlink, e.link
		}
		if e.mode.IsDir() {
			h.Typeflag = tar.TypeDir
		}
		must(t, w.WriteHeader(h))
		_, err := w.Write([]byte(e.content))
		must(t, err)
	}
	must(t, w.Close())
	return b.Bytes()
}

func gzipOf(t testing.TB, data []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err := w.Write(data)
	must(t, err)
	must(t, w.Close())
	return b.Bytes()
}

func zipOf(t testing.TB, entries ...entry) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, e := range entries {
		h := &zip.FileHeader{Name: e.name, Method: zip.Deflate}
		h.SetMode(e.mode)
		if e.link != "" {
			h.SetMode(0o777 | fs.ModeSymlink)
			e.content = e.link
		}
		f, err := w.CreateHeader(h)
		must(t, err)
		_, err = f.Write([]byte(e.content))
		must(t, err)
	}
	must(t, w.Close())
	return b.Bytes()
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func sumOf(data []byte) string {
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// shelf is a catalog in a folder, and a plugin folder.
type shelf struct {
	catalog *Catalog
	folder  Directory
	dir     string
}

func newShelf(t *testing.T) *shelf {
	t.Helper()
	dir := t.TempDir()
	c, err := OpenCatalog(dir, "test")
	must(t, err)
	now := func() time.Time { return time.Date(2026, 3, 30, 10, 0, 0, 0, time.UTC) }
	return &shelf{c, Directory{Path: filepath.Join(t.TempDir(), "plugins"), Now: now}, dir}
}

// offer adds a download to the catalog and returns its release.
func (s *shelf) offer(t *testing.T, version, file string, data []byte) *Release {
	t.Helper()
	must(t, os.WriteFile(filepath.Join(s.dir, file), data, 0o600))
	return &Release{Name: "tool", Version: version, bin: "flux-tool", Platform: Platform{
		OS: runtime.GOOS, Arch: runtime.GOARCH, URL: file, Checksum: sumOf(data),
	}}
}

func (s *shelf) install(t *testing.T, r *Release) error {
	t.Helper()
	return s.folder.Install(t.Context(), s.catalog, r)
}

// holds compares the plugin folder with names and contents. Receipts are compared by version.
func (s *shelf) holds(t *testing.T, want map[string]string) {
	t.Helper()
	entries, err := os.ReadDir(s.folder.Path)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(s.folder.Path, e.Name()))
		must(t, err)
		got[e.Name()] = string(data)
		if name, ok := strings.CutSuffix(strings.TrimPrefix(e.Name(), prefix), ".yaml"); ok {
			got[e.Name()] = readReceipt(s.folder.Path, name).Version
		}
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("the plugin folder has\n%v\nwant\n%v", got, want)
	}
}
