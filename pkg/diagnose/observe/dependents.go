package observe

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/tree"
)

// Dependents holds the objects that may wait for given objects: the objects that refer to them, and the objects that are not
// ready.
type Dependents struct {
	cluster *Cluster
	of      []controllers.ID
	// without lists the controllers that are not installed. Objects of their kinds are rare and are not reconciled.
	without []string

	mu     sync.Mutex
	listed map[string]bool
	found  []controllers.Object
	// charts holds the existing HelmCharts. A HelmRelease waits for its chart, not for the repository.
	charts map[controllers.ID]bool
	// missed holds the kinds that could not be listed in all namespaces.
	missed map[string]bool
}

// maxOwners is the maximum length of a chain of owners to read.
const maxOwners = 8

// Dependents reads the objects that wait for the given objects, and the dependents of those that are not ready. owners are the
// appliers of the given objects, which may wait for their health.
func (c *Cluster) Dependents(ctx context.Context, of, owners []controllers.ID, without []string) (*Dependents, error) {
	d := &Dependents{cluster: c, of: of, without: without, listed: map[string]bool{}, charts: map[controllers.ID]bool{}, missed: map[string]bool{}}
	var kinds []controllers.Kind
	for _, t := range of {
		kinds = append(kinds, KindOf(t).Dependents()...)
	}
	for _, owner := range owners {
		above, err := d.above(ctx, owner)
		if err != nil {
			return nil, err
		}
		kinds = append(kinds, above...)
	}
	for len(kinds) > 0 {
		before := len(d.found)
		if err := d.list(ctx, kinds); err != nil {
			return nil, err
		}
		kinds = nil
		for _, o := range d.found[before:] {
			if k := KindOf(controllers.IDOf(o)); !k.IsReady(o) {
				kinds = append(kinds, k.Dependents()...)
			}
		}
		kinds = slices.DeleteFunc(kinds, func(k controllers.Kind) bool { return d.listed[k.Kind] })
	}
	return d, nil
}

// above reads the applier of an object and, as long as they are not ready, the appliers above it. It returns the kinds of their
// dependents.
func (d *Dependents) above(ctx context.Context, owner controllers.ID) (kinds []controllers.Kind, err error) {
	for range maxOwners {
		o, err := d.cluster.Flux(ctx, owner)
		if apierrors.IsForbidden(err) || err == nil && o == nil {
			return kinds, nil
		}
		k := KindOf(owner)
		if err != nil || k.IsReady(o) {
			return kinds, err
		}
		d.found = append(d.found, o)
		kinds = append(kinds, k.Dependents()...)
		next, applied := controllers.Manager(o)
		if !applied {
			return kinds, nil
		}
		owner = next
	}
	return kinds, nil
}

// list lists each of the kinds once.
func (d *Dependents) list(ctx context.Context, kinds []controllers.Kind) error {
	g, ctx := errgroup.WithContext(ctx)
	for _, k := range kinds {
		if d.listed[k.Kind] || slices.Contains(d.without, k.Controller) {
			continue
		}
		d.listed[k.Kind] = true
		g.Go(func() error {
			err := d.read(ctx, k, "")
			if apierrors.IsForbidden(err) {
				d.mu.Lock()
				d.missed[k.Kind] = true
				d.mu.Unlock()
				err = d.read(ctx, k, d.of[0].Namespace)
			}
			if apierrors.IsForbidden(err) || isAbsent(err) {
				return nil
			}
			return err
		})
	}
	return g.Wait()
}

// large lists the fields that are not needed for dependencies.
var large = []string{
	"metadata.managedFields", "metadata.labels", "metadata.annotations", "spec.values", "spec.postRenderers", "spec.patches", "spec.postBuild",
	"status.inventory", "status.history",
}

// read keeps the objects of a kind that may wait for one of the requested objects.
func (d *Dependents) read(ctx context.Context, k controllers.Kind, namespace string) error {
	return d.cluster.eachOf(ctx, k, kube.Selection{Namespace: namespace, Without: large}, func(o controllers.Object) error {
		refers := slices.ContainsFunc(tree.Awaited(k, o), func(up controllers.ID) bool { return slices.Contains(d.of, up) })
		d.mu.Lock()
		defer d.mu.Unlock()
		if len(k.Dependents()) > 0 && k.Family == "source" {
			d.charts[k.IDOf(o)] = true
		}
		if refers || !k.IsReady(o) {
			d.found = append(d.found, reduced(k, o))
		}
		return nil
	})
}

// Graph returns the dependencies among the dependents and the objects of the snapshot.
func (d *Dependents) Graph(s *Snapshot) *tree.Graph {
	objects := maps.Clone(s.Objects)
	add := func(t controllers.ID, o controllers.Object) {
		if _, known := objects[t]; !known {
			objects[t] = o
		}
	}
	for _, o := range d.found {
		add(controllers.IDOf(o), o)
	}
	for _, o := range d.found {
		for _, up := range KindOf(controllers.IDOf(o)).Upstream(o) {
			if d.charts[up] {
				add(up, ready(up))
			}
		}
	}
	return tree.NewGraph(slices.Collect(maps.Values(objects)), func(o controllers.ID) bool { return s.absent[o] })
}

// ready returns a ready object with no other content.
func ready(t controllers.ID) controllers.Object {
	return controllers.Object{
		"apiVersion": KindOf(t).APIVersion(), "kind": t.Kind, "metadata": map[string]any{"name": t.Name, "namespace": t.Namespace},
		"status": map[string]any{"conditions": sharedReady},
	}
}

// Direct returns the direct dependents of an object.
func (d *Dependents) Direct(s *Snapshot, t controllers.ID) []*tree.Vertex {
	var vertices []*tree.Vertex
	g := d.Graph(s)
	for _, e := range g.To(t) {
		if e.Waits() {
			vertices = append(vertices, g.Vertex(e.From))
		}
	}
	return vertices
}

// Gaps returns a line with the kinds that could not be listed in all namespaces.
func (d *Dependents) Gaps() []string {
	if len(d.missed) == 0 {
		return nil
	}
	return []string{"no permission to read: dependents in other namespaces, of kind " + strings.Join(slices.Sorted(maps.Keys(d.missed)), ", ")}
}
