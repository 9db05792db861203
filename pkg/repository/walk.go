package repository

import (
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/internal/budget"
	"github.com/fluxkit/flux/internal/secrets/redact"
	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/build/charts"
	"github.com/fluxkit/flux/pkg/build/operator"
	"github.com/fluxkit/flux/pkg/build/placeholder"
	"github.com/fluxkit/flux/pkg/controllers"
)

// Deployed is everything that a revision deploys to a cluster.
type Deployed struct {
	// Renderings holds the renderings of the Kustomizations and HelmReleases, parents first.
	Renderings []*Rendering
	// Omitted lists the Kustomizations and HelmReleases that were not rendered.
	Omitted []Omitted
	// Blocked lists the objects that are never reconciled because of missing or circular dependencies.
	Blocked []Blocked
	// Complete is set if everything was rendered: an object that was not found is then not deployed.
	Complete bool

	walker *walker
}

// Follow renders the Kustomizations that a HelmRelease installs if the graph did not render the HelmRelease. It returns
// the renderings that it adds.
func (d *Deployed) Follow(release *Rendering) []*Rendering {
	before := len(d.Renderings)
	d.walker.follow(d.walker.graph.Installed(release))
	return d.Renderings[before:]
}

// Objects returns the objects of all renderings, each once.
func (d *Deployed) Objects() []*unstructured.Unstructured {
	var all []*unstructured.Unstructured
	seen := map[controllers.ID]bool{}
	for _, rendering := range d.Renderings {
		for _, o := range rendering.Build.Objects {
			if id := rendering.ID(o); !seen[id] {
				seen[id] = true
				all = append(all, o.Unstructured)
			}
		}
	}
	return all
}

// Omitted is a Kustomization or HelmRelease that was not rendered.
type Omitted struct {
	Owner  controllers.VersionedID
	Reason string
	// Err is the build or source error. Unavailable is set if the source content is unavailable.
	Err         error
	Unavailable bool
	// Alias and Source are the names of the owner and its source, without parts derived from secret values.
	Alias, Source controllers.ID
}

// Deploy renders everything that the revision deploys to the cluster.
func (g *Graph) Deploy() (*Deployed, error) {
	w := &walker{graph: g, seen: map[controllers.ID]bool{controllers.IDOf(g.root.Object): true}, deployed: &Deployed{}}
	w.deployed.walker = w
	w.kustomization(g.root)
	if g.Err() != nil {
		return nil, g.Err()
	}
	dependencies := g.Dependencies()
	w.deployed.Blocked = dependencies.all()
	w.deployed.Complete = dependencies.Complete && len(w.deployed.Omitted) == 0 && g.Charts.Renderer != nil
	return w.deployed, nil
}

// walker follows everything that a graph contains.
type walker struct {
	graph    *Graph
	seen     map[controllers.ID]bool
	deployed *Deployed
	// depth is the number of releases on the path to the current one that are installed by charts.
	depth int
}

func (w *walker) kustomization(ks *unstructured.Unstructured) {
	if _, err := w.graph.Content(build.SourceOf(ks)); errors.Is(err, build.ErrNotFound) {
		w.omit(Omitted{Reason: err.Error(), Err: err, Unavailable: true}, ks)
		return
	}
	w.render(ks)
}

// render renders a Kustomization, ResourceSet or FluxInstance.
func (w *walker) render(owner *unstructured.Unstructured) {
	rendering, err := w.graph.Render(owner)
	var unknown *operator.UnknownError
	switch {
	case errors.As(err, &unknown):
		w.omit(Omitted{Reason: err.Error(), Err: err, Unavailable: true}, owner)
	case err != nil:
		w.fail(owner, err)
	default:
		w.take(rendering, rendering)
	}
}

func (w *walker) release(hr *unstructured.Unstructured) {
	rendering, err := w.graph.Release(hr, Install, First)
	if reason, ok := ChartUnavailable(err); ok {
		w.omit(Omitted{Reason: reason, Err: err, Unavailable: true}, hr)
		return
	}
	if err != nil {
		w.fail(hr, err)
		return
	}
	w.depth++
	defer func() { w.depth-- }()
	if CheckDepth(w.graph, hr, w.depth) == nil {
		w.take(rendering, w.graph.Installed(rendering))
	}
}

// take adds a rendering, and follows the Kustomizations and HelmReleases in flux.
func (w *walker) take(rendering, flux *Rendering) {
	w.deployed.Renderings = append(w.deployed.Renderings, rendering)
	w.follow(flux)
}

// follow follows the Kustomizations and HelmReleases of a rendering.
func (w *walker) follow(flux *Rendering) {
	for _, o := range flux.Build.Objects {
		id := controllers.IDOf(o.Unstructured.Object)
		follow := w.render
		switch {
		case build.IsKustomization(o.Unstructured):
			follow = w.kustomization
		case build.IsHelmRelease(o.Unstructured) && w.graph.Charts.Renderer != nil:
			follow = w.release
		case !operator.Renders(o.Unstructured):
			continue
		}
		if w.seen[id] || w.graph.Err() != nil {
			continue
		}
		w.seen[id] = true
		follow(o.Unstructured)
	}
}

func (w *walker) fail(owner *unstructured.Unstructured, err error) {
	reason := CannotBuild(owner, err)
	var source *SourceError
	if errors.As(err, &source) {
		err = source.err
	}
	w.omit(Omitted{Reason: reason, Err: err}, owner)
}

func (w *walker) omit(o Omitted, owner *unstructured.Unstructured) {
	o.Owner = controllers.VersionedIDOf(owner.Object)
	object := build.Object{Unstructured: owner, Twin: w.graph.found.objects[o.Owner.ID].Twin}
	o.Alias, o.Source = object.Alias(), build.SourceOf(owner)
	if object.Twin != nil && build.SourceOf(object.Twin) != o.Source {
		o.Source.Name = placeholder.Alias(o.Source.Name)
	}
	w.deployed.Omitted = append(w.deployed.Omitted, o)
}

// CannotBuild describes why an owner was not rendered. Reports print the owner before this reason.
func CannotBuild(owner *unstructured.Unstructured, err error) string {
	return "cannot be built: " + redact.Text(strings.TrimPrefix(err.Error(), "building "+controllers.IDOf(owner.Object).String()+": "))
}

// ChartUnavailable returns why the chart of a HelmRelease is not available, and false for another error.
func ChartUnavailable(err error) (reason string, ok bool) {
	var source *charts.SourceError
	if !errors.As(err, &source) || !errors.Is(err, build.ErrNotFound) {
		return "", false
	}
	var missing *UnavailableError
	if errors.As(err, &missing) {
		return missing.Reason, true
	}
	return source.Error(), true
}

// CheckDepth ends the graph if charts install HelmReleases too many levels deep.
func CheckDepth(g *Graph, hr *unstructured.Unstructured, depth int) error {
	if depth > budget.TreeDepth {
		g.err = &budget.ExceededError{Name: controllers.IDOf(hr.Object).String(), Fact: fmt.Sprintf("HelmReleases in charts are nested more than %d levels deep", budget.TreeDepth)}
	}
	return g.err
}
