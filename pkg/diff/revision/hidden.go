package revision

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/internal/budget"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diff/builds"
	"github.com/fluxkit/flux/pkg/repository"
)

// hidden returns why a HelmRelease may change although only ignored fields of its objects do, or "": a template may use a change of
// the chart or of the values only with values that are not available, or only if the cluster serves an API version. API versions
// that are set are taken as complete.
func hidden(w *walker, p pair, revision int, before, after *repository.Rendering) string {
	if before == nil || after == nil {
		return ""
	}
	var missing []controllers.ID
	for _, s := range w.sides(p) {
		if object, ok := repository.MissingValues(s.Graph, s.object); ok {
			missing = append(missing, object)
		}
	}
	served := slices.Concat(before.Unserved, after.Unserved)
	slices.Sort(served)
	if served = slices.Compact(served); len(w.Charts.APIVersions) > 0 {
		served = nil
	}
	switch {
	case len(missing)+len(served) == 0 || differ(w, before, after):
		return ""
	case len(missing) > 0:
		return fmt.Sprintf("the effect of the change depends on values in %s, which are not available", missing[0])
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
		if !differ(w, was, is) {
			return ""
		}
	}
	return fmt.Sprintf("the effect of the change depends on API versions of the cluster: set those that it serves with --api-versions, such as %s", budget.List(served, budget.Directories))
}

// differ reports whether the objects or hooks of two renderings differ in fields that are not ignored.
func differ(w *walker, before, after *repository.Rendering) bool {
	if same(before, after) {
		return false
	}
	results := builds.Compare([]builds.Pair{{Before: before, After: after}})
	if w.Ignore != nil {
		w.Ignore(results)
	}
	return results[0].Different()
}

// same reports whether two renderings have the same objects and hooks.
func same(a, b *repository.Rendering) bool {
	return equality.Semantic.DeepEqual(a.Build.Unstructured(), b.Build.Unstructured()) && equality.Semantic.DeepEqual(a.Hooks.Unstructured(), b.Hooks.Unstructured())
}
