package manifests_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fluxkit/flux/manifests"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/test/support/testrelease"
)

func everything(version string) manifests.Options {
	o := manifests.Defaults()
	o.Version = version
	o.Components = append(controllers.Defaults(), controllers.Extras()...)
	return o
}

func render(t *testing.T, o manifests.Options) *manifests.Set {
	t.Helper()
	set, err := manifests.Render(o)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// TestBundleRendersAsEmbedded renders the release archive of an embedded version with
// options, and compares the result with the embedded manifests.
func TestBundleRendersAsEmbedded(t *testing.T) {
	t.Parallel()
	options := map[string]func(*manifests.Options){
		"defaults":     func(*manifests.Options) {},
		"namespace":    func(o *manifests.Options) { o.Namespace = "gitops" },
		"registry":     func(o *manifests.Options) { o.Registry = "registry.internal:5000/mirror/flux" },
		"pull secret":  func(o *manifests.Options) { o.ImagePullSecret = "regcred" },
		"one watched":  func(o *manifests.Options) { o.WatchAllNamespaces = false },
		"no policies":  func(o *manifests.Options) { o.NetworkPolicy = false },
		"log level":    func(o *manifests.Options) { o.LogLevel = "debug" },
		"domain":       func(o *manifests.Options) { o.ClusterDomain = "corp.example" },
		"tolerations":  func(o *manifests.Options) { o.TolerationKeys = []string{"dedicated", "example.com/flux"} },
		"four of them": func(o *manifests.Options) { o.Components = controllers.Defaults() },
		"no events":    func(o *manifests.Options) { o.Components = []string{"source-controller", "kustomize-controller"} },
	}
	for _, d := range controllers.Distributions {
		archive, err := testrelease.Archive(render(t, everything(d.Version)).Unstructured())
		if err != nil {
			t.Fatal(err)
		}
		for name, set := range options {
			t.Run(d.Version+"/"+name, func(t *testing.T) {
				t.Parallel()
				o := everything(d.Version)
				set(&o)
				want := render(t, o)
				got, err := manifests.FromBundle(archive, "v"+d.Version, o)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(text(t, want), text(t, got)); diff != "" {
					t.Errorf("manifests (-embedded +released):\n%s", diff)
				}
			})
		}
	}
}

func text(t *testing.T, set *manifests.Set) string {
	t.Helper()
	data, err := set.YAML()
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestBundleErrors(t *testing.T) {
	t.Parallel()
	file := func(name, content string) []byte {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		w := tar.NewWriter(z)
		if err := w.WriteHeader(&tar.Header{Name: name, Size: int64(len(content)), Typeflag: tar.TypeReg}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(content)); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if err := z.Close(); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	for name, test := range map[string]struct {
		archive []byte
		want    string
	}{
		"no archive": {[]byte("404: Not Found"), "unpacking the manifests of Flux v2.7.0: gzip: invalid header"},
		"cut off":    {file("rbac.yaml", strings.Repeat("a", 1000))[:30], "unpacking the manifests of Flux v2.7.0: unexpected EOF"},
		"too large":  {file("rbac.yaml", strings.Repeat("a", 33<<20)), "unpacking the manifests of Flux v2.7.0: larger than 32 MiB"},
		"no file":    {file("rbac.yaml", "{}"), "reading the manifests of Flux v2.7.0: the release has no policies.yaml"},
		"no YAML":    {file("policies.yaml", "a: ["), "reading the manifests of Flux v2.7.0: policies.yaml: yaml: line 1: did not find expected node content"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := manifests.FromBundle(test.archive, "v2.7.0", manifests.Defaults())
			if err == nil || err.Error() != test.want {
				t.Errorf("got %v, want %s", err, test.want)
			}
		})
	}
}
