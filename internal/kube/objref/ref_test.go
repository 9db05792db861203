package objref

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParse(t *testing.T) {
	t.Parallel()
	type object struct{ Word, Kind, Namespace, Name string }
	for text, want := range map[string]object{
		"ks app":                     {"ks", "Kustomization", "", "app"},
		"ks/app":                     {"ks", "Kustomization", "", "app"},
		"Kustomization/apps/app":     {"Kustomization", "Kustomization", "apps", "app"},
		"source/git/app":             {"source/git", "GitRepository", "", "app"},
		"source/git/apps/app":        {"source/git", "GitRepository", "apps", "app"},
		"deployment/web":             {"deployment", "", "", "web"},
		"deployment/apps/web":        {"deployment", "", "apps", "web"},
		"deployment web":             {"deployment", "", "", "web"},
		"sources/app":                {"sources", "several", "", "app"},
		"ks":                         {},
		"ks/":                        {},
		"/app":                       {},
		"ks//app":                    {},
		"ks/app more":                {},
		"deployment/apps/web/status": {},
	} {
		r, ok := Parse(strings.Fields(text))
		got := object{Word: r.Word, Namespace: r.Namespace, Name: r.Name}
		switch {
		case !ok:
			got = object{}
		case len(r.Kinds) == 1:
			got.Kind = r.Kinds[0].Kind
		case len(r.Kinds) > 1:
			got.Kind = "several"
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: -want +got:\n%s", text, diff)
		}
	}
}
