package tree

import (
	"cmp"
	"context"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/controllers"
)

// Graph is a dependency graph of Flux objects.
type Graph struct {
	// Vertices are sorted by kind, in the order of the catalog, and by name.
	Vertices []*Vertex
	// Edges are sorted by their start vertices.
	Edges []Edge
	// Cycles lists circular dependencies, each starting with its first object in alphabetical order.
	// MoreCycles is set if there are more.
	Cycles     [][]controllers.ID
	MoreCycles bool

	at       map[controllers.ID]*Vertex
	from, to map[controllers.ID][]Edge
}

// Vertex is a Flux object.
type Vertex struct {
	Object controllers.ID
	// Ready is "True", "False" or "Unknown", or "" for a missing object and for
	// one from a file.
	Ready, Message string
	Suspended      bool
	// Missing marks an object that others refer to and that does not exist.
	Missing bool
	// BlockedBy lists the root causes if the object is not ready: missing or not ready objects that do
	// not have such dependencies themselves. MoreBlockers is set if there are more.
	BlockedBy    []controllers.ID
	MoreBlockers bool
}

// Edge is a reference of From to To.
type Edge struct {
	From, To controllers.ID
	// Relation is the relation in the catalog: source, dependency, provider,
	// image, include, resource; or health if From waits for the health of To.
	Relation string
}

// Dependencies lists the Flux objects in a namespace, "" for all namespaces, and returns their
// graph. It omits kinds that are not installed. Kinds that cannot be listed become gaps.
func Dependencies(ctx context.Context, client *kube.Client, namespace string) (*Graph, []Gap, error) {
	objects, refused, err := client.ListAll(ctx, kube.Selection{Namespace: namespace, Without: []string{"status.inventory"}}, apierrors.IsForbidden, nil)
	if err != nil {
		return nil, nil, err
	}
	var missed gaps
	for kind, err := range refused {
		k, _ := controllers.FindKind(kind)
		missed.add(kube.Of(k), namespace, err)
	}
	known := func(o controllers.ID) bool {
		k, _ := controllers.KindOf(o.Group, o.Kind)
		return (namespace == "" || o.Namespace == namespace) && missed.covers(kube.Of(k).GroupResource().String(), o.Namespace) == nil
	}
	return newGraph(objects, true, true, known), missed.list(), nil
}

// FileGraph returns the graph of the objects in files.
func FileGraph(objects []controllers.Object) *Graph {
	return newGraph(objects, false, true, func(controllers.ID) bool { return true })
}

// NewGraph returns the graph of the objects. A referenced object that is not in objects is
// Missing if known reports that objects would include it if it existed.
func NewGraph(objects []controllers.Object, known func(controllers.ID) bool) *Graph {
	return newGraph(objects, true, false, known)
}

// newGraph returns a graph. live is true for objects of a cluster, and false for objects from files, which have no
// status. others is set if dependencies of other kinds than Flux kinds are vertices, whose state is unknown.
func newGraph(objects []controllers.Object, live, others bool, known func(controllers.ID) bool) *Graph {
	g := &Graph{at: map[controllers.ID]*Vertex{}}
	type row struct {
		kind   controllers.Kind
		object controllers.Object
	}
	var rows []row
	for _, o := range objects {
		k, ok := kindOf(o)
		if !ok {
			continue
		}
		v := g.vertex(k.IDOf(o))
		rows = append(rows, row{k, o})
		v.Suspended = k.Suspension.Is(o)
		if live {
			ready := k.Ready(o)
			v.Ready, v.Message = ready.Status, ready.Message
		}
	}
	for _, r := range rows {
		from := r.kind.ID(controllers.Namespace(r.object), controllers.Name(r.object))
		for _, n := range g.needs(r.kind, r.object) {
			object := n.target
			to, ok := object.Flux()
			if ok {
				object.Kind = to.Kind
			}
			if !ok && (!others || n.relation != "dependency") || object.Name == "" || object.Name == "*" {
				continue
			}
			if _, there := g.at[object]; !there {
				g.vertex(object).Missing = ok && known(object)
			}
			g.Edges = append(g.Edges, Edge{from, object, n.relation})
		}
	}
	for _, r := range rows {
		if p := r.kind.Produces; p != nil {
			for _, t := range p.Targets(r.object) {
				if g.at[t] != nil {
					g.Edges = append(g.Edges, Edge{t, r.kind.IDOf(r.object), p.Relation})
				}
			}
		}
	}
	if live {
		g.addHealth(objects)
	}
	g.sort()
	g.index()
	g.findCycles()
	g.block()
	return g
}

