package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

const (
	commit = "0123456789abcdef0123456789abcdef01234567"
	date   = "2026-01-02T03:04:05Z"
)

// pack writes an archive with files whose content is their name.
func pack(t *testing.T, archive string, names ...string) string {
	t.Helper()
	var buffer bytes.Buffer
	compressed := gzip.NewWriter(&buffer)
	w := tar.NewWriter(compressed)
	for _, n := range names {
		if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: n, Mode: 0o600, Size: int64(len(n))}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(n)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), compressed.Close(), os.WriteFile(archive, buffer.Bytes(), 0o600)); err != nil {
		t.Fatal(err)
	}
	return archive
}

// built builds a layout from the archives of two architectures.
func built(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	to := filepath.Join(folder, "layout")
	words := []string{"build", to, commit, date}
	for _, arch := range []string{"amd64", "arm64"} {
		words = append(words, pack(t, filepath.Join(folder, "flux_1.2.3_linux_"+arch+".tar.gz"),
			"LICENSE", "README.md", "flux", "flux-helper", "flux-ui", "man/flux.1", "licenses/example.com/b@v1/LICENSE", "licenses/example.com/a@v1/NOTICE"))
	}
	if err := run(t.Context(), io.Discard, words); err != nil {
		t.Fatal(err)
	}
	return to
}

// read returns the index of a layout and its images.
func read(t *testing.T, folder string) (v1.ImageIndex, []v1.Image) {
	t.Helper()
	index, err := layout.ImageIndexFromPath(folder)
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	var images []v1.Image
	for _, descriptor := range manifest.Manifests {
		image, err := index.Image(descriptor.Digest)
		if err != nil {
			t.Fatal(err)
		}
		images = append(images, image)
	}
	return index, images
}

func TestConfiguration(t *testing.T) {
	t.Parallel()
	index, images := read(t, built(t))
	if err := validate.Index(index); err != nil {
		t.Error(err)
	}
	var platforms []string
	for _, image := range images {
		config, err := image.ConfigFile()
		if err != nil {
			t.Fatal(err)
		}
		platforms = append(platforms, config.Platform().String())
		want := v1.Config{
			User: "65532:65532", Entrypoint: []string{"/usr/local/bin/flux"}, WorkingDir: "/home/nonroot",
			Env: []string{"PATH=/usr/local/bin", "HOME=/home/nonroot"},
			Labels: map[string]string{
				"org.opencontainers.image.title":       "flux",
				"org.opencontainers.image.description": "Installs Flux on a Kubernetes cluster from a Git repository, and inspects and operates it",
				"org.opencontainers.image.source":      "https://github.com/fluxkit/flux",
				"org.opencontainers.image.licenses":    "Apache-2.0",
				"org.opencontainers.image.version":     "1.2.3",
				"org.opencontainers.image.revision":    commit,
				"org.opencontainers.image.created":     date,
			},
		}
		if diff := cmp.Diff(want, config.Config); diff != "" {
			t.Errorf("configuration (-want +got):\n%s", diff)
		}
		if got := config.Created.Format("2006-01-02T15:04:05Z"); got != date {
			t.Errorf("created %s, want %s", got, date)
		}
	}
	if diff := cmp.Diff([]string{"linux/amd64", "linux/arm64"}, platforms); diff != "" {
		t.Errorf("platforms (-want +got):\n%s", diff)
	}
}

func TestLayers(t *testing.T) {
	t.Parallel()
	_, images := read(t, built(t))
	layers, err := images[0].Layers()
	if err != nil || len(layers) != 2 {
		t.Fatalf("%d layers, %v", len(layers), err)
	}
	want := [][]string{
		{
			"drwxr-xr-x 0 etc/", "-rw-r--r-- 0 etc/passwd", "-rw-r--r-- 0 etc/group", "drwxr-xr-x 0 etc/ssl/", "drwxr-xr-x 0 etc/ssl/certs/",
			"-rw-r--r-- 0 etc/ssl/certs/ca-certificates.crt", "dtrwxrwxrwx 0 tmp/", "drwxr-xr-x 0 home/", "drwx------ 65532 home/nonroot/",
		},
		{
			"drwxr-xr-x 0 usr/", "drwxr-xr-x 0 usr/local/", "drwxr-xr-x 0 usr/local/bin/", "-rwxr-xr-x 0 usr/local/bin/flux", "-rwxr-xr-x 0 usr/local/bin/flux-helper", "-rwxr-xr-x 0 usr/local/bin/flux-ui",
			"drwxr-xr-x 0 usr/share/", "drwxr-xr-x 0 usr/share/doc/", "drwxr-xr-x 0 usr/share/doc/flux/", "-rw-r--r-- 0 usr/share/doc/flux/LICENSE",
			"drwxr-xr-x 0 usr/share/doc/flux/licenses/", "drwxr-xr-x 0 usr/share/doc/flux/licenses/example.com/",
			"drwxr-xr-x 0 usr/share/doc/flux/licenses/example.com/a@v1/", "-rw-r--r-- 0 usr/share/doc/flux/licenses/example.com/a@v1/NOTICE",
			"drwxr-xr-x 0 usr/share/doc/flux/licenses/example.com/b@v1/", "-rw-r--r-- 0 usr/share/doc/flux/licenses/example.com/b@v1/LICENSE",
		},
	}
	for i, layer := range layers {
		got, content := list(t, layer)
		if diff := cmp.Diff(want[i], got); diff != "" {
			t.Errorf("layer %d (-want +got):\n%s", i, diff)
		}
		if text := content["usr/local/bin/flux"]; i == 1 && string(text) != "flux" {
			t.Errorf("flux is %q", text)
		}
		if i == 0 {
			checkAuthorities(t, content["etc/ssl/certs/ca-certificates.crt"])
		}
	}
}

