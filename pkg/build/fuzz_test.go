package build

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/internal/budget"
	"github.com/fluxkit/flux/pkg/build/placeholder"
	"github.com/fluxkit/flux/pkg/controllers"
)

// refusing is a Kustomizer that runs nothing: builds that need one end there.
type refusing struct{}

var errRefused = errors.New("needs a process of its own")

func (refusing) Execute(context.Context, []Template, []map[string]any) ([][]string, error) {
	return nil, errors.New("refused")
}

func (refusing) Kustomize(context.Context, string, FileSystem) ([][]byte, error) {
	return nil, errRefused
}

func (refusing) Allows(string) bool { return false }

type noNetwork struct{ asked []string }

func (n *noNetwork) RoundTrip(r *http.Request) (*http.Response, error) {
	n.asked = append(n.asked, r.URL.String())
	return nil, errors.New("no network")
}

// outside records what a build asks of the network and of git.
type outside struct {
	network *noNetwork
	mark    string
}

// watchOutside replaces the transport and the git that kustomize finds.
func watchOutside(f *testing.F) *outside {
	f.Helper()
	if runtime.GOOS == "windows" {
		f.Fatal("the stand-in for git is a shell script")
	}
	dir := f.TempDir()
	o := &outside{network: &noNetwork{}, mark: filepath.Join(dir, "mark")}
	script := "#!/bin/sh\necho \"$@\" >> " + o.mark + "\nexit 1\n"
	if err := os.WriteFile(filepath.Join(dir, "git"), []byte(script), 0o755); err != nil { // it has to be executable
		f.Fatal(err)
	}
	f.Setenv("PATH", dir)
	before := http.DefaultTransport
	http.DefaultTransport = o.network
	f.Cleanup(func() { http.DefaultTransport = before })
	return o
}

func (o *outside) check(t *testing.T) {
	t.Helper()
	if len(o.network.asked) > 0 {
		t.Errorf("requests: %q", o.network.asked)
		o.network.asked = nil
	}
	if calls, err := os.ReadFile(o.mark); err == nil {
		t.Errorf("git was started: %s", calls)
	}
}

// maxFuzzed is the length of a document from which a build may cost more than the run is worth.
const maxFuzzed = 4 << 10

// FuzzKustomizationFile builds a folder with any kustomization and manifest. A build that does not
// start kustomize has its result, no build asks the network or starts git, and none reads a file
// that is not in the tree.
func FuzzKustomizationFile(f *testing.F) {
	for _, seed := range [][2]string{
		{"resources: [a.yaml]\n", head + "data: {a: b}\n"},
		{"resources: [a.yaml]\nnamespace: apps\nnamePrefix: x-\n", head},
		{"resources: [a.yaml, ../../../etc/passwd, /etc/passwd]\n", head},
		{"resources: [https://127.0.0.1:1/x.yaml, 'git::file:///x', git@example.com:x/y, github.com/a/b]\n", head},
		{"resources: [a.yaml]\nconfigMapGenerator: [{name: g, files: [a.yaml, k=a.yaml], envs: [a.yaml]}]\n", "A=b\n"},
		{"resources: [.]\n", head}, {"resources: [a.yaml, a.yaml]\n", head},
		{"helmCharts: [{name: x, repo: https://example.com}]\n", head},
		{"transformers: [a.yaml]\ngenerators: [a.yaml]\n", "apiVersion: x/v1\nkind: Y\nmetadata: {name: z, annotations: {config.kubernetes.io/function: \"exec: {path: ./a}\"}}\n"},
		{"resources: [a.yaml]\npatches: [{path: a.yaml}, {patch: \"- op: replace\\n  path: /data\\n  value: 1\", target: {kind: ConfigMap}}]\n", head},
		{"resources: [a.yaml]\nreplacements: [{source: {kind: ConfigMap}, targets: [{select: {kind: ConfigMap}, fieldPaths: [data.a]}]}]\n", head},
		{"openapi: {path: a.yaml}\nresources: [a.yaml]\n", "{}"}, {"&a [*a]", "a: &a [*a]"}, {"resources: [a.yaml]\n", head + "---\n--- # x\n" + head},
	} {
		f.Add(seed[0], seed[1])
	}
	beyond := watchOutside(f)
	ks := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization", "metadata": map[string]any{"name": "app", "namespace": "apps"},
		"spec": map[string]any{"path": "app"},
	}}
	f.Fuzz(func(t *testing.T, kustomization, manifest string) {
		if len(kustomization)+len(manifest) > maxFuzzed {
			return
		}
		tree := inMemory(map[string][]byte{
			"app/kustomization.yaml": []byte(kustomization), "app/a.yaml": []byte(manifest), "base/kustomization.yaml": []byte("resources: [b.yaml]\n"), "base/b.yaml": []byte(head),
		})
		result, err := Kustomization(t.Context(), tree, ks, Options{Kustomizer: refusing{}})
		beyond.check(t)
		if err == nil {
			for _, o := range result.Objects {
				if o.GetLabels()[toolkit+"/name"] != "app" || o.GetName() == "" || o.GetKind() == "" {
					t.Errorf("an object without a name or a label: %v", o.Object)
				}
			}
		} else if strings.Contains(err.Error(), "root:") {
			t.Errorf("the error has the content of another file: %v", err)
		}
		fs := &files{ctx: t.Context(), tree: tree, budget: budget.New(budget.Default())}
		got, err := (&plain{files: fs}).folder("app")
		if err != nil || distinct(got) != nil {
			return
		}
		want, err := fs.runKustomize("app")
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); err != nil || diff != "" {
			t.Errorf("%q and %q (-kustomize +plain): %v\n%s", kustomization, manifest, err, diff)
		}
	})
}

