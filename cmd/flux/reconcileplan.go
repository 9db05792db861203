package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/fluxkit/flux/pkg/controllers"
)

// plan makes a node for each target and, with --with-source, for everything
// above: an object that several take their content from is reconciled once.
// Targets of several kinds are put in order. What is wrong with an object is
// its node's error.
func (r *reconciler) plan(ctx context.Context, targets []target) {
	for _, t := range targets {
		n, _ := r.node(t)
		n.ask, n.wanted = true, true
		r.order = append(r.order, n)
	}
	var wg sync.WaitGroup
	switch {
	case r.options.withSource:
		for _, n := range r.order {
			wg.Go(func() { r.expand(ctx, n) })
		}
	case r.kinds() > 1 && !r.resuming:
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

// kinds is how many kinds of objects are to be reconciled.
func (r *reconciler) kinds() int {
	kinds := map[string]bool{}
	for _, n := range r.order {
		kinds[n.kind.Kind] = true
	}
	return len(kinds)
}

// link puts an object behind those of its sources and dependencies that are to
// be reconciled, too. One that cannot be read has no order; the request for its
// reconciliation will say why.
func (r *reconciler) link(ctx context.Context, n *node) {
	if err := r.readOne(ctx, n); err != nil {
		return
	}
	add := func(refs []controllers.Target, dependency bool) {
		for _, ref := range refs {
			k, _ := controllers.FindKind(ref.Kind)
			before, ok := r.nodes[target{kind: k, namespace: ref.Namespace, name: ref.Name}.key()]
			known := slices.ContainsFunc(n.before, func(e edge) bool { return e.node == before })
			if ok && before != n && !known {
				n.before = append(n.before, edge{before, dependency})
			}
		}
	}
	add(n.kind.Upstream(n.object), false)
	add(n.kind.SourceOf(n.object), false)
	add(n.kind.DependenciesOf(n.object), true)
}

// node returns the node of an object and whether it is new.
func (r *reconciler) node(t target) (*node, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if n, ok := r.nodes[t.key()]; ok {
		return n, false
	}
	n := &node{target: t, done: make(chan struct{})}
	r.nodes[t.key()] = n
	return n, true
}

// expand adds the sources of an object and theirs.
func (r *reconciler) expand(ctx context.Context, n *node) {
	if !n.kind.HasUpstream() {
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
			source.ask = asks(t.kind)
			r.expand(ctx, source)
		}
	}
}

// above are the objects one step up. A release that helm-controller has not
// looked at yet has no chart: the repository takes its place.
func (r *reconciler) above(ctx context.Context, n *node) ([]target, error) {
	refs := n.kind.Upstream(n.object)
	if n.kind.Kind == "HelmRelease" && len(refs) == 1 && refs[0].Kind == "HelmChart" {
		k, _ := controllers.FindKind("HelmChart")
		chart := &node{target: target{kind: k, namespace: refs[0].Namespace, name: refs[0].Name}}
		err := r.readOne(ctx, chart)
		if err == nil {
			return []target{chart.target}, nil
		}
		var none *notFoundError
		if !errors.As(err, &none) {
			return nil, err
		}
		refs = n.kind.SourceOf(n.object)
	}
	var list []target
	for _, ref := range refs {
		k, ok := controllers.FindKind(ref.Kind)
		if !ok {
			return nil, fmt.Errorf("%s refers to a source of unknown kind %q", n.target, ref.Kind)
		}
		list = append(list, target{kind: k, namespace: ref.Namespace, name: ref.Name})
	}
	return list, nil
}

func (r *reconciler) readOne(ctx context.Context, n *node) error {
	r.slots <- struct{}{}
	defer func() { <-r.slots }()
	return n.target.read(ctx, r.client)
}

// asks tells whether controllers answer requests for a kind. Generators do,
// though no command of 2.9 asks them; an external artifact is what its
// generator writes.
func asks(k controllers.Kind) bool {
	return k.Has(controllers.Reconcile) || k.Kind == "ArtifactGenerator"
}

// cutCycles removes edges that lead back, as of generators that feed each
// other: waiting for them would never end.
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
