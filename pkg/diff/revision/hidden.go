package revision

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diff/builds"
	"github.com/fluxkit/flux/pkg/repository"
)

// hidden returns why a HelmRelease may change although it renders to the same objects before and after a change of its chart or its
// values, or "": a template may use the change only with values that are not available, or only if the cluster serves an API version.
// API versions that are set are taken as complete.
func hidden(w *walker, p pair, revision int, before, after *repository.Rendering) string {
	if before == nil || after == nil || !same(before, after) {
		return ""
	}
	for _, s := range w.sides(p) {
		if lacking := s.Lacking(controllers.IDOf(s.object.Object)); len(lacking) > 0 {
			return fmt.Sprintf("its chart or values change, and its values in %s are not available", lacking[0].Object)
		}
	}
	served := slices.Concat(before.Unserved, after.Unserved)
	slices.Sort(served)
	if served = slices.Compact(served); len(served) == 0 || len(w.Charts.APIVersions) > 0 {
		return ""
	}
	render := func(attempt repository.Attempt) func(*repository.Graph, *unstructured.Unstructured) (*repository.Rendering, bool) {
		return func(g *repository.Graph, hr *unstructured.Unstructured) (*repository.Rendering, bool) {
			rendering, err := g.Release(hr, revision, attempt, served...)
			return rendering, err == nil
		}
	}
	was, wasOK := render(repository.First)(w.graphs.Base, p.base)
	is, isOK := render(repository.First)(w.graphs.Head, p.head)
	if wasOK && isOK {
		w.markUnstable(p, was, is, render(repository.Second))
		if !builds.Compare([]builds.Pair{{Before: was, After: is}})[0].Different() {
			return ""
		}
	}
	return fmt.Sprintf("its chart or values change, and the chart checks for API versions that the cluster may serve: set --api-versions %s", strings.Join(served, ","))
}

// same reports whether two renderings have the same objects and hooks.
func same(a, b *repository.Rendering) bool {
	return equality.Semantic.DeepEqual(a.Build.Unstructured(), b.Build.Unstructured()) && equality.Semantic.DeepEqual(a.Hooks.Unstructured(), b.Hooks.Unstructured())
}