// FuzzKustomization builds a folder for any object that claims to be a Kustomization. What is
// built is labeled with its owner, whatever the object says.
func FuzzKustomization(f *testing.F) {
	for _, spec := range []string{
		"path: app", "path: ../../etc", "path: /", "path: app\ntargetNamespace: other\nnamePrefix: a-\nimages: [{name: a, newTag: b, digest: c}]",
		"path: app\npostBuild: {substitute: {a: b}, substituteFrom: [{kind: Secret, name: x}, {kind: Pod}, 1]}\n", "path: [a]", "components: [../base, /etc, 'git::x']",
		"path: app\npatches: [{patch: \"{}\", target: {labelSelector: 'a in (', kind: .*}}]", "path: app\ncommonMetadata: {labels: {kustomize.toolkit.fluxcd.io/name: x}, annotations: 1}",
		"path: app\ndecryption: {provider: sops}", "path: app\npatchesJson6902: [{patch: [{op: copy, from: /a, path: /b}], target: {name: a}}]\npatchesStrategicMerge: [1]", "",
	} {
		f.Add(spec)
	}
	beyond := watchOutside(f)
	tree := inMemory(map[string][]byte{
		"app/a.yaml": []byte(head + "data: {a: \"${a:=b}\"}\n"), "app/base/kustomization.yaml": []byte("resources: [b.yaml]\n"), "app/base/b.yaml": []byte(strings.Replace(head, "cm", "other", 1)),
	})
	f.Fuzz(func(t *testing.T, spec string) {
		var fields any
		if len(spec) > maxFuzzed || budget.Unmarshal("spec", []byte(spec), &fields) != nil {
			return
		}
		ks := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization", "metadata": map[string]any{"name": "app", "namespace": "apps"}, "spec": fields,
		}}
		result, err := Kustomization(t.Context(), tree, ks, Options{Kustomizer: refusing{}, Lookup: FromObjects(nil)})
		beyond.check(t)
		if err != nil {
			return
		}
		for _, o := range result.Objects {
			if o.Owner != (controllers.FluxID("Kustomization", "apps", "app")) || o.GetName() == "" || len(o.GetLabels()) == 0 {
				t.Errorf("%q: %+v", spec, o)
			}
		}
	})
}

// FuzzSubstitute substitutes variables of a Secret into any text: every value of the result that
// has the secret is marked as secret, and the result is bounded.
func FuzzSubstitute(f *testing.F) {
	for _, text := range []string{
		"${secret}", "a ${open} ${secret:3} ${secret/a/b} ${secret//./xx}", "${unset:=${secret}}", "$${secret}", "${secret", "${open//e/${secret}}", "${secret^^} ${#secret}",
		"${open:-\"}${secret}", "${open//${open}/${open}${open}}", "\n---\n${secret}: x", "${secret#c*}${secret%%-*}", "${secret:0:100000000000}", "${open:-1:-1}", "${}", "${secret/}",
	} {
		f.Add(text, "key")
	}
	const secret = "canary-value"
	vars := &variables{
		values: map[string]string{"secret": secret, "open": "eu-west"}, secret: map[string]bool{"secret": true}, origins: map[string]controllers.ID{},
	}
	others := &variables{values: map[string]string{"secret": placeholder.Of(secret), "open": "eu-west"}}
	f.Fuzz(func(t *testing.T, text, key string) {
		if strings.Contains(text+key, secret) {
			return
		}
		substituted := func(vars *variables) []Object {
			o := Object{Unstructured: &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "cm"}, "data": map[string]any{key: text, "other": "x"},
			}}}
			if err := vars.substitute(&o); err != nil {
				return nil
			}
			return []Object{o}
		}
		objects := substituted(vars)
		Mark(objects, substituted(others))
		for i := range objects {
			unmarked(t, &objects[i], objects[i].Object, nil, secret)
		}
	})
}

// unmarked reports values with the secret that are at no path of a secret.
func unmarked(t *testing.T, o *Object, value any, at []string, secret string) {
	t.Helper()
	if marked(o.Secret, at) {
		return
	}
	switch value := value.(type) {
	case map[string]any:
		for key, below := range value {
			if strings.Contains(key, secret) {
				t.Errorf("the key %q of %v is not marked (%q)", key, o.Object, o.Secret)
			}
			unmarked(t, o, below, append(at[:len(at):len(at)], key), secret)
		}
	case []any:
		for _, below := range value {
			unmarked(t, o, below, append(at[:len(at):len(at)], "?"), secret)
		}
	case string:
		if strings.Contains(value, secret) {
			t.Errorf("%q of %v is not marked (%q)", at, o.Object, o.Secret)
		}
	}
}

// marked reports whether a path is one of those of secrets.
func marked(secrets [][]string, at []string) bool {
	for _, path := range secrets {
		if len(path) == len(at) && cmp.Equal(path, at, cmp.Comparer(func(a, b string) bool { return a == b || b == "?" })) || len(path) == 0 {
			return true
		}
	}
	return false
}
