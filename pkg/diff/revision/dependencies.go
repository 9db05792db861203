package revision

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diff"
	"github.com/fluxkit/flux/pkg/diff/builds"
	"github.com/fluxkit/flux/pkg/repository"
)

// checkOwn reports the assumption that the source of the cluster's directory is this repository at the compared revisions.
func (w *walker) checkOwn(roots pair) {
	for _, s := range w.sides(roots) {
		for _, text := range s.Assumptions() {
			w.note("%s", text)
		}
	}
	if !roots.both() {
		return
	}
	was, wasErr := w.graphs.Base.OwnSource()
	is, isErr := w.graphs.Head.OwnSource()
	if wasErr != nil || isErr != nil || was == nil || is == nil {
		return
	}
	for _, field := range []string{"url", "ref"} {
		before, _, _ := unstructured.NestedFieldNoCopy(was.Object, "spec", field)
		after, _, _ := unstructured.NestedFieldNoCopy(is.Object, "spec", field)
		if !equality.Semantic.DeepEqual(before, after) {
			w.omit(roots.head, fmt.Sprintf("spec.%s of its source %s changes: the content of the new revision is not compared", field, controllers.IDOf(is.Object)), true)
		}
	}
}

// checkDependencies reports missing and circular dependencies, with the objects that they block: as changes if the problem
// is new, otherwise as warnings.
func (w *walker) checkDependencies() {
	base, head := w.graphs.Base.Dependencies(), w.graphs.Head.Dependencies()
	for _, id := range slices.SortedFunc(maps.Keys(head.Needs), controllers.ID.Compare) {
		known := base.Problems(id)
		for _, p := range head.Problems(id) {
			removed := base.Objects[p.Missing] != nil
			if p.MayExist() {
				removed = w.removes(p.Missing)
			}
			if missing := p.Missing != (controllers.ID{}); missing && !removed && (!head.Complete || p.MayExist()) {
				continue // it may be one of the objects that could not be built
			}
			text := p.Text(removed)
			if blocked := head.Dependents(id); len(blocked) > 0 {
				text += "; it also blocks " + controllers.JoinNames(blocked, ", ")
			}
			if !removed && slices.ContainsFunc(known, p.Equal) {
				w.warn("%s is not reconciled: %s", id, text)
				continue
			}
			object := controllers.VersionedIDOf(head.Objects[id].Object)
			w.blocked = append(w.blocked, &diff.Result{Owner: object, Builds: true, Changes: []diff.Change{{Object: object, Action: diff.Blocked, Notes: []string{text}}}})
		}
	}
}

// removes reports whether a change removes an object of any kind.
func (w *walker) removes(id controllers.ID) bool {
	has := func(r *repository.Rendering) bool {
		return r != nil && slices.ContainsFunc(r.Build.Objects, func(o build.Object) bool { return r.ID(o) == id })
	}
	return slices.ContainsFunc(w.found, func(p builds.Pair) bool { return has(p.Before) }) &&
		!slices.ContainsFunc(w.found, func(p builds.Pair) bool { return has(p.After) })
}
