package report

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diagnose"
	"github.com/fluxkit/flux/pkg/diagnose/rules"
)

// TestBrief shortens only a description of more than ten lines, to at most ten, and keeps its last fix.
func TestBrief(t *testing.T) {
	t.Parallel()
	words := func(n int, word string) (list []string) {
		for i := range n {
			list = append(list, fmt.Sprintf("%s %d", word, i))
		}
		return list
	}
	cause := func(details, chain, blocks, fixes int) diagnose.Cause {
		var c diagnose.Cause
		for i := range chain {
			c.Chain = append(c.Chain, rules.Finding{Object: controllers.FluxID("Kustomization", "apps", fmt.Sprint("k", i)), Message: "waits"})
		}
		root := &c.Chain[chain-1]
		root.Details, root.Fixes, root.Retry = words(details, "detail"), words(fixes, "fix"), "flux reconcile"
		for i := range blocks {
			c.Blocks = append(c.Blocks, controllers.FluxID("HelmRelease", "apps", fmt.Sprint("h", i)))
		}
		return c
	}
	for _, tt := range []struct{ details, chain, blocks, fixes, whole, lines int }{
		{0, 1, 0, 1, 4, 4}, {2, 2, 0, 2, 10, 10}, {2, 2, 2, 2, 13, 9}, {3, 2, 2, 2, 14, 10}, {9, 5, 30, 9, 37, 10}, {9, 1, 0, 0, 12, 6},
	} {
		for _, brief := range []bool{false, true} {
			p := &Page{Strong: func(s string) string { return s }, Brief: brief}
			c := cause(tt.details, tt.chain, tt.blocks, tt.fixes)
			p.Problem(c)
			text := p.B.String()
			if got := strings.Count(text, "\n"); brief && got != tt.lines || !brief && got != tt.whole {
				t.Errorf("%+v, brief %v: %d lines:\n%s", tt, brief, got, text)
			}
			if !strings.HasSuffix(text, "flux reconcile\n") {
				t.Errorf("%+v: the last fix is missing:\n%s", tt, text)
			}
		}
	}
}

func TestUnreported(t *testing.T) {
	t.Parallel()
	const said = "BuildFailed: kustomize build failed: no such file or directory"
	for message, want := range map[string]string{
		"kustomize build failed: no such file or directory":                             "",
		"the manifests do not build: kustomize build failed: no such file or directory": "the manifests do not build",
		"the manifests do not build: kustomize build failed: no such file…":             "the manifests do not build",
		"the source has no such folder: ./app":                                          "the source has no such folder: ./app",
		"a reason: BuildFailed":                                                         "a reason: BuildFailed",
	} {
		if diff := cmp.Diff(want, unreported(message, said)); diff != "" {
			t.Errorf("%s: %s", message, diff)
		}
	}
}
