package hostile_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
)

// archive is a pulled artifact.
type archive struct {
	row
	pack func(w *tar.Writer) error
	raw  []byte
}

func archives() []archive {
	file := func(w *tar.Writer, name string, size int64) error {
		if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: size}); err != nil {
			return err
		}
		_, err := io.CopyN(w, zeros{}, size)
		return err
	}
	one := func(h tar.Header) func(w *tar.Writer) error {
		return func(w *tar.Writer) error { return w.WriteHeader(&h) }
	}
	return []archive{
		{row{name: "an archive with 200,000 entries", want: "the archive has more than 100000 entries"}, func(w *tar.Writer) error {
			for range 200_000 {
				if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeSymlink, Name: "l", Linkname: "x"}); err != nil {
					return err
				}
			}
			return nil
		}, nil},
		{row{name: "an archive of 2 MB that unpacks to 2 GB", want: "the file is larger than 1024 MiB"}, func(w *tar.Writer) error { return file(w, "big", 2<<30) }, nil},
		{row{name: "an archive with a file above its directory", want: "would be written outside of the directory"}, func(w *tar.Writer) error { return file(w, "../out", 1) }, nil},
		{row{name: "an archive with an absolute path", want: "would be written outside of the directory"}, func(w *tar.Writer) error { return file(w, "/out", 1) }, nil},
		{row{name: "an archive with a name of 5 KB", want: "the name of the entry is longer than 4096 bytes"}, func(w *tar.Writer) error { return file(w, strings.Repeat("x", 5<<10), 1) }, nil},
		{row{name: "an archive with a device, which is skipped"}, one(tar.Header{Typeflag: tar.TypeChar, Name: "zero", Devmajor: 1, Devminor: 5}), nil},
		{row{name: "an archive that is not gzipped", want: "unzipping the archive"}, nil, []byte("kind: ConfigMap\n")},
		{row{name: "a truncated archive", want: "unpacking the archive"}, nil, nil},
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// content returns the layer of the artifact.
func (a archive) content(t *testing.T) []byte {
	t.Helper()
	if a.raw != nil {
		return a.raw
	}
	var packed bytes.Buffer
	zipped, err := gzip.NewWriterLevel(&packed, gzip.BestSpeed)
	if err != nil {
		t.Fatal(err)
	}
	w := tar.NewWriter(zipped)
	if a.pack == nil {
		a.pack = func(w *tar.Writer) error {
			return w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "x", Size: 1 << 20})
		}
		_ = a.pack(w)
		_ = zipped.Close()
		return packed.Bytes()
	}
	if err := a.pack(w); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := zipped.Close(); err != nil {
		t.Fatal(err)
	}
	return packed.Bytes()
}

// pull runs flux pull artifact, and checks that it leaves no files if it fails.
func (a archive) pull(t *testing.T, bin string) outcome {
	t.Helper()
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	address := strings.TrimPrefix(server.URL, "http://") + "/hostile:latest"
	tag, err := name.NewTag(address, name.Insecure)
	if err != nil {
		t.Fatal(err)
	}
	image, err := mutate.AppendLayers(empty.Image, static.NewLayer(a.content(t), "application/vnd.cncf.flux.content.v1.tar+gzip"))
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(tag, image); err != nil {
		t.Fatal(err)
	}
	parent := t.TempDir()
	result := a.run(t, bin, []string{"pull", "artifact", "oci://" + address, "--insecure-registry", "--output", filepath.Join(parent, "out")})
	if left, err := os.ReadDir(parent); a.want != "" && (err != nil || len(left) > 0) {
		t.Errorf("left behind: %v, %v", left, err)
	}
	return result
}
