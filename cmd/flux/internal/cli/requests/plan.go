package requests

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/fluxkit/flux/internal/kube/objref"
	"github.com/fluxkit/flux/pkg/controllers"
)

// plan creates a node for each target and, with WithSource, for its upstream objects, which are
// reconciled once. Targets of several kinds are sorted by their references. Errors are stored in
// the nodes.
func (r *runner) plan(ctx context.Context) {
	for _, t := range r.act.Targets {
		n, _ := r.node(t)
		n.requested, n.wanted = true, true
		r.order = append(r.order, n)
	}
	var wg sync.WaitGroup
	switch {
	case r.options.WithSource:
		for _, n := range r.order {
			wg.Go(func() { r.expand(ctx, n) })
		}
	case kindsOf(r.order) > 1 && !r.options.Resume:
		for _, n := range r.order {
			wg.Go(func() { r.link(ctx, n) })
		}
	default:
		return
	}
	wg.Wait()
	visited := map[*node]bool{}
	for _, n := range r.nodes {
		cutCycles(n, map[*node]bool{}, visited)
	}
}

// kindsOf returns the number of different kinds of the nodes.
func kindsOf(nodes []*node) int {
	kinds := map[string]bool{}
	for _, n := range nodes {
		kinds[n.Kind.CRD()] = true
	}
	return len(kinds)
}

// link orders an object after its sources and dependencies among the targets. An
// object that cannot be read is not ordered: its request returns the error.
func (r *runner) link(ctx context.Context, n *node) {
	if err := r.readOne(ctx, n); err != nil {
		return
	}
	add := func(refs []controllers.ID, dependency bool) {
		for _, ref := range refs {
			k, _ := ref.Flux()
			before, ok := r.nodes[objref.Target{Kind: k, Namespace: ref.Namespace, Name: ref.Name}.Key()]
			known := slices.ContainsFunc(n.before, func(e edge) bool { return e.node == before })
			if ok && before != n && !known {
				n.before = append(n.before, edge{before, dependency})
			}
		}
	}
	add(n.Kind.Upstream(n.Object), false)
	add(n.Kind.SourceOf(n.Object), false)
	add(n.Kind.DependenciesOf(n.Object), true)
}

// node returns the node of an object, and whether it was created.
func (r *runner) node(t objref.Target) (*node, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if n, ok := r.nodes[t.Key()]; ok {
		return n, false
	}
	n := &node{Target: t, done: make(chan struct{})}
	r.nodes[t.Key()] = n
	return n, true
}

// expand adds the upstream objects of an object, recursively.
func (r *runner) expand(ctx context.Context, n *node) {
	if !n.Kind.HasUpstream() {
		return
	}
	if n.err = r.readOne(ctx, n); n.err != nil {
		return
	}
	above, err := r.above(ctx, n)
	if err != nil {
		n.err = err
		return
	}
	for _, t := range above {
		source, added := r.node(t)
		n.before = append(n.before, edge{node: source})
		if added {
			source.requested = requestable(t.Kind)
			r.expand(ctx, source)
		}
	}
}

// above returns the direct upstream objects of an object. A HelmRelease that is
// not reconciled yet has no HelmChart: its repository is used instead.
func (r *runner) above(ctx context.Context, n *node) ([]objref.Target, error) {
	refs := n.Kind.Upstream(n.Object)
	if n.Kind.Release && len(refs) == 1 && refs[0].Kind == controllers.ChartKind {
		k, _ := controllers.FindKind(controllers.ChartKind)
		chart := &node{Target: objref.Target{Kind: k, Namespace: refs[0].Namespace, Name: refs[0].Name}}
		err := r.readOne(ctx, chart)
		if err == nil {
			return []objref.Target{chart.Target}, nil
		}
		var none *objref.NotFoundError
		if !errors.As(err, &none) {
			return nil, err
		}
		refs = n.Kind.SourceOf(n.Object)
	}
	var list []objref.Target
	for _, ref := range refs {
		k, ok := ref.Flux()
		if !ok {
			return nil, fmt.Errorf("%s refers to a source of unknown kind %q", n.Target, ref.Kind)
		}
		list = append(list, objref.Target{Kind: k, Namespace: ref.Namespace, Name: ref.Name})
	}
	return list, nil
}

func (r *runner) readOne(ctx context.Context, n *node) error {
	r.slots <- struct{}{}
	defer func() { <-r.slots }()
	return n.Target.Read(ctx, r.act.Client)
}

// requestable reports whether the controller of a kind handles reconciliation requests.
// ArtifactGenerators support them, although Flux 2.9 has no command for this. ExternalArtifacts do
// not: their generator writes them.
func requestable(k controllers.Kind) bool {
	return k.Has(controllers.Reconcile) || k.Inventory != nil
}

// cutCycles removes edges that close a cycle, such as between generators that use each other's
// artifacts, because waiting for a cycle would never end.
func cutCycles(n *node, above, visited map[*node]bool) {
	if visited[n] {
		return
	}
	visited[n], above[n] = true, true
	var kept []edge
	for _, e := range n.before {
		if above[e.node] {
			continue
		}
		kept = append(kept, e)
		cutCycles(e.node, above, visited)
	}
	n.before = kept
	delete(above, n)
}
