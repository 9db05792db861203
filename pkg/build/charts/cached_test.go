package charts

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"testing"

	"github.com/fluxkit/flux/pkg/build"
)

// kept is a cache in memory.
type kept map[string][]byte

func (k kept) Get(key string) ([]byte, bool) { value, ok := k[key]; return value, ok }
func (k kept) Put(key string, value []byte)  { k[key] = value }

// counter is a Renderer that counts its calls.
type counter struct {
	calls    int
	rendered Rendered
	err      error
}

func (c *counter) Render(context.Context, Release) (*Rendered, error) {
	c.calls++
	rendered := c.rendered
	rendered.Version = fmt.Sprint(c.calls)
	return &rendered, c.err
}

func cachedRelease() Release {
	return Release{
		Chart: Chart{Files: map[string][]byte{"web/Chart.yaml": []byte("name: web\n"), "web/templates/a.yaml": []byte("a")}, Folder: "web"},
		Name:  "web", Namespace: "apps", Values: map[string]any{"a": "b"},
	}
}

// TestReleaseKey checks that each field of a release is a part of its key, or makes it one that is not kept.
func TestReleaseKey(t *testing.T) {
	t.Parallel()
	keys := map[string]string{}
	check := func(name string, r Release, cached bool) {
		key, ok := cacheKey(&r)
		if ok != cached {
			t.Errorf("%s: kept: %v, want %v", name, ok, cached)
		}
		if other := keys[key]; ok && other != "" {
			t.Errorf("%s and %s have the same key", name, other)
		}
		keys[key] = name
	}
	check("the release", cachedRelease(), true)
	// The fields that change nothing but whether it is kept.
	private := map[string]bool{"Find": true, "Secret": true, "Username": true, "Password": true, "CA": true, "Cert": true, "Key": true}
	var each func(prefix string, in func(*Release) reflect.Value)
	each = func(prefix string, in func(*Release) reflect.Value) {
		base := cachedRelease()
		for i := range in(&base).NumField() {
			field := in(&base).Type().Field(i)
			if field.Type.Kind() == reflect.Struct {
				each(prefix+field.Name+".", func(r *Release) reflect.Value { return in(r).Field(i) })
				continue
			}
			r := cachedRelease()
			in(&r).Field(i).Set(another(t, field.Type))
			check(prefix+field.Name, r, !private[field.Name])
		}
	}
	each("", func(r *Release) reflect.Value { return reflect.ValueOf(r).Elem() })
	for name, change := range map[string]func(*Release){
		"the content of a file": func(r *Release) { r.Chart.Files["web/templates/a.yaml"] = []byte("b") },
		"the name of a file": func(r *Release) {
			r.Chart.Files = map[string][]byte{"web/Chart.yaml": []byte("name: web\n"), "web/a": []byte("a")}
		},
		"another file":             func(r *Release) { r.Chart.Files["web/b"] = nil },
		"another value":            func(r *Release) { r.Values["c"] = "d" },
		"a number instead of text": func(r *Release) { r.Values["a"] = 1 },
		"a text with a number":     func(r *Release) { r.Values["a"] = "1" },
	} {
		r := cachedRelease()
		change(&r)
		check(name, r, true)
	}
	for name, c := range map[string]struct {
		chart Chart
		kept  bool
	}{
		"a version of a Helm repository": {Chart{URL: "https://example.com", Name: "web", Version: "1.0.0"}, false},
		"a digest of a Helm repository":  {Chart{URL: "https://example.com", Name: "web", Digest: "sha256:1"}, false},
		"a tag":                          {Chart{URL: "oci://example.com/web", Tag: "1.0.0"}, false},
		"a range":                        {Chart{URL: "oci://example.com/web", Version: "*"}, false},
		"a digest":                       {Chart{URL: "oci://example.com/web", Tag: "1.0.0", Digest: "sha256:1"}, true},
		"another digest":                 {Chart{URL: "oci://example.com/web", Tag: "1.0.0", Digest: "sha256:2"}, true},
		"another registry":               {Chart{URL: "oci://example.org/web", Tag: "1.0.0", Digest: "sha256:2"}, true},
		"an archive":                     {Chart{Archive: []byte("a")}, true},
		"another archive":                {Chart{Archive: []byte("b")}, true},
	} {
		r := cachedRelease()
		r.Chart = c.chart
		check(name, r, c.kept)
	}
}

