package mapped

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/build/charts"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/repository"
)

// packed writes files as an archive and returns its name.
func packed(t *testing.T, files map[string]string) string {
	t.Helper()
	contents := map[string][]byte{}
	for name, text := range files {
		contents[name] = []byte(text)
	}
	archive, err := PackFiles(contents)
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "packed.tgz")
	if err := os.WriteFile(name, archive, 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// ociLayout writes an OCI layout with an artifact for each tag, and returns its directory and the digest of the last one.
func ociLayout(t *testing.T, tags ...string) (directory, digest string) {
	t.Helper()
	directory = t.TempDir()
	at, err := layout.Write(directory, empty.Index)
	if err != nil {
		t.Fatal(err)
	}
	for _, tag := range tags {
		archive, err := os.ReadFile(packed(t, map[string]string{"tag.yaml": tag}))
		if err != nil {
			t.Fatal(err)
		}
		image, err := mutate.AppendLayers(empty.Image, static.NewLayer(archive, types.OCILayer))
		if err != nil {
			t.Fatal(err)
		}
		if err := at.AppendImage(image, layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": tag})); err != nil {
			t.Fatal(err)
		}
		hash, err := image.Digest()
		if err != nil {
			t.Fatal(err)
		}
		digest = hash.String()
	}
	return directory, digest
}

func object(kind string, spec map[string]any) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{"kind": kind, "spec": spec}}
	o.SetNamespace("apps")
	o.SetName("app")
	return o
}

