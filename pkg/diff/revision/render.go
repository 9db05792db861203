package revision

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diff"
)

// Rendered is what a revision deploys to a cluster.
type Rendered struct {
	// Root is the Kustomization of the cluster's folder.
	Root *unstructured.Unstructured
	// Sides are the Kustomizations and HelmReleases with their objects, parents first.
	Sides []*diff.Side
	// Omitted are those whose objects are not known.
	Omitted []Omitted
	// Lacking are the ConfigMaps and Secrets that were not found, by the Kustomization or HelmRelease
	// that was rendered without them.
	Lacking map[controllers.ID][]Lack
	// Blocked are the objects whose dependencies are missing or circular.
	Blocked []Blocked
	// Concealed replaces what is derived from secret values in messages and names.
	Concealed *diff.Concealment
	// Complete is set if everything was rendered, so that an object that was not found is not
	// deployed.
	Complete bool
}

// Omitted is a Kustomization or HelmRelease that was not rendered.
type Omitted struct {
	Owner  controllers.VersionedID
	Reason string
	// Err is the error of its build, or nil if the content of its source is not known.
	Err error
}

// Lack is a ConfigMap or Secret that was not found, or that cannot be read.
type Lack struct {
	Object controllers.ID
	Err    error
}

// Blocked is an object that is never reconciled because of its dependencies.
type Blocked struct {
	Object controllers.VersionedID
	Reason string
}

// Render renders everything that a revision deploys to a cluster.
func Render(ctx context.Context, at Revision, o Options) (*Rendered, error) {
	o.All = true
	var r Rendered
	w, roots, err := walk(ctx, Revision{Tree: nothing{}}, at, o, func(w *walker) {
		dependencies := w.head.dependencies()
		r.Complete, r.Blocked = dependencies.complete, dependencies.all()
	})
	var folder *build.PathError
	if errors.As(err, &folder) && folder.Path == clean(o.Path) {
		return nil, &build.PathError{Path: folder.Path, Problem: "not found in " + at.Name}
	}
	if err != nil {
		return nil, err
	}
	r.Root, r.Lacking, r.Concealed = roots.head, w.lacking, &w.concealed
	diff.Complete(w.found)
	for _, d := range w.found {
		r.Sides = append(r.Sides, d.After)
	}
	for _, ref := range w.omissions {
		r.Omitted = append(r.Omitted, Omitted{ref, w.omitted[ref].Reason, w.causes[ref]})
	}
	r.Complete = r.Complete && len(r.Omitted) == 0 && o.Renderer != nil
	return &r, nil
}

// all returns the objects that are never reconciled. A missing dependency may be among what could not
// be rendered.
func (d *dependencies) all() []Blocked {
	var found []Blocked
	for _, ref := range slices.SortedFunc(maps.Keys(d.needs), controllers.ID.Compare) {
		for _, p := range d.problems(ref) {
			if p.cycle != nil || d.complete {
				found = append(found, Blocked{controllers.VersionedIDOf(d.objects[ref].Object), p.text(false)})
			}
		}
	}
	return found
}

// nothing is a tree without files.
type nothing struct{}

// Open implements fs.FS.
func (nothing) Open(name string) (fs.File, error) {
	return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
}

// Hash implements Tree.
func (nothing) Hash(string) (string, error) { return "", fs.ErrNotExist }