// another returns a value of a type that no field of cachedRelease has.
func another(t *testing.T, of reflect.Type) reflect.Value {
	t.Helper()
	switch of.Kind() {
	case reflect.String:
		return reflect.ValueOf("another").Convert(of)
	case reflect.Bool:
		return reflect.ValueOf(true)
	case reflect.Int:
		return reflect.ValueOf(7)
	case reflect.Func:
		return reflect.ValueOf(build.Finder(func(context.Context, build.Wanted) (map[string]any, error) { return nil, nil }))
	case reflect.Slice:
		if of.Elem().Kind() == reflect.Uint8 {
			return reflect.ValueOf([]byte("another"))
		}
		list := reflect.MakeSlice(of, 1, 1)
		list.Index(0).Set(another(t, of.Elem()))
		return list
	case reflect.Map:
		m := reflect.MakeMap(of)
		value := reflect.ValueOf("another")
		if of.Elem().Kind() == reflect.Slice {
			value = reflect.ValueOf([]byte("another"))
		}
		m.SetMapIndex(reflect.ValueOf("another"), value)
		return m
	}
	t.Fatalf("no value of type %s", of)
	return reflect.Value{}
}

// TestCachedRenderings checks what is kept, and that it is returned as it was.
func TestCachedRenderings(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		rendered Rendered
		err      error
		kept     bool
	}{
		"objects":            {Rendered{CRDs: []string{"kind: CustomResourceDefinition"}, Manifests: []string{"kind: ConfigMap\n"}, Hooks: []string{"kind: Job\n"}}, nil, true},
		"nothing":            {Rendered{}, nil, true},
		"an external secret": {Rendered{Manifests: []string{"kind: ExternalSecret\n---\nkind: SecretStore\n"}}, nil, true},
		"a volume":           {Rendered{Manifests: []string{"kind: Pod\nspec: {volumes: [{secret: {secretName: a}}]}\n"}}, nil, true},
		"a secret":           {Rendered{Manifests: []string{"apiVersion: v1\nkind: Secret\n"}}, nil, false},
		"a secret in JSON":   {Rendered{Manifests: []string{`{"apiVersion": "v1", "kind": "Secret"}`}}, nil, false},
		"a folded kind":      {Rendered{Manifests: []string{"kind: >-\n  Secret\n"}}, nil, false},
		"a list":             {Rendered{Manifests: []string{"kind: SecretList\nitems: []\n"}}, nil, false},
		"a hook":             {Rendered{Hooks: []string{"kind: 'Secret'\n"}}, nil, false},
		"in crds":            {Rendered{CRDs: []string{"kind: ConfigMap\n---\nkind: Secret\n"}}, nil, false},
		"another next time":  {Rendered{Varies: true}, nil, false},
		"an error":           {Rendered{}, errors.New("as asked"), false},
	} {
		cache, renderer := kept{}, &counter{rendered: c.rendered, err: c.err}
		cached := Cached{Renderer: renderer, Cache: cache}
		first, err := cached.Render(t.Context(), cachedRelease())
		second, again := cached.Render(t.Context(), cachedRelease())
		if !errors.Is(err, c.err) || !errors.Is(again, c.err) {
			t.Errorf("%s: %v, %v", name, err, again)
		}
		if got := renderer.calls == 1 && len(cache) == 1; got != c.kept || c.kept && !reflect.DeepEqual(first, second) {
			t.Errorf("%s: %d calls, %d values: %+v, %+v", name, renderer.calls, len(cache), first, second)
		}
		for key := range cache {
			cache[key] = []byte("{")
		}
		if third, _ := cached.Render(t.Context(), cachedRelease()); c.kept && (third == nil || third.Version != "2") {
			t.Errorf("%s: a malformed value is used: %+v", name, third)
		}
	}
}