// addHealth adds edges for the health checks of objects: to the objects that the spec lists and,
// according to owner labels, to the objects that they apply.
func (g *Graph) addHealth(objects []controllers.Object) {
	waiting := map[controllers.ID]bool{}
	type pair struct{ from, to controllers.ID }
	known := map[pair]bool{} // for example a HelmRelease and its HelmChart, which also has owner labels
	for _, e := range g.Edges {
		known[pair{e.From, e.To}] = true
	}
	add := func(from, to controllers.ID) {
		if g.at[to] != nil && !g.at[to].Missing && !known[pair{from, to}] {
			known[pair{from, to}] = true
			g.Edges = append(g.Edges, Edge{from, to, "health"})
		}
	}
	for _, o := range objects {
		k, ok := kindOf(o)
		if !ok {
			continue
		}
		waiting[k.IDOf(o)] = controllers.WaitsForApplied(k, o)
		for _, t := range controllers.HealthChecks(k, o) {
			add(k.IDOf(o), t)
		}
	}
	for _, o := range objects {
		if owner, applied := controllers.Manager(o); applied && waiting[owner] {
			add(owner, controllers.IDOf(o))
		}
	}
}

func kindOf(o controllers.Object) (controllers.Kind, bool) {
	group, _, ok := strings.Cut(controllers.Path{"apiVersion"}.String(o), "/")
	if !ok {
		return controllers.Kind{}, false
	}
	return controllers.KindOf(group, controllers.Path{"kind"}.String(o))
}

func (g *Graph) vertex(object controllers.ID) *Vertex {
	v, ok := g.at[object]
	if !ok {
		v = &Vertex{Object: object}
		g.at[object] = v
		g.Vertices = append(g.Vertices, v)
	}
	return v
}

type need struct {
	relation string
	target   controllers.ID
}

// needs returns the references of an object. A release refers to its chart if
// it exists on the cluster, otherwise to the repository.
func (g *Graph) needs(k controllers.Kind, o controllers.Object) []need {
	var all []need
	up := k.SourceOf(o)
	if chart := k.Upstream(o); len(chart) == 1 && chart[0].Kind == controllers.ChartKind {
		if c, _ := controllers.FindKind(controllers.ChartKind); g.at[c.ID(chart[0].Namespace, chart[0].Name)] != nil {
			up = chart
		}
	}
	for _, t := range up {
		all = append(all, need{"source", t})
	}
	for _, r := range k.Refs {
		for _, t := range r.Targets(o) {
			all = append(all, need{r.Relation, t})
		}
	}
	if k.Results != nil {
		for _, t := range k.Results.Targets(o) {
			all = append(all, need{k.Results.Relation, t})
		}
	}
	return all
}

// Awaited returns the Flux objects that an object waits for: its chart or source, its dependencies,
// other required objects, and objects whose health checks have not passed.
func Awaited(k controllers.Kind, o controllers.Object) []controllers.ID {
	targets := slices.Clone(k.Upstream(o))
	for _, ref := range k.AllRefs() {
		if ref.Waits() {
			targets = append(targets, ref.Targets(o)...)
		}
	}
	return named(append(targets, controllers.HealthChecks(k, o)...))
}

// Mentioned returns the Flux objects that an object refers to without waiting
// for them.
func Mentioned(k controllers.Kind, o controllers.Object) []controllers.ID {
	var targets []controllers.ID
	for _, ref := range k.AllRefs() {
		if !ref.Waits() {
			targets = append(targets, ref.Targets(o)...)
		}
	}
	return named(targets)
}

