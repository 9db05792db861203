package build

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fluxkit/flux/internal/git/filetree"
)

const head = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: cm}\n"

// TestPlainIsWhatKustomizeBuilds compares the two ways for what is written in
// YAML's stranger corners.
func TestPlainIsWhatKustomizeBuilds(t *testing.T) {
	t.Parallel()
	list := "resources: [a.yaml]\n"
	cases := []struct {
		name, kustomization, manifest string
		// plain reports whether it can be built without kustomize.
		plain bool
	}{
		{"as most are", list, head + "data: {a: b}\n", true},
		{"in a namespace", list + "namespace: apps\n", head, true},
		{"of the cluster", list + "namespace: apps\n", "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: r}\nrules: []\n", true},
		{"unknown kind in a namespace", list + "namespace: apps\n", "apiVersion: example.com/v1\nkind: Thing\nmetadata: {name: r, namespace: other}\n", true},
		{"a namespace in a namespace", list + "namespace: apps\n", "apiVersion: v1\nkind: Namespace\nmetadata: {name: other}\n", false},
		{"a binding", list, "apiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata: {name: r}\nsubjects: [{kind: ServiceAccount, name: x}]\nroleRef: {kind: Role, name: y}\n", false},
		{"numbers", list, "apiVersion: example.com/v1\nkind: Thing\nmetadata: {name: r}\nspec: {a: 1, b: 1.0, c: 1e3, d: 0o17, e: 017, f: 0x1F, g: 1.5, h: -0, i: 12345678901234567890, j: 1_000, k: .5, l: -9223372036854775808}\n", false},
		{"smaller numbers", list, "apiVersion: example.com/v1\nkind: Thing\nmetadata: {name: r}\nspec: {a: 1, b: 1.0, c: 1e3, d: 0o17, e: 017, f: 0x1F, g: 1.5, h: -0, k: .5, l: -9223372036854775808, m: 1e21, n: 0.1}\n", true},
		{"truths", list, "apiVersion: example.com/v1\nkind: Thing\nmetadata: {name: r}\nspec: {a: yes, b: on, c: true, d: True, e: ~, f: null, h: 'true', i: n}\n", true},
		{"nothing", list, "apiVersion: example.com/v1\nkind: Thing\nmetadata: {name: r}\nspec: {g: , h: }\n", false},
		{"an empty item", list, head + "x: [null]\n", false},
		{"times", list, "apiVersion: example.com/v1\nkind: Thing\nmetadata: {name: r}\nspec: {a: 2020-01-01}\n", false},
		{"quoted times", list, "apiVersion: example.com/v1\nkind: Thing\nmetadata: {name: r}\nspec: {a: '2020-01-01', b: 10:30, c: \"1\"}\n", true},
		{"blocks", list, head + "data:\n  a: |\n    one\n      two\n\n  b: >-\n    one\n    two\n  c: |+\n    end\n\n  d: \"tab\\tand \\u00e9 \\x07\"\n", true},
		{"anchors", list, head + "data: &d {a: b}\nmore: *d\n", false},
		{"merges", list, "apiVersion: example.com/v1\nkind: Thing\nmetadata: {name: r}\na: &a {x: 1}\nb:\n  <<: *a\n", false},
		{"several", list, "# first\n---\n" + head + "---\n\n---\n# only words\n---\napiVersion: v1\nkind: Secret\nmetadata: {name: s}\ntype: Opaque\n---\n", true},
		{"comment behind dashes", list, head + "--- # next\napiVersion: v1\nkind: Secret\nmetadata: {name: s}\n", false},
		{"dashes in a block", list, head + "data:\n  a: |\n    ---\n    x\n    --- y\n", true},
		{"windows", list, "apiVersion: v1\r\nkind: ConfigMap\r\nmetadata: {name: cm}\r\n", false},
		{"a list", list, "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Secret, metadata: {name: s}}\n", false},
		{"tags", list, head + "data: {a: !!str 1}\n", false},
		{"empty labels", list, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: cm, labels: {}, annotations: }\n", false},
		{"local only", list, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: cm, annotations: {config.kubernetes.io/local-config: 'true'}}\n", false},
		{"labels and annotations", list, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: cm, labels: {a: b}, annotations: {c: d, e: ''}}\n", true},
		{"images", list + "images: [{name: a, newTag: b}]\n", head, false},
		{"json", list, `{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "cm"}, "data": {"a": "b\n"}}`, true},
		{"empty maps", list, head + "data: {}\nmore: []\nnone: null\n", true},
		{"a webhook", list, "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingWebhookConfiguration\nmetadata: {name: w}\nwebhooks: [{name: x, clientConfig: {service: {name: s, namespace: n}}}]\n", false},
		{"references", list, "apiVersion: v1\nkind: Secret\nmetadata: {name: s, namespace: a}\n---\napiVersion: v1\nkind: Secret\nmetadata: {name: s, namespace: b}\n---\napiVersion: v1\nkind: Pod\nmetadata: {name: p, namespace: b}\nspec: {volumes: [{name: v, secret: {secretName: s}}]}\n", true},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := &files{ctx: context.Background(), tree: inMemory(map[string][]byte{
				"app/kustomization.yaml": []byte(c.kustomization), "app/a.yaml": []byte(c.manifest),
			})}
			got, err := (&plain{files: f}).folder("app")
			if (err == nil) != c.plain {
				t.Fatalf("plain: %v, want %v (%v)", err == nil, c.plain, err)
			}
			if err != nil {
				return
			}
			want, err := f.runKustomize("app")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-kustomize +plain):\n%s", diff)
			}
		})
	}
}

