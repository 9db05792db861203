package kinds

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	"github.com/fluxkit/flux/internal/kube/objref"
)

// TestSeveralKinds checks which arguments select kinds beside -A and -l. Names are an error.
func TestSeveralKinds(t *testing.T) {
	t.Parallel()
	const exclusive = "a resource and --label-selector are mutually exclusive"
	for args, want := range map[string]struct{ kinds, err string }{
		"":              {"", ""},
		"ks":            {"ks", ""},
		"ks,hr":         {"ks,hr", ""},
		"ks hr ks":      {"ks,hr", ""},
		"kustomization": {"ks", ""},
		"ks/app":        {"", exclusive},
		"ks app":        {"", exclusive},
		"app":           {"", exclusive},
		"kustomisation": {"", "'kustomisation' is not a recognized Flux kind"},
		"ks,":           {"", exclusive},
	} {
		s := &Several{}
		fs := pflag.NewFlagSet("", pflag.ContinueOnError)
		s.Add(fs, "show")
		if err := fs.Parse([]string{"-l", "team=blue"}); err != nil {
			t.Fatal(err)
		}
		found, err := s.Kinds(strings.Fields(args))
		got := struct{ kinds, err string }{kinds: strings.Join(objref.KindWords(found), ",")}
		if err != nil {
			got.err = err.Error()
		}
		if got != want {
			t.Errorf("%q: got %+v, want %+v", args, got, want)
		}
	}
}

// TestSeveralSelector checks label selectors.
func TestSeveralSelector(t *testing.T) {
	t.Parallel()
	got := map[string]string{}
	for _, text := range []string{"", "team=blue", "team in (a,b),!old", "team in", "=blue"} {
		s := &Several{options: TargetOptions{Labels: text}}
		selector, err := s.Selector()
		switch {
		case err != nil:
			got[text] = "invalid"
		case selector == nil:
			got[text] = "all"
		default:
			got[text] = selector.String()
		}
	}
	want := map[string]string{"": "all", "team=blue": "team=blue", "team in (a,b),!old": "!old,team in (a,b)", "team in": "invalid", "=blue": "invalid"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
