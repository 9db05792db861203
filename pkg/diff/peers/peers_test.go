package peers

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/fluxkit/flux/pkg/controllers"
)

const kustomization = `
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: app, namespace: apps, labels: {a: b}, resourceVersion: "%d"}
spec: {path: %s, suspend: %t, postBuild: {substitute: {host: a.example.com, "x.y": z}}, patches: [{patch: one}], healthChecks: []}
status:
  lastAppliedRevision: main@sha1:6f9a1b2c%s
  conditions: [{type: Ready, status: "%s", message: m%[1]d}]
`

// stateOf returns the state of a cluster with an object.
func stateOf(t *testing.T, n int, path string, suspended bool, revision, ready string) *State {
	t.Helper()
	var o map[string]any
	if err := yaml.Unmarshal(fmt.Appendf(nil, kustomization, n, path, suspended, revision, ready), &o); err != nil {
		t.Fatal(err)
	}
	k, _ := controllers.FindKind(controllers.Kustomization)
	return &State{Objects: map[controllers.ID]map[string]string{controllers.IDOf(o): fields(k, o)}, Missed: map[string]error{}}
}

func TestCompare(t *testing.T) {
	t.Parallel()
	base := stateOf(t, 1, "./app", false, "00000000", "True")
	for name, c := range map[string]struct {
		states []*State
		want   string
	}{
		"equal, except labels, versions and messages": {[]*State{base, stateOf(t, 2, "./app", false, "00000000", "True")}, ""},
		"spec":            {[]*State{base, stateOf(t, 1, "./web", false, "00000000", "True")}, "Kustomization/apps/app spec.path: ./app ./web\n"},
		"full revision":   {[]*State{base, stateOf(t, 1, "./app", false, "00000001", "True")}, "Kustomization/apps/app revision: main@sha1:6f9a1b2c00000000 main@sha1:6f9a1b2c00000001\n"},
		"suspended":       {[]*State{base, stateOf(t, 1, "./app", true, "00000000", "True")}, "Kustomization/apps/app suspended: false true\n"},
		"readiness":       {[]*State{base, stateOf(t, 1, "./app", false, "00000000", "False")}, "Kustomization/apps/app ready: True False\n"},
		"missing object":  {[]*State{base, {}}, "Kustomization/apps/app exists: true false\n"},
		"third cluster":   {[]*State{base, base, stateOf(t, 1, "./web", false, "00000000", "True")}, "Kustomization/apps/app spec.path: ./app ./app ./web\n"},
		"kind not listed": {[]*State{base, {Missed: map[string]error{controllers.Kustomization: errors.New("forbidden")}}}, ""},
		"another kind not listed": {[]*State{base, {Missed: map[string]error{controllers.HelmRelease: errors.New("forbidden")}}},
			"Kustomization/apps/app exists: true false\n"},
	} {
		var got strings.Builder
		for _, d := range Compare(c.states) {
			fmt.Fprintf(&got, "%s %s:", d.Object, d.Field)
			for _, v := range d.Values {
				if v == nil {
					got.WriteString(" -")
				} else {
					got.WriteString(" " + *v)
				}
			}
			got.WriteString("\n")
		}
		if got.String() != c.want {
			t.Errorf("%s:\n%s, want\n%s", name, got.String(), c.want)
		}
	}
}

// TestFlattenIsBounded checks that a long key is not repeated for each field below it.
func TestFlattenIsBounded(t *testing.T) {
	t.Parallel()
	below := map[string]any{}
	for i := range 1000 {
		below[strconv.Itoa(i)] = map[string]any{"a": "b"}
	}
	values := map[string]string{}
	flatten(values, "spec", map[string]any{strings.Repeat("k", 1<<20): below, "deep": nested(1000)})
	size := 0
	for path, value := range values {
		size += len(path) + len(value)
	}
	if len(values) != 2 || size > 2<<20 {
		t.Errorf("%d values with %d bytes", len(values), size)
	}
}

func nested(levels int) any {
	if levels == 0 {
		return "leaf"
	}
	return map[string]any{"level": nested(levels - 1)}
}

func TestFlatten(t *testing.T) {
	t.Parallel()
	values := map[string]string{}
	flatten(values, "spec", map[string]any{
		"a": map[string]any{"x.y": "z", "b": []any{"1", map[string]any{"c": int64(2)}}}, "none": nil, "list": []any{}, "map": map[string]any{}, "yes": true,
	})
	want := map[string]string{`spec.a["x.y"]`: "z", "spec.a.b[0]": "1", "spec.a.b[1].c": "2", "spec.none": "null", "spec.list": "[]", "spec.map": "{}", "spec.yes": "true"}
	if fmt.Sprint(values) != fmt.Sprint(want) {
		t.Errorf("%v, want %v", values, want)
	}
}
