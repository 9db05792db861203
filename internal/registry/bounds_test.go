package registry_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fluxkit/flux/internal/budget"
	"github.com/fluxkit/flux/internal/registry"
	"github.com/fluxkit/flux/pkg/build/sourcetree"
)

// zeros are zeros without end.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// stream packs entries of zeros while they are read, so that they take neither memory nor disk.
func stream(t *testing.T, headers ...tar.Header) io.Reader {
	t.Helper()
	read, write := io.Pipe()
	packed := make(chan struct{})
	go func() {
		defer close(packed)
		zipped, err := gzip.NewWriterLevel(write, gzip.BestSpeed)
		w := tar.NewWriter(zipped)
		for _, h := range headers {
			if err == nil {
				err = w.WriteHeader(&h)
			}
			if err == nil {
				_, err = io.CopyN(w, zeros{}, h.Size)
			}
		}
		if err == nil {
			err = errors.Join(w.Close(), zipped.Close())
		}
		write.CloseWithError(err)
	}()
	t.Cleanup(func() {
		_ = read.Close()
		<-packed
	})
	return read
}

// device is an entry that is left out, although it has content.
func device(size int64) tar.Header {
	return tar.Header{Typeflag: tar.TypeCont, Name: "left-out", Mode: 0o600, Size: size}
}

// TestLeftOut: what is left out of an archive is bounded, too, and only what exceeds the bound.
func TestLeftOut(t *testing.T) {
	t.Parallel()
	file := tar.Header{Typeflag: tar.TypeReg, Name: "a.yaml", Mode: 0o600, Size: 1000}
	const tooLarge = "the headers and excluded entries are larger than 512 MiB"
	for name, c := range map[string]struct {
		archive func(t *testing.T) io.Reader
		want    string
	}{
		"one entry":       {func(t *testing.T) io.Reader { return stream(t, file, device(1<<40)) }, tooLarge},
		"several entries": {func(t *testing.T) io.Reader { return stream(t, device(300<<20), file, device(300<<20)) }, tooLarge},
		"below the bound": {func(t *testing.T) io.Reader { return stream(t, device(256<<20), file, device(255<<20)) }, ""},
		"what follows it": {func(t *testing.T) io.Reader { return io.MultiReader(stream(t, file), zeros{}) }, "the archive is followed by more than 64 MiB"},
		"padding after it": {func(t *testing.T) io.Reader {
			return io.MultiReader(stream(t, file), bytes.NewReader(make([]byte, 10240)))
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			_, err := registry.Extract(t.Context(), c.archive(t), filepath.Join(dir, "out"))
			entries, readErr := os.ReadDir(dir)
			if readErr != nil {
				t.Fatal(readErr)
			}
			if c.want == "" {
				if err != nil || len(entries) != 1 {
					t.Errorf("%v, and the folder has %v", err, entries)
				}
				return
			}
			var exceeded *budget.ExceededError
			if !errors.As(err, &exceeded) || !strings.Contains(err.Error(), c.want) || len(entries) > 0 {
				t.Errorf("got %v, want %q; left %v", err, c.want, entries)
			}
		})
	}
}

// TestArchiveInMemory: an archive that is unpacked in memory is bounded with its headers and what is
// left out of it.
func TestArchiveInMemory(t *testing.T) {
	t.Parallel()
	file := tar.Header{Typeflag: tar.TypeReg, Name: "a.yaml", Mode: 0o600, Size: 1000}
	if _, err := sourcetree.Archive(stream(t, device(500<<20), file)); err != nil {
		t.Errorf("500 MiB: %v", err)
	}
	_, err := sourcetree.Archive(stream(t, device(300<<20), file, device(300<<20)))
	var exceeded *budget.ExceededError
	if !errors.As(err, &exceeded) || !strings.Contains(err.Error(), "the archive unpacks to more than 512 MiB") {
		t.Errorf("600 MiB: %v", err)
	}
}
