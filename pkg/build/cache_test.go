package build

import (
	"context"
	"encoding/json"
	"maps"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// memory is a cache in memory that counts the values that were found.
type memory struct {
	mu     sync.Mutex
	values map[string][]byte
	found  int
}

func (m *memory) Get(key string) ([]byte, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	value, ok := m.values[key]
	if ok {
		m.found++
	}
	return value, ok
}

func (m *memory) Put(key string, value []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.values[key] = value
}

// here is a Kustomizer that runs kustomize in this process, and allows a host.
type here struct{ host string }

func (h here) Allows(host string) bool { return host == h.host }

func (here) Execute(context.Context, []Template, []map[string]any) ([][]string, error) {
	return nil, nil
}

func (here) Kustomize(_ context.Context, folder string, from FileSystem) ([][]byte, error) {
	return Kustomize(folder, from)
}

// opener decrypts everything to the same document.
type opener struct{}

func (opener) Decrypt(context.Context, string, []byte, string) ([]byte, error) {
	return []byte("clear"), nil
}

// cacheCase is a build: changes of the files and of the spec of cacheBase.
type cacheCase struct {
	files   map[string]string
	spec    map[string]any
	options func(*Options)
}

const cacheHead = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: cm}\ndata: {a: '${a:=b}'}\n"

func (c cacheCase) build(t *testing.T, cache Cache) (string, error) {
	t.Helper()
	texts := map[string]string{
		"app/kustomization.yaml": "resources: [a.yaml, ../base]\ncomponents: [../component]\nlabels: [{pairs: {x: v}}]\nconfigMapGenerator: [{name: g, files: [config.txt]}]\n",
		"app/a.yaml":             cacheHead, "app/config.txt": "x",
		"base/kustomization.yaml":      "resources: [b.yaml]\nnamePrefix: p-\n",
		"base/b.yaml":                  strings.Replace(cacheHead, "cm", "other", 1),
		"component/kustomization.yaml": "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\npatches: [{path: patch.yaml, target: {name: cm}}]\n",
		"component/patch.yaml":         "- op: add\n  path: /data/c\n  value: d\n",
	}
	maps.Copy(texts, c.files)
	files := map[string][]byte{}
	for name, text := range texts {
		if text != "" {
			files[name] = []byte(text)
		}
	}
	spec := map[string]any{"path": "app"}
	maps.Copy(spec, c.spec)
	ks := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization", "metadata": map[string]any{"name": "app", "namespace": "apps"}, "spec": spec,
	}}
	o := Options{Kustomizer: here{}, Cache: cache, Lookup: FromObjects(nil)}
	if c.options != nil {
		c.options(&o)
	}
	result, err := Kustomization(t.Context(), inMemory(files), ks, o)
	if err != nil {
		return "", err
	}
	text, err := json.MarshalIndent(result, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(text), nil
}

// TestCacheMisses builds what differs from a kept build in one input, and compares the result with that of a build without a
// cache.
func TestCacheMisses(t *testing.T) {
	t.Parallel()
	file := func(name, text string) cacheCase { return cacheCase{files: map[string]string{name: text}} }
	spec := func(field string, value any) cacheCase { return cacheCase{spec: map[string]any{field: value}} }
	same := "- op: add\n  path: /data/c\n  value: d\n"
	for name, c := range map[string]cacheCase{
		"a file":                   file("app/a.yaml", strings.Replace(cacheHead, "b", "c", 1)),
		"a file of the generator":  file("app/config.txt", "y"),
		"the kustomization":        file("app/kustomization.yaml", "resources: [a.yaml]\nlabels: [{pairs: {x: v}}]\n"),
		"a base":                   file("base/b.yaml", cacheHead),
		"the kustomization of one": file("base/kustomization.yaml", "resources: [b.yaml]\nnamePrefix: q-\n"),
		"a base without one":       file("base/kustomization.yaml", ""),
		"a component":              file("component/kustomization.yaml", "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nnameSuffix: -s\n"),
		"a patch":                  file("component/patch.yaml", "- op: add\n  path: /data/c\n  value: e\n"),
		"a missing file":           file("component/patch.yaml", ""),
		"a second kustomization":   file("base/Kustomization", "resources: [b.yaml]\n"),
		"another base":             {files: map[string]string{"app/kustomization.yaml": "resources: [a.yaml, ../base2]\n", "base2/kustomization.yaml": "resources: [../base/b.yaml]\n"}},
		"path":                     spec("path", "base"),
		"targetNamespace":          spec("targetNamespace", "other"),
		"namePrefix":               spec("namePrefix", "other-"),
		"nameSuffix":               spec("nameSuffix", "-other"),
		"components":               {files: map[string]string{"app/kustomization.yaml": "resources: [a.yaml]\nlabels: [{pairs: {x: v}}]\n"}, spec: map[string]any{"components": []any{"../component"}}},
		"patches":                  spec("patches", []any{map[string]any{"patch": strings.Replace(same, "d", "2", 3), "target": map[string]any{"name": "cm"}}}),
		"images":                   {files: map[string]string{"app/a.yaml": "apiVersion: v1\nkind: Pod\nmetadata: {name: cm}\nspec: {containers: [{name: a, image: a}]}\n", "component/kustomization.yaml": "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nlabels: [{pairs: {z: v}}]\n"}, spec: map[string]any{"images": []any{map[string]any{"name": "a", "newTag": "b"}}}},
		"postBuild":                spec("postBuild", map[string]any{"substitute": map[string]any{"a": "z"}}),
		"commonMetadata":           spec("commonMetadata", map[string]any{"labels": map[string]any{"k": "v"}}),
		"ignored files":            {options: func(o *Options) { o.Ignore = []string{"a.yaml"} }},
		"a directory":              {options: func(o *Options) { o.Path = "base" }},
		"variables":                {options: func(o *Options) { o.Vars = map[string]string{"a": "z"} }, spec: map[string]any{"postBuild": map[string]any{}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cache := &memory{values: map[string][]byte{}}
			kept, err := cacheCase{}.build(t, cache)
			if err != nil {
				t.Fatal(err)
			}
			want, wantErr := c.build(t, nil)
			if want == kept {
				t.Fatal("the result is the same: the case checks nothing")
			}
			for _, run := range []string{"cold", "warm"} {
				got, err := c.build(t, cache)
				if (err == nil) != (wantErr == nil) || err != nil && err.Error() != wantErr.Error() || got != want {
					t.Errorf("%s: %v, want %v (-without cache +with cache):\n%s", run, err, wantErr, cmp.Diff(want, got))
				}
			}
			before := cache.found
			if again, err := (cacheCase{}).build(t, cache); err != nil || again != kept || cache.found != before+2 {
				t.Errorf("the kept build is not found: %v, %d values", err, cache.found-before)
			}
		})
	}
}

