package fit_test

import (
	"testing"

	"github.com/fluxkit/flux/internal/terminal/fit"
)

func TestFold(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		line        string
		hang, width int
		want        string
	}{
		"short":                 {"  a few words", 4, 20, "  a few words"},
		"no terminal":           {"  many words in a line of their own", 4, 0, "  many words in a line of their own"},
		"broken":                {"  many words in a line of their own", 4, 20, "  many words in a\n    line of their\n    own"},
		"a word that is longer": {"✗ https://example.com/a/long/address is gone", 2, 20, "✗ https://example.com/a/long/address\n  is gone"},
		"runes count":           {"✗ äöü äöü äöü", 2, 9, "✗ äöü äöü\n  äöü"},
		"a command stays whole": {"    flux reconcile kustomization app -n apps", 6, 20, "    flux reconcile kustomization app -n apps"},
		"and begins a line":     {"    to restore the object: flux reconcile kustomization app", 6, 30, "    to restore the object:\n      flux reconcile kustomization app"},
		"narrower than nothing": {"    many words", 6, 5, "    many words"},
	} {
		if got := fit.Fold(c.line, c.hang, c.width); got != c.want {
			t.Errorf("%s:\ngot:\n%s\nwant:\n%s", name, got, c.want)
		}
	}
}
