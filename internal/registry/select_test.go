package registry_test

import (
	"errors"
	"testing"

	"github.com/fluxkit/flux/internal/registry"
	"github.com/fluxkit/flux/test/support/testregistry"
)

// TestSelect takes the layer that source-controller would.
func TestSelect(t *testing.T) {
	t.Parallel()
	r := testregistry.Start()
	t.Cleanup(r.Close)
	for _, tag := range []string{"latest", "1.0.0", "v1.2.0", "1.10.0-rc.1", "2.0.0", "1.3", "dev-1.9.0"} {
		layers := []testregistry.Layer{{Media: "application/first", Content: []byte(tag)}, {Media: "application/second", Content: []byte("second of " + tag)}}
		if err := r.PushLayers("app:"+tag, layers...); err != nil {
			t.Fatal(err)
		}
	}
	address := registry.Scheme + r.Host() + "/app"
	access := registry.Access{Insecure: true}
	pinned, _, err := registry.Select(t.Context(), address, registry.Wanted{Tag: "1.0.0"}, access)
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		wanted registry.Wanted
		want   string
	}{
		"nothing":       {registry.Wanted{}, "latest"},
		"a tag":         {registry.Wanted{Tag: "2.0.0"}, "2.0.0"},
		"a media type":  {registry.Wanted{Tag: "2.0.0", MediaType: "application/second"}, "second of 2.0.0"},
		"a range":       {registry.Wanted{SemVer: "1.x", Tag: "2.0.0"}, "v1.2.0"},
		"a prerelease":  {registry.Wanted{SemVer: ">=1.0.0-0 <2.0.0"}, "1.10.0-rc.1"},
		"a filter":      {registry.Wanted{SemVer: "1.x", Filter: `^1\.`}, "1.0.0"},
		"a digest":      {registry.Wanted{Digest: pinned.Digest, SemVer: "2.x"}, "1.0.0"},
		"none in range": {registry.Wanted{SemVer: "3.x"}, ""},
		"no such tag":   {registry.Wanted{Tag: "9"}, ""},
		"no such media": {registry.Wanted{MediaType: "application/third"}, ""},
	} {
		_, content, err := registry.Select(t.Context(), address, test.wanted, access)
		if string(content) != test.want || (err == nil) != (test.want != "") {
			t.Errorf("%s: got %q, %v; want %q", name, content, err, test.want)
		}
		var none *registry.NoMatchError
		if errors.As(err, &none) != (name == "none in range") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