// TestPlainFolders compares the two ways for folders in folders.
func TestPlainFolders(t *testing.T) {
	t.Parallel()
	tree := map[string][]byte{
		"top/kustomization.yaml":          []byte("resources: [../base, more/, x.yaml]\n"),
		"top/x.yaml":                      []byte(head),
		"top/more/Kustomization":          []byte("namespace: more\nresources: [deep]\n"),
		"top/more/deep/kustomization.yml": []byte("namespace: deep\nresources: [y.yaml]\n"),
		"top/more/deep/y.yaml":            []byte(head),
	}
	list := "namespace: base\nresources:\n"
	for i := range 30 {
		name := fmt.Sprintf("f%02d.yaml", i)
		list += "- " + name + "\n"
		tree["base/"+name] = fmt.Appendf(nil, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: cm%d}\n", 30-i)
	}
	tree["base/kustomization.yaml"] = []byte(list)
	f := &files{ctx: context.Background(), tree: inMemory(tree)}
	got, err := (&plain{files: f}).folder("top")
	if err != nil {
		t.Fatal(err)
	}
	want, err := f.runKustomize("top")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-kustomize +plain):\n%s", diff)
	}
}

// TestWhatKustomizeRefusesIsNotPlain leaves errors to kustomize.
func TestWhatKustomizeRefusesIsNotPlain(t *testing.T) {
	t.Parallel()
	for name, tree := range map[string]map[string][]byte{
		"the same twice":     {"app/kustomization.yaml": []byte("resources: [a.yaml, b.yaml]"), "app/a.yaml": []byte(head), "app/b.yaml": []byte(head)},
		"default twice":      {"app/kustomization.yaml": []byte("resources: [a.yaml, b.yaml]"), "app/a.yaml": []byte(head), "app/b.yaml": []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: cm, namespace: default}\n")},
		"a missing file":     {"app/kustomization.yaml": []byte("resources: [a.yaml]")},
		"an unknown field":   {"app/kustomization.yaml": []byte("resources: [a.yaml]\nressources: []"), "app/a.yaml": []byte(head)},
		"a circle":           {"app/kustomization.yaml": []byte("resources: [../app]")},
		"no name":            {"app/kustomization.yaml": []byte("resources: [a.yaml]"), "app/a.yaml": []byte("apiVersion: v1\nkind: ConfigMap\n")},
		"a key twice":        {"app/kustomization.yaml": []byte("resources: [a.yaml]"), "app/a.yaml": []byte(head + "data: {a: b, a: c}\n")},
		"two kustomizations": {"app/kustomization.yaml": []byte("resources: [a.yaml]"), "app/kustomization.yml": []byte("resources: [a.yaml]"), "app/a.yaml": []byte(head)},
	} {
		f := &files{ctx: context.Background(), tree: inMemory(tree)}
		if objects, err := f.run("app"); err == nil {
			t.Errorf("%s gave %v", name, objects)
		}
	}
}

// inMemory returns a tree of files.
func inMemory(files map[string][]byte) *filetree.Tree {
	tree, err := filetree.InMemory(files)
	if err != nil {
		panic(err)
	}
	return tree
}
