package diagnose

import (
	"context"
	"errors"
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

// dependents are the objects that wait for some other objects: those that refer
// to them and those that are not ready.
type dependents struct {
	Doctor
	of []controllers.ID
	// without lists the controllers that are not installed. Objects of their kinds are rare and are
	// not reconciled.
	without []string

	mu     sync.Mutex
	listed map[string]bool
	found  []controllers.Object
	// charts holds the existing HelmCharts. A HelmRelease waits for its chart and not for the
	// repository.
	charts map[controllers.ID]bool
	// missed holds the kinds that could not be listed in all namespaces, with the errors.
	missed map[string]error
}

// dependents reads the objects that wait for the given objects, and the
// dependents of those that are not ready.
func (s *installation) dependents(ctx context.Context, of []controllers.ID) (*dependents, error) {
	found := &dependents{Doctor: s.Doctor, of: of, without: s.uninstalled, listed: map[string]bool{}, charts: map[controllers.ID]bool{}, missed: map[string]error{}}
	var kinds []controllers.Kind
	for _, t := range of {
		k, _ := t.Flux()
		kinds = append(kinds, k.Dependents()...)
	}
	for len(kinds) > 0 {
		before := len(found.found)
		if err := found.list(ctx, kinds); err != nil {
			return nil, err
		}
		kinds = nil
		for _, o := range found.found[before:] {
			k, _ := controllers.FindKind(controllers.Path{"kind"}.String(o))
			if !k.IsReady(o) {
				kinds = append(kinds, k.Dependents()...)
			}
		}
		kinds = slices.DeleteFunc(kinds, func(k controllers.Kind) bool { return found.listed[k.Kind] })
	}
	return found, nil
}

// list lists each of the kinds once.
func (d *dependents) list(ctx context.Context, kinds []controllers.Kind) error {
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
				d.missed[k.Kind] = err
				d.mu.Unlock()
				err = d.read(ctx, k, d.of[0].Namespace)
			}
			var kindMissing *kube.MissingKindError
			if apierrors.IsForbidden(err) || errors.As(err, &kindMissing) {
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

func (d *dependents) read(ctx context.Context, k controllers.Kind, namespace string) error {
	return d.Client.WithServedVersion(ctx, k, func(r kube.Resource) error {
		_, err := d.Client.List(ctx, r, kube.Selection{Namespace: namespace, Without: large}, func(o controllers.Object) error {
			d.take(k, o)
			return nil
		})
		return err
	})
}

// take keeps an object if it may wait for one of the requested objects.
func (d *dependents) take(k controllers.Kind, o controllers.Object) {
	t := k.IDOf(o)
	names := slices.ContainsFunc(tree.Awaited(k, o), func(up controllers.ID) bool { return slices.Contains(d.of, up) })
	wanted, chart := names || !k.IsReady(o), len(k.Dependents()) > 0 && k.Family == "source"
	if wanted {
		o = reduced(k, o)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if chart {
		d.charts[t] = true
	}
	if wanted {
		d.found = append(d.found, o)
	}
}

// graph returns the dependencies among the dependents and the objects of the
// snapshot.
func (d *dependents) graph(s *snapshot) *tree.Graph {
	objects := slices.Collect(maps.Values(s.objects))
	known := map[controllers.ID]bool{}
	for t := range s.objects {
		known[t] = true
	}
	add := func(t controllers.ID, o controllers.Object) {
		if !known[t] {
			known[t] = true
			objects = append(objects, o)
		}
	}
	for _, o := range d.found {
		add(controllers.IDOf(o), o)
	}
	for _, o := range d.found {
		for _, up := range kindNamed(o).Upstream(o) {
			if d.charts[up] {
				add(up, healthy(up))
			}
		}
	}
	return tree.NewGraph(objects, true, func(o controllers.ID) bool { return s.absent[o] })
}

// direct returns the direct dependents of an object.
func (d *dependents) direct(s *snapshot, t controllers.ID) []*tree.Vertex {
	var vertices []*tree.Vertex
	g := d.graph(s)
	for _, e := range g.To(t) {
		if e.Waits() {
			vertices = append(vertices, g.Vertex(e.From))
		}
	}
	return vertices
}

// healthy returns a ready object with no other content.
func healthy(t controllers.ID) controllers.Object {
	k, _ := t.Flux()
	return controllers.Object{
		"apiVersion": k.APIVersion(), "kind": k.Kind, "metadata": map[string]any{"name": t.Name, "namespace": t.Namespace},
		"status": map[string]any{"conditions": sharedReady},
	}
}

// gap returns a line with the kinds that could not be listed in all namespaces.
func (d *dependents) gap() []string {
	if len(d.missed) == 0 {
		return nil
	}
	return []string{"no permission to read: dependents in other namespaces, of kind " + strings.Join(sortedKeys(d.missed), ", ")}
}

// blocks returns the objects that the root of each case blocks, and a
// description of what could not be read.
func (s *diagnosis) blocks(ctx context.Context, cases []Case) (blocked [][]controllers.ID, unread []string) {
	of := slices.Clone(s.needing)
	for _, c := range cases {
		if kindOf(c.Root.Object).Kind != "" && !slices.Contains(of, c.Root.Object) {
			of = append(of, c.Root.Object)
		}
	}
	if len(of) == 0 {
		return nil, nil
	}
	d, err := s.dependents(ctx, of)
	if err != nil {
		return nil, []string{unseen(err) + ": dependents"}
	}
	s.dependent = d
	g := d.graph(s.snapshot)
	for _, c := range cases {
		blocked = append(blocked, blockedBy(g, c))
	}
	return blocked, d.gap()
}

// blockedBy returns the objects that the root of a case blocks, without the
// object of the case and the members of a cycle.
func blockedBy(g *tree.Graph, c Case) []controllers.ID {
	var blocked []controllers.ID
	for _, v := range g.Vertices {
		if v.Object != c.Root.Object {
			continue
		}
		for _, o := range g.Blocks(v.Object) {
			if o != c.Object && !slices.Contains(c.Root.Cycle, o) {
				blocked = append(blocked, o)
			}
		}
	}
	return blocked
}