// TestContent checks which mapping is used for a source, by the name or the content of its only file.
func TestContent(t *testing.T) {
	t.Parallel()
	one, two := packed(t, map[string]string{"one.yaml": ""}), packed(t, map[string]string{"two.yaml": "", "sub/x.yaml": ""})
	chart := packed(t, map[string]string{"web/Chart.yaml": "name: web\nversion: 1.0.0\n"})
	tags, digest := ociLayout(t, "1.0.0", "1.2.0", "2.0.0-rc.1", "latest")
	s := &Sources{Mappings: []Mapping{
		{URL: "https://example.com/git", Kind: controllers.GitRepository, Path: one, Ref: map[string]any{"branch": "main"}},
		{URL: "https://example.com/git", Kind: controllers.GitRepository, Path: two, Ref: map[string]any{}, Added: map[string][]byte{"added.yaml": nil}},
		{URL: "https://s3.example.com/bucket", Kind: controllers.Bucket, Path: two, Ref: map[string]any{"prefix": "sub/"}},
		{URL: "oci://example.com/tags", Path: tags},
		{URL: "oci://example.com/charts", Path: chart},
		{URL: "oci://example.com/files", Path: one},
	}}
	oci := func(path string, ref map[string]any) *unstructured.Unstructured {
		return object(controllers.OCIRepository, map[string]any{"url": "oci://example.com/" + path, "ref": ref})
	}
	git := func(ref map[string]any) *unstructured.Unstructured {
		return object(controllers.GitRepository, map[string]any{"url": "https://example.com/git.git", "ref": ref})
	}
	bucket := map[string]any{"endpoint": "s3.example.com", "bucketName": "bucket"}
	for name, c := range map[string]struct {
		o    *unstructured.Unstructured
		want string // names of files, or the content of tag.yaml
	}{
		"branch":                {git(map[string]any{"branch": "main"}), "one.yaml"},
		"no reference":          {object(controllers.GitRepository, map[string]any{"url": "https://example.com/git"}), "added.yaml sub/x.yaml two.yaml"},
		"another branch":        {git(map[string]any{"branch": "next"}), ""},
		"another kind":          {object(controllers.Bucket, map[string]any{"endpoint": "example.com", "bucketName": "git"}), ""},
		"prefix":                {object(controllers.Bucket, map[string]any{"endpoint": "s3.example.com", "bucketName": "bucket", "prefix": "sub/"}), "sub/x.yaml"},
		"without the prefix":    {object(controllers.Bucket, bucket), ""},
		"latest":                {oci("tags", nil), "latest"},
		"tag":                   {oci("tags", map[string]any{"tag": "1.0.0"}), "1.0.0"},
		"range":                 {oci("tags", map[string]any{"semver": "1.x"}), "1.2.0"},
		"digest":                {oci("tags", map[string]any{"digest": digest, "semver": "1.x"}), "latest"},
		"missing tag":           {oci("tags", map[string]any{"tag": "3"}), "error: the OCI layout has no artifact 3"},
		"missing digest":        {oci("tags", map[string]any{"digest": strings.ReplaceAll(digest, digest[7:9], "00")}), "error: the OCI layout has no artifact sha256:"},
		"empty range":           {oci("tags", map[string]any{"semver": "4.x"}), "error: no tag matches the semver range"},
		"below a layout":        {oci("tags/web", nil), ""},
		"chart":                 {oci("charts/web", map[string]any{"semver": "*"}), "Chart.yaml"},
		"the only chart":        {oci("charts", nil), "Chart.yaml"},
		"another chart":         {oci("charts/api", nil), ""},
		"files":                 {oci("files", nil), "one.yaml"},
		"a path below files":    {oci("files/web", nil), ""},
		"the same beginning":    {oci("files2", nil), ""},
		"an unsupported source": {object("HelmRepository", map[string]any{"url": "https://example.com/git"}), ""},
	} {
		found, err := s.Content(t.Context(), repository.Request{Source: controllers.IDOf(c.o.Object), Object: c.o})
		got := ""
		switch {
		case errors.Is(err, build.ErrNotFound):
		case err != nil:
			got = "error: " + err.Error()[strings.LastIndex(err.Error(), "apps/app: ")+len("apps/app: "):]
		default:
			files, err := ReadFiles(t.Context(), found.Files)
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for file := range files {
				names = append(names, file)
			}
			slices.Sort(names)
			if got = strings.Join(names, " "); got == "tag.yaml" {
				text, err := fs.ReadFile(found.Files, got)
				if err != nil {
					t.Fatal(err)
				}
				got = string(text)
			}
		}
		if got != c.want && (!strings.HasPrefix(c.want, "error: ") || !strings.HasPrefix(got, c.want)) {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}

// TestChart checks which charts of Helm repositories are mapped. A version that was not vendored is fetched.
func TestChart(t *testing.T) {
	t.Parallel()
	chart := packed(t, map[string]string{"web/Chart.yaml": "name: web\nversion: 1.0.0\n"})
	for name, c := range map[string]struct {
		m      Mapping
		chart  charts.Chart
		want   string // in the error, "" for a chart
		absent bool
	}{
		"exact":            {Mapping{Path: chart}, charts.Chart{Name: "web", Version: "1.0.0"}, "", false},
		"newest":           {Mapping{Path: chart}, charts.Chart{Name: "web"}, "", false},
		"vendored":         {Mapping{Path: chart, Kind: controllers.HelmRepository}, charts.Chart{Name: "web", Version: "1.x"}, "", false},
		"another version":  {Mapping{Path: chart}, charts.Chart{Name: "web", Version: "2.x"}, `chart web: no version matches "2.x"`, false},
		"another chart":    {Mapping{Path: chart}, charts.Chart{Name: "api"}, `chart "api" not found`, false},
		"not vendored":     {Mapping{Path: chart, Kind: controllers.HelmRepository}, charts.Chart{Name: "web", Version: "2.x"}, "", true},
		"no Helm sources":  {Mapping{Path: chart, Kind: controllers.GitRepository}, charts.Chart{Name: "web"}, "", true},
		"files, no charts": {Mapping{Path: packed(t, map[string]string{"a.yaml": ""})}, charts.Chart{Name: "web"}, "", true},
		"vendored, empty":  {Mapping{Kind: controllers.HelmRepository}, charts.Chart{Name: "web"}, "", true},
	} {
		c.m.URL, c.chart.URL = "https://example.com/charts", "https://example.com/charts/"
		found, err := (&Sources{Mappings: []Mapping{c.m}}).Chart(t.Context(), c.chart)
		switch {
		case c.absent != errors.Is(err, build.ErrNotFound):
			t.Errorf("%s: %v", name, err)
		case !c.absent && c.want == "" && (err != nil || len(found) == 0):
			t.Errorf("%s: %d bytes, %v", name, len(found), err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: the error is %v, want %s", name, err, c.want)
		}
	}
}

// TestHostileLayout reads OCI layouts whose files are not what they claim, or lead elsewhere.
func TestHostileLayout(t *testing.T) {
	t.Parallel()
	outside := filepath.Join(t.TempDir(), "index.json")
	for name, c := range map[string]struct {
		change func(layout, blob string) error
		want   string
	}{
		"another content": {func(_, blob string) error { return os.WriteFile(blob, []byte("{}"), 0o600) }, "in the OCI layout has the digest sha256:"},
		"a link to a device": {func(_, blob string) error {
			return errors.Join(os.Remove(blob), os.Symlink(os.DevNull, blob))
		}, "reading the OCI layout: "},
		"a link out of it": {func(layout, _ string) error {
			index := filepath.Join(layout, "index.json")
			return errors.Join(os.Rename(index, outside), os.Symlink(outside, index))
		}, "reading the OCI layout: "},
	} {
		directory, digest := ociLayout(t, "latest")
		if err := c.change(directory, filepath.Join(directory, "blobs", "sha256", strings.TrimPrefix(digest, "sha256:"))); err != nil {
			t.Fatal(err)
		}
		o := object(controllers.OCIRepository, map[string]any{"url": "oci://example.com/app"})
		s := &Sources{Mappings: []Mapping{{URL: "oci://example.com/app", Path: directory}}}
		if _, err := s.Content(t.Context(), repository.Request{Source: controllers.IDOf(o.Object), Object: o}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: the error is %v, want %q", name, err, c.want)
		}
	}
}
