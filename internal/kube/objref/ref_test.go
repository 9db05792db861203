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

// TestCommandLines checks how arguments select several objects.
func TestCommandLines(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]struct{ flux, any string }{
		"ks/a":               {"ks/a", "ks/a"},
		"ks/a hr/b":          {"ks/a | hr/b", "ks/a | hr/b"},
		"ks a":               {"ks a", "ks a"},
		"ks a b":             {"ks a | ks b", "ks a | ks b"},
		"ks,hr a b":          {"ks a | hr a | ks b | hr b", "ks a | hr a | ks b | hr b"},
		"image update a":     {"image update a", "image update a"},
		"source/git a":       {"source/git a", "source/git a"},
		"a":                  {"a", "a"},
		"deployment a":       {"error", "deployment a"},
		"deployment a b":     {"error", "deployment a | deployment b"},
		"deployment/a svc/b": {"deployment/a | svc/b", "deployment/a | svc/b"},
	} {
		for anyKind, want := range map[bool]string{false: want.flux, true: want.any} {
			lines, err := CommandLines("flux why", strings.Fields(args), anyKind)
			var texts []string
			for _, line := range lines {
				texts = append(texts, strings.Join(line, " "))
			}
			got := strings.Join(texts, " | ")
			if err != nil {
				got = "error"
			}
			if got != want {
				t.Errorf("%s (any kind: %t): got %s, want %s", args, anyKind, got, want)
			}
		}
	}
}
