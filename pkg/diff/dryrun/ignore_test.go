package dryrun

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/yaml"

	"github.com/fluxkit/flux/pkg/diff/managedfields"
)

func TestPointers(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{
		"/a/b":     "a: {c: 1}\nl: [{x: 1}, 2]",
		"/a":       "l: [{x: 1}, 2]",
		"/l/0":     "a: {b: 1, c: 1}\nl: [2]",
		"/l/0/x":   "a: {b: 1, c: 1}\nl: [{}, 2]",
		"/l/7":     "a: {b: 1, c: 1}\nl: [{x: 1}, 2]",
		"/l/x":     "a: {b: 1, c: 1}\nl: [{x: 1}, 2]",
		"/none/at": "a: {b: 1, c: 1}\nl: [{x: 1}, 2]",
	} {
		p, err := parsePointer(path)
		if err != nil {
			t.Fatal(err)
		}
		o := parse(t, "a: {b: 1, c: 1}\nl: [{x: 1}, 2]")
		p.without(o)
		if d := cmp.Diff(parse(t, want), o); d != "" {
			t.Errorf("without %s (-want +got):\n%s", path, d)
		}
	}
	if _, err := parsePointer("a"); err == nil || !strings.Contains(err.Error(), "slash") {
		t.Errorf("a path without a slash: %v", err)
	}
}

func TestReplaceByDefault(t *testing.T) {
	t.Parallel()
	container := fieldpath.KeyByFields("name", "app")
	o := parse(t, "spec: {replicas: 3, list: [{name: app, image: x, extra: y}, {name: other}], words: [a, b]}")
	defaults := parse(t, "spec: {replicas: 1}")
	for _, path := range []fieldpath.Path{
		fieldpath.MakePathOrDie("spec", "replicas"),
		fieldpath.MakePathOrDie("spec", "list", container, "extra"),
		fieldpath.MakePathOrDie("spec", "list", fieldpath.KeyByFields("name", "other")),
		fieldpath.MakePathOrDie("spec", "missing", "below"),
	} {
		managedfields.Replace(o, defaults, path)
	}
	want := parse(t, "spec: {replicas: 1, list: [{name: app, image: x}], words: [a, b]}")
	if d := cmp.Diff(want, o); d != "" {
		t.Errorf("object (-want +got):\n%s", d)
	}
}

func parse(t *testing.T, text string) map[string]any {
	t.Helper()
	var m map[string]any
	if err := yaml.Unmarshal([]byte(text), &m); err != nil {
		t.Fatal(err)
	}
	return m
}