// TestNotKept builds what must not be on disk or may be different next time.
func TestNotKept(t *testing.T) {
	t.Parallel()
	secret := "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {a: b}\n"
	sealed := "data: ENC[AES256_GCM,data:x]\nsops: {mac: ENC[AES256_GCM,data:x]}\n"
	decrypt := func(by Decrypter) func(*Options) {
		return func(o *Options) { o.Decrypt = func(*unstructured.Unstructured, Lookup) Decrypter { return by } }
	}
	generator := map[string]string{"app/kustomization.yaml": "secretGenerator: [{name: g, files: [s.yaml]}]\n", "app/s.yaml": sealed}
	sops := map[string]any{"decryption": map[string]any{"provider": "sops"}}
	for name, c := range map[string]struct {
		cacheCase
		kept bool
	}{
		"the base of these cases": {cacheCase{}, true},
		"an encrypted Secret":     {cacheCase{files: map[string]string{"app/a.yaml": secret + "sops: {mac: x}\n", "component/kustomization.yaml": "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nlabels: [{pairs: {z: v}}]\n"}}, true},
		"a public variable":       {cacheCase{options: func(o *Options) { o.Vars = map[string]string{"a": "z"} }}, true},
		"a Secret":                {cacheCase{files: map[string]string{"app/a.yaml": secret, "component/kustomization.yaml": "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nlabels: [{pairs: {z: v}}]\n"}}, false},
		"a generated Secret":      {cacheCase{files: map[string]string{"app/kustomization.yaml": "secretGenerator: [{name: g, literals: [a=b]}]\n"}}, false},
		"an encrypted file":       {cacheCase{generator, sops, decrypt(opener{})}, false},
		"a secret variable":       {cacheCase{options: func(o *Options) { o.Vars, o.SecretVars = map[string]string{"a": "z"}, []string{"a"} }}, false},
		"a spec of secret values": {cacheCase{options: func(o *Options) {
			o.Twin = &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"path": "app"}}}
		}}, false},
		"deprecated fields":        {cacheCase{files: map[string]string{"base/kustomization.yaml": "resources: [b.yaml]\ncommonLabels: {a: b}\n"}}, false},
		"a deprecated field first": {cacheCase{files: map[string]string{"base/kustomization.yaml": "{commonlabels: {a: b}, resources: [b.yaml]}\n"}}, false},
		"an error":                 {cacheCase{files: map[string]string{"app/config.txt": ""}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cache := &memory{values: map[string][]byte{}}
			want, wantErr := c.build(t, nil)
			for range 2 {
				got, err := c.build(t, cache)
				if got != want || (err == nil) != (wantErr == nil) {
					t.Errorf("%v, want %v (-without cache +with cache):\n%s", err, wantErr, cmp.Diff(want, got))
				}
			}
			if kept := len(cache.values) > 0; kept != c.kept {
				t.Errorf("kept: %v, want %v: %v", kept, c.kept, wantErr)
			}
		})
	}
}

// TestSeveralTraces checks that both sides of a change are found, and that few traces are kept.
func TestSeveralTraces(t *testing.T) {
	t.Parallel()
	cache := &memory{values: map[string][]byte{}}
	var all []cacheCase
	for i := range 8 + 2 {
		name := strings.Repeat("x", i+1) + ".yaml"
		all = append(all, cacheCase{files: map[string]string{"base/kustomization.yaml": "resources: [" + name + "]\nnamePrefix: p-\n", "base/" + name: cacheHead}})
	}
	for _, c := range all {
		if _, err := c.build(t, cache); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct{ build, found int }{{len(all) - 1, 2}, {len(all) - 8, 2}, {1, 1}} {
		before := cache.found
		if _, err := all[c.build].build(t, cache); err != nil || cache.found-before != c.found {
			t.Errorf("build %d: %d values, want %d: %v", c.build, cache.found-before, c.found, err)
		}
	}
}

// TestMalformedValues checks that values of the cache that are not those of builds are not used.
func TestMalformedValues(t *testing.T) {
	t.Parallel()
	cache := &memory{values: map[string][]byte{}}
	if _, err := (cacheCase{}).build(t, cache); err != nil {
		t.Fatal(err)
	}
	for name, at := range map[string]string{"not a list": "{}", "a text": "x", "empty": "", "not an object": `["x"]`} {
		for key := range cache.values {
			cache.values[key] = []byte(at)
		}
		want, _ := cacheCase{}.build(t, nil)
		if got, err := (cacheCase{}).build(t, cache); err == nil && got != want {
			t.Errorf("%s: another result:\n%s", name, got)
		}
	}
}
