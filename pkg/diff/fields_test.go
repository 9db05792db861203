package diff_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/fluxkit/flux/pkg/diff"
)

func decoded(t *testing.T, text string) map[string]any {
	t.Helper()
	var m map[string]any
	if err := yaml.Unmarshal([]byte(text), &m); err != nil {
		t.Fatal(err)
	}
	return m
}

func TestFields(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		before, after string
		want          []string
	}{
		"same":            {"a: {b: 1}", "a: {b: 1}", nil},
		"empty is absent": {"a: {}\nb: []\nc: null", "d: {}", nil},
		"value":           {"a: {b: 1}", "a: {b: 2}", []string{"replaced a.b /a/b"}},
		"type":            {"a: {b: 1}", "a: [1]", []string{"replaced a /a"}},
		"to empty text":   {"a: x", "a: ''", []string{"replaced a /a"}},
		"names escaped":   {"a: {b/c~d: 1}", "a: {b/c~d: 2}", []string{"replaced a.b/c~d /a/b~1c~0d"}},
		"entries":         {"a: {b: 1}", "a: {c: 1}", []string{"removed a.b /a/b", "added a.c /a/c"}},
		"named elements": {
			"l: [{name: p, v: 1}, {name: q, v: 1}]", "l: [{name: q, v: 2}, {name: r, v: 1}]",
			[]string{"replaced l.q.v /l/0/v", "added l.r /l/1", "removed l.p /l/0"},
		},
		"ports":       {"l: [{containerPort: 80}]", "l: [{containerPort: 80, protocol: TCP}]", []string{"added l.80.protocol /l/0/protocol"}},
		"order":       {"l: [{name: p}, {name: q}]", "l: [{name: q}, {name: p}]", []string{"reordered l /l"}},
		"plain order": {"l: [a, b]", "l: [b, a]", []string{"reordered l /l"}},
		"plain":       {"l: [a, b, b]", "l: [b, c]", []string{"added l.1 /l/1", "removed l.0 /l/0", "removed l.2 /l/2"}},
		"same names":  {"l: [{name: x, v: 1}, {name: x, v: 2}]", "l: [{name: x, v: 1}, {name: x, v: 3}]", []string{"added l.1 /l/1", "removed l.1 /l/1"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, f := range diff.Fields(decoded(t, c.before), decoded(t, c.after)) {
				got = append(got, string(f.Op)+" "+f.Path+" "+f.Pointer)
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("fields (-want +got):\n%s", d)
			}
		})
	}
}