// list returns the mode, owner and name of the entries of a layer, and their contents.
func list(t *testing.T, layer v1.Layer) (entries []string, content map[string][]byte) {
	t.Helper()
	r, err := layer.Uncompressed()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	content = map[string][]byte{}
	for archive := tar.NewReader(r); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return entries, content
		}
		if err != nil {
			t.Fatal(err)
		}
		info := header.FileInfo()
		entries = append(entries, strings.Join([]string{info.Mode().String(), owner(header), header.Name}, " "))
		if got := header.ModTime.UTC().Format("2006-01-02T15:04:05Z"); got != date {
			t.Errorf("%s is of %s, want %s", header.Name, got, date)
		}
		if content[header.Name], err = io.ReadAll(archive); err != nil {
			t.Fatal(err)
		}
	}
}

// owner returns the user of an entry, if its group has the same ID and neither has a name.
func owner(header *tar.Header) string {
	switch {
	case header.Uid == header.Gid && header.Uid == 0 && header.Uname+header.Gname == "":
		return "0"
	case header.Uid == header.Gid && header.Uid == user && header.Uname+header.Gname == "":
		return "65532"
	}
	return "other"
}

// checkAuthorities checks that a file contains only certificate authorities.
func checkAuthorities(t *testing.T, text []byte) {
	t.Helper()
	count := 0
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil || !certificate.IsCA {
			t.Errorf("certificate %d: %v", count, err)
		}
		count++
	}
	if count < 80 {
		t.Errorf("%d certificate authorities, want at least 80", count)
	}
}

// The same archives in another directory produce the same bytes.
func TestReproducible(t *testing.T) {
	t.Parallel()
	var digests [2]v1.Hash
	for i := range digests {
		index, _ := read(t, built(t))
		var err error
		if digests[i], err = index.Digest(); err != nil {
			t.Fatal(err)
		}
	}
	if digests[0] != digests[1] {
		t.Errorf("the digests are %s and %s", digests[0], digests[1])
	}
}

func TestPush(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(registry.New())
	defer server.Close()
	folder := built(t)
	repository := strings.TrimPrefix(server.URL, "http://") + "/fluxkit/flux"
	var out bytes.Buffer
	if err := run(t.Context(), &out, []string{"push", folder, repository + ":1.2.3"}); err != nil {
		t.Fatal(err)
	}
	index, _ := read(t, folder)
	want, err := index.Digest()
	if err != nil {
		t.Fatal(err)
	}
	if printed := strings.TrimSpace(out.String()); printed != repository+"@"+want.String() {
		t.Errorf("printed %q", printed)
	}
	reference, err := name.ParseReference(repository + ":1.2.3")
	if err != nil {
		t.Fatal(err)
	}
	// A machine pulls the image of its platform by the tag.
	image, err := remote.Image(reference, remote.WithPlatform(v1.Platform{OS: "linux", Architecture: "arm64"}))
	if err != nil {
		t.Fatal(err)
	}
	config, err := image.ConfigFile()
	if err != nil || config.Architecture != "arm64" {
		t.Errorf("%+v, %v", config, err)
	}
}

func TestErrors(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	archive := func(file string, names ...string) string { return pack(t, filepath.Join(folder, file), names...) }
	complete := archive("flux_3_linux_amd64.tar.gz", "flux", "flux-helper", "flux-ui", "LICENSE")
	for _, c := range []struct {
		words []string
		want  string
	}{
		{nil, "usage: images build"},
		{[]string{"build", "layout"}, "usage: images build"},
		{[]string{"build", "layout", commit, "today", "a"}, "parsing the commit date"},
		{[]string{"build", folder, commit, date, "flux_1_linux_amd64.tar.gz"}, "exists: remove it first"},
		{[]string{"build", "layout", commit, date, "flux_1_darwin_amd64.tar.gz"}, "the name must be flux_VERSION_linux_ARCH.tar.gz"},
		{[]string{"build", "layout", commit, date, archive("flux_1_linux_amd64.tar.gz", "flux", "LICENSE")}, "flux-helper is missing"},
		{[]string{"build", "layout", commit, date, archive("flux_2_linux_amd64.tar.gz", "flux", "flux-helper", "flux-ui")}, "the licenses are missing"},
		{[]string{"build", "layout", commit, date, complete, archive("flux_4_linux_arm64.tar.gz", "flux")}, "another archive has version 3"},
		{[]string{"push", folder, "example.com/flux:1"}, "index.json"},
	} {
		if err := run(t.Context(), io.Discard, c.words); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v, want %q", c.words, err, c.want)
		}
	}
	if _, err := os.Stat("layout"); err == nil {
		t.Error("a failed build wrote a layout")
	}
}
