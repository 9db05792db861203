package registry_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/fluxkit/flux/internal/registry"
	"github.com/fluxkit/flux/test/support/testregistry"
)

// imageFor returns an image for a platform.
func imageFor(t *testing.T, platform v1.Platform) v1.Image {
	t.Helper()
	image, err := mutate.ConfigFile(empty.Image, &v1.ConfigFile{OS: platform.OS, Architecture: platform.Architecture, Variant: platform.Variant, RootFS: v1.RootFS{Type: "layers"}})
	if err != nil {
		t.Fatal(err)
	}
	return image
}

// TestPlatforms checks that only the answer of a registry makes an image missing: what is no registry,
// refuses, or is not there leaves it unknown.
func TestPlatforms(t *testing.T) {
	t.Parallel()
	r := testregistry.Start()
	t.Cleanup(r.Close)
	amd, arm, attestation := v1.Platform{OS: "linux", Architecture: "amd64"}, v1.Platform{OS: "linux", Architecture: "arm64", Variant: "v8"}, v1.Platform{OS: "unknown", Architecture: "unknown"}
	index := v1.ImageIndex(empty.Index)
	for _, p := range []v1.Platform{arm, amd, attestation} {
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: imageFor(t, p), Descriptor: v1.Descriptor{Platform: &p}})
	}
	reference := func(text string) name.Reference {
		parsed, err := name.ParseReference(r.Host() + "/" + text)
		if err != nil {
			t.Fatal(err)
		}
		return parsed
	}
	if err := errors.Join(remote.WriteIndex(reference("index:1"), index), remote.Write(reference("single:1"), imageFor(t, amd)), r.Push("artifact:1", nil)); err != nil {
		t.Fatal(err)
	}
	answering := func(status int, body string) string {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			_, _ = w.Write([]byte(body))
		}))
		t.Cleanup(server.Close)
		return strings.TrimPrefix(server.URL, "http://")
	}
	const absent = "sha256:0123456789012345678901234567890123456789012345678901234567890123"
	for image, c := range map[string]struct {
		platforms []string
		err       error // errAny for an answer that says nothing about the image
	}{
		r.Host() + "/index:1":                                   {[]string{"linux/amd64", "linux/arm64/v8"}, nil},
		r.Host() + "/single:1":                                  {[]string{"linux/amd64"}, nil},
		r.Host() + "/artifact:1":                                {nil, nil},
		r.Host() + "/index:2":                                   {nil, registry.ErrNoImage},
		r.Host() + "/index@" + absent:                           {nil, registry.ErrNoImage},
		r.Host() + "/other:1":                                   {nil, registry.ErrNoImage},
		r.Host() + "/Upper:1":                                   {nil, registry.ErrInvalidImage},
		"a b":                                                   {nil, registry.ErrInvalidImage},
		answering(404, "not found") + "/a:1":                    {nil, errAny}, // no registry
		answering(401, "") + "/a:1":                             {nil, errAny},
		answering(403, "") + "/a:1":                             {nil, errAny},
		answering(429, "") + "/a:1":                             {nil, errAny},
		answering(200, strings.Repeat(" ", 5<<20)) + "/a:1":     {nil, errAny},
		answering(200, `{"schemaVersion":2,"a":"") }`) + "/a:1": {nil, errAny},
		"127.0.0.1:1/a:1":                                       {nil, errAny},
	} {
		platforms, err := registry.Platforms(t.Context(), image, registry.Access{})
		switch {
		case errors.Is(c.err, errAny):
			if err == nil || errors.Is(err, registry.ErrNoImage) || errors.Is(err, registry.ErrInvalidImage) {
				t.Errorf("%s: error %v, want one that leaves it unknown", image, err)
			}
		case !errors.Is(err, c.err):
			t.Errorf("%s: error %v, want %v", image, err, c.err)
		}
		if d := cmp.Diff(c.platforms, platforms); d != "" {
			t.Errorf("%s: %s", image, d)
		}
	}
}

var errAny = errors.New("any")
