package revision

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/controllers"
)

// roots returns the Kustomization of the cluster's folder: the one in the folder whose path is the
// folder, or else one as bootstrap creates it.
func (w *walker) roots() (pair, error) {
	var p pair
	for _, s := range []struct {
		*side
		to **unstructured.Unstructured
	}{{w.head, &p.head}, {w.base, &p.base}} { // the work tree first: the commit takes what is the same from it
		found, err := s.root(w.ctx, w.Path, w.Namespace)
		if err != nil {
			return p, err
		}
		*s.to = found
	}
	if p.base == nil && p.head == nil {
		return p, &build.PathError{Path: w.Path, Problem: "not found in either revision"}
	}
	for _, o := range []*unstructured.Unstructured{p.base, p.head} {
		if o != nil {
			source := build.SourceOf(o)
			w.base.own[source], w.head.own[source] = true, true
		}
	}
	for _, s := range w.sides(p) {
		s.selectOwn(s.ks)
	}
	return p, nil
}

// checkOwn reports what is assumed of the source of the cluster's folder: that it is this
// repository at the compared revisions.
func (w *walker) checkOwn(roots pair) {
	for _, s := range w.sides(roots) {
		source := build.SourceOf(s.ks)
		o, err := s.source(source)
		if err != nil && s.add(s.ks).err != nil {
			continue // the failed build is reported
		}
		if err != nil {
			w.note("%s is not in the repository: it is assumed to be this repository", source)
			continue
		}
		address := text(o, "spec", "url")
		if source.Kind == "GitRepository" && w.Local != nil && !w.Local(address) {
			w.note("%s is assumed to be this repository, although the clone has no remote with its URL", source)
		}
	}
	if roots.base == nil || roots.head == nil {
		return
	}
	was, wasErr := w.base.source(build.SourceOf(roots.base))
	is, isErr := w.head.source(build.SourceOf(roots.head))
	if wasErr != nil || isErr != nil {
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

// sidePair is a side with the Kustomization on it.
type sidePair struct {
	*side
	ks *unstructured.Unstructured
}

func (w *walker) sides(p pair) []sidePair {
	var all []sidePair
	for _, s := range []sidePair{{w.base, p.base}, {w.head, p.head}} {
		if s.ks != nil {
			all = append(all, s)
		}
	}
	return all
}
