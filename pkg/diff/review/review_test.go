package review_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/diff"
	"github.com/fluxkit/flux/pkg/diff/builds"
	"github.com/fluxkit/flux/pkg/diff/review"
	"github.com/fluxkit/flux/pkg/repository"
)

// object decodes a YAML document; "" is no object.
func object(t testing.TB, text string) *unstructured.Unstructured {
	t.Helper()
	if strings.TrimSpace(text) == "" {
		return nil
	}
	o := &unstructured.Unstructured{}
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if err := o.UnmarshalJSON(data); err != nil {
		t.Fatal(err)
	}
	return o
}

const owner = `
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: apps, namespace: flux-system}
spec: {prune: true}
`

// compared compares two versions of an object in a Kustomization that prunes.
func compared(t testing.TB, owner, before, after string) []*diff.Result {
	t.Helper()
	side := func(text string) *repository.Rendering {
		s := &repository.Rendering{Owner: object(t, owner), Build: &build.Result{}}
		if o := object(t, text); o != nil {
			built := build.Object{Unstructured: o}
			if strings.Contains(text, "${unset}") {
				built.Unset = []string{"unset"}
			}
			s.Build.Objects = []build.Object{built}
		}
		return s
	}
	return builds.Compare([]builds.Pair{{Before: side(before), After: side(after)}})
}

// found returns the findings of results as "rule: detail".
func found(results []*diff.Result) []string {
	names := []string{}
	for _, f := range review.Findings(results) {
		name := f.Rule
		if f.Detail != "" {
			name += ": " + f.Detail
		}
		if f.Allowed != "" {
			name += " (" + f.Allowed + ")"
		}
		names = append(names, name)
	}
	return names
}

func TestRules(t *testing.T) {
	t.Parallel()
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			results := compared(t, owner, c.before, c.after)
			review.Apply(results, nil)
			if d := cmp.Diff(c.want, found(results)); d != "" {
				t.Errorf("-want +got:\n%s", d)
			}
		})
	}
}

// TestEveryRuleIsTested checks that each rule occurs in a case, and that its
// texts are complete.
func TestEveryRuleIsTested(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{
		diff.DangerLost:          true,                   // only a server finds it: cmd/flux/script/testdata/script/diff/deleted_owners.txtar
		"change-while-suspended": true, "orphaned": true, // TestOwner
		"suspended-ancestor": true, // TestSuspended of package revision
	}
	for _, c := range cases {
		for _, name := range c.want {
			id, _, _ := strings.Cut(name, ":")
			seen[id] = true
		}
	}
	ids := map[string]bool{}
	for _, r := range review.Rules() {
		if !seen[r.ID] {
			t.Errorf("no case for rule %s", r.ID)
		}
		if ids[r.ID] || r.Effect == "" || !strings.HasSuffix(r.Explanation, ".") {
			t.Errorf("incomplete or duplicate rule %+v", r)
		}
		ids[r.ID] = true
	}
}

// TestOwner tests the rules about the Kustomization itself.
func TestOwner(t *testing.T) {
	t.Parallel()
	config := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: web}\ndata: {a: '1'}\n"
	for name, c := range map[string]struct {
		owner, before, after string
		want                 []string
	}{
		"suspended":                 {strings.Replace(owner, "prune: true", "suspend: true", 1), config, strings.Replace(config, "'1'", "'2'", 1), []string{"change-while-suspended"}},
		"suspended without changes": {strings.Replace(owner, "prune: true", "suspend: true", 1), config, config, []string{}},
		"active":                    {owner, config, strings.Replace(config, "'1'", "'2'", 1), []string{}},
		"removed without prune":     {strings.Replace(owner, "prune: true", "prune: false", 1), config, "", []string{"orphaned"}},
		"removed with prune":        {owner, config, "", []string{"prune"}},
		"prune is disabled":         {owner, strings.Replace(config, "name: a,", "name: a, annotations: {kustomize.toolkit.fluxcd.io/prune: disabled},", 1), "", []string{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			results := compared(t, c.owner, c.before, c.after)
			review.Apply(results, nil)
			if d := cmp.Diff(c.want, found(results)); d != "" {
				t.Errorf("-want +got:\n%s", d)
			}
		})
	}
}

// TestAllow checks that only the present object and the command line can allow a
// danger, and that Blocking counts the rest.
func TestAllow(t *testing.T) {
	t.Parallel()
	before := "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a, namespace: web}\nspec: {replicas: 2}\n"
	after := strings.Replace(before, "replicas: 2", "replicas: 0", 1)
	annotated := func(text, ids string) string {
		return strings.Replace(text, "name: a,", "name: a, annotations: {fluxkit.dev/allow-danger: '"+ids+"'},", 1)
	}
	for name, c := range map[string]struct {
		before, after string
		allow         []string
		want          string
		blocking      int
	}{
		"not allowed":            {before, after, nil, "scaled-to-zero", 1},
		"another rule":           {annotated(before, "prune"), annotated(after, "prune"), []string{"privileged"}, "scaled-to-zero", 1},
		"flag":                   {before, after, []string{"scaled-to-zero"}, "scaled-to-zero (--allow)", 0},
		"annotation":             {annotated(before, "prune, scaled-to-zero"), annotated(after, "prune, scaled-to-zero"), nil, "scaled-to-zero (fluxkit.dev/allow-danger)", 0},
		"annotation in change":   {before, annotated(after, "scaled-to-zero"), nil, "scaled-to-zero", 1},
		"part of another ID":     {annotated(before, "not-scaled-to-zero"), annotated(after, "x"), nil, "scaled-to-zero", 1},
		"annotation and removed": {annotated(before, "scaled-to-zero"), after, nil, "scaled-to-zero (fluxkit.dev/allow-danger)", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			results := compared(t, owner, c.before, c.after)
			review.Apply(results, c.allow)
			if d := cmp.Diff([]string{c.want}, found(results)); d != "" || len(review.Blocking(results)) != c.blocking {
				t.Errorf("blocking: %v; -want +got:\n%s", review.Blocking(results), d)
			}
		})
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	if err := review.Check([]string{"prune", "immutable"}); err != nil {
		t.Error(err)
	}
	if err := review.Check([]string{"prune", "imutable"}); err == nil || err.Error() != `unknown rule "imutable"` {
		t.Error(err)
	}
}