// named returns the references to single Flux objects without duplicates.
func named(targets []controllers.ID) []controllers.ID {
	var all []controllers.ID
	seen := map[controllers.ID]bool{}
	for _, t := range targets {
		k, known := t.Flux()
		t.Kind = k.Kind
		if known && t.Name != "" && t.Name != "*" && !seen[t] {
			seen[t] = true
			all = append(all, t)
		}
	}
	return all
}

func (g *Graph) sort() {
	ranks := make(map[string]int, len(controllers.Known))
	for i, k := range controllers.Known {
		ranks[k.Kind] = i
	}
	rank := func(o controllers.ID) int {
		if n, known := ranks[o.Kind]; known {
			return n
		}
		return len(ranks)
	}
	compare := func(a, b controllers.ID) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	}
	slices.SortFunc(g.Vertices, func(a, b *Vertex) int { return compare(a.Object, b.Object) })
	slices.SortStableFunc(g.Edges, func(a, b Edge) int {
		return cmp.Or(compare(a.From, b.From), strings.Compare(a.Relation, b.Relation), compare(a.To, b.To))
	})
}

// index removes duplicate edges and indexes the others by object.
func (g *Graph) index() {
	g.Edges = slices.Compact(g.Edges)
	g.from, g.to = map[controllers.ID][]Edge{}, map[controllers.ID][]Edge{}
	for _, e := range g.Edges {
		g.from[e.From], g.to[e.To] = append(g.from[e.From], e), append(g.to[e.To], e)
	}
}

// Vertex returns the vertex of an object, or nil.
func (g *Graph) Vertex(o controllers.ID) *Vertex { return g.at[o] }

// From returns the edges to the dependencies of an object.
func (g *Graph) From(o controllers.ID) []Edge { return g.from[o] }

// To returns the edges from the dependents of an object.
func (g *Graph) To(o controllers.ID) []Edge { return g.to[o] }

// Waits reports whether From waits for To. Alerts and Receivers do not wait for
// the objects that they watch.
func (e Edge) Waits() bool { return controllers.Ref{Relation: e.Relation}.Waits() }

// Around returns the part of the graph with the dependencies and dependents of
// an object, direct and indirect.
func (g *Graph) Around(o controllers.ID) *Graph {
	keep := map[controllers.ID]bool{}
	var walk func(o controllers.ID, next func(controllers.ID) []Edge, end func(Edge) controllers.ID)
	walk = func(o controllers.ID, next func(controllers.ID) []Edge, end func(Edge) controllers.ID) {
		keep[o] = true
		for _, e := range next(o) {
			if !keep[end(e)] {
				walk(end(e), next, end)
			}
		}
	}
	walk(o, g.From, func(e Edge) controllers.ID { return e.To })
	walk(o, g.To, func(e Edge) controllers.ID { return e.From })
	part := &Graph{at: map[controllers.ID]*Vertex{}}
	for _, v := range g.Vertices {
		if keep[v.Object] {
			part.Vertices, part.at[v.Object] = append(part.Vertices, v), v
		}
	}
	for _, e := range g.Edges {
		if keep[e.From] && keep[e.To] {
			part.Edges = append(part.Edges, e)
		}
	}
	part.index()
	for _, cycle := range g.Cycles {
		if keep[cycle[0]] {
			part.Cycles = append(part.Cycles, cycle)
		}
	}
	part.MoreCycles = g.MoreCycles
	return part
}

// Reversed returns the graph with reversed edges.
func (g *Graph) Reversed() *Graph {
	turned := &Graph{Vertices: g.Vertices, Cycles: g.Cycles, MoreCycles: g.MoreCycles, at: g.at}
	for _, e := range g.Edges {
		turned.Edges = append(turned.Edges, Edge{e.To, e.From, e.Relation})
	}
	turned.sort()
	turned.index()
	return turned
}
