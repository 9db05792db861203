package tree

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fluxkit/flux/internal/budget"
	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/controllers"
)

// Options select the content of a tree. The zero value includes everything
// except the status of objects without dependents, and old ReplicaSets.
type Options struct {
	// InventoryOnly omits objects that are owned by objects in inventories.
	InventoryOnly bool
	// FluxOnly includes only Flux kinds.
	FluxOnly bool
	// Status reads the status of all objects, not only of owners.
	Status bool
	// All includes ReplicaSets that are scaled to zero.
	All bool
	// Kind is the row of a root that is not in the catalog.
	Kind controllers.Kind
	// Root is the root if the caller has already read it, or nil.
	Root controllers.Object
}

// owned reports whether the tree includes owned objects.
func (o Options) owned() bool { return !o.InventoryOnly && !o.FluxOnly }

// Build collects the tree of a Flux object with an inventory (Kustomization,
// HelmRelease or ArtifactGenerator), or of a source with its consumers. It
// returns a NotFound error for a missing root. Lists that are forbidden become
// gaps of the tree.
//
// The number of requests depends on the kinds and namespaces in the tree, not on the number of
// objects. At most five requests are sequential, and six with custom resources. There are two
// exceptions: Kustomizations nested across many namespaces if cluster-wide lists are forbidden, and
// releases without inventories, which require a request each.
func Build(ctx context.Context, client *kube.Client, root controllers.ID, options Options) (*Tree, error) {
	b := newBuilder(client, options)
	node := &Node{Object: root}
	var err error
	if k, ok := consumed(root.GroupKind()); ok {
		node.version = k.Version
		err = b.consumers(ctx, node, k)
	} else {
		err = b.structure(ctx, node)
	}
	if err != nil {
		return nil, err
	}
	if err := b.populate(ctx, node); err != nil {
		return nil, err
	}
	return &Tree{Root: node, Gaps: b.gaps.list()}, nil
}

func newBuilder(client *kube.Client, options Options) *builder {
	return &builder{cluster: &cluster{client}, options: options, flux: map[controllers.ID]fluxObject{}, listed: map[scope]bool{}, expanded: map[controllers.ID]bool{}}
}

type builder struct {
	cluster *cluster
	options Options
	// flux holds the objects with inventories that were read, and listed the kinds and namespaces that
	// were listed.
	flux     map[controllers.ID]fluxObject
	listed   map[scope]bool
	expanded map[controllers.ID]bool
	gaps     gaps
}

type scope struct{ kind, namespace string }

// structure reads inventories, starting at the root. Each round lists the kinds in the inventories
// of the previous round. The third round lists all namespaces, which limits the number of rounds.
func (b *builder) structure(ctx context.Context, root *Node) error {
	if err := b.readRoot(ctx, root.Object); err != nil {
		return err
	}
	pending, err := b.expandAll(ctx, []*Node{root})
	if err != nil {
		return err
	}
	return b.grow(ctx, root, pending)
}

func (b *builder) grow(ctx context.Context, root *Node, pending []*Node) error {
	for round, depth := 1, 1; len(pending) > 0; depth++ {
		if depth > budget.TreeDepth {
			return &budget.ExceededError{Name: root.Object.String(), Fact: fmt.Sprintf("its objects are nested more than %d levels deep", budget.TreeDepth)}
		}
		sent, err := b.read(ctx, pending, round > 2)
		if err != nil {
			return err
		}
		if sent {
			round++
		}
		if pending, err = b.expandAll(ctx, pending); err != nil {
			return err
		}
	}
	return nil
}

func (b *builder) expandAll(ctx context.Context, nodes []*Node) ([]*Node, error) {
	if err := b.restore(ctx, nodes); err != nil {
		return nil, err
	}
	var next []*Node
	for _, node := range nodes {
		below, err := b.expand(node)
		if err != nil {
			return nil, err
		}
		next = append(next, below...)
	}
	return next, nil
}

func (b *builder) readRoot(ctx context.Context, root controllers.ID) error {
	k, ok := expandable(root.GroupKind())
	if !ok && b.options.Kind.Inventory != nil {
		k, ok = b.options.Kind, true
	}
	if !ok {
		return fmt.Errorf("%s has no inventory", root)
	}
	if b.options.Root != nil {
		b.flux[root] = fluxObjectOf(k, b.options.Root)
		return nil
	}
	err := b.cluster.each(ctx, kube.Of(k), kube.Selection{Namespace: root.Namespace, Name: root.Name}, func(o controllers.Object) error {
		b.flux[root] = fluxObjectOf(k, o)
		return nil
	})
	if _, found := b.flux[root]; err == nil && !found {
		return apierrors.NewNotFound(schema.GroupResource{Group: k.Group, Resource: k.Resource}, root.Name)
	}
	return err
}

// expand adds the objects of an inventory to its node and returns the new nodes with inventories.
// Each object is expanded only once, so that cycles end.
func (b *builder) expand(node *Node) ([]*Node, error) {
	f, ok := b.flux[node.Object]
	if !ok {
		if k, _ := expandable(node.Object.GroupKind()); b.options.Status {
			b.absent(node, k.CRD())
		}
		return nil, nil
	}
	if b.options.Status {
		node.describe(f.live)
	}
	if b.expanded[node.Object] {
		return nil, nil
	}
	b.expanded[node.Object] = true
	if f.broken != nil {
		return nil, f.broken
	}
	var next []*Node
	known := map[controllers.ID]bool{node.Object: true}
	for _, child := range node.Children {
		known[child.Object] = true
	}
	for _, e := range f.inventory {
		if known[e.ID] || b.options.FluxOnly && !ofFlux(e.ID.GroupKind()) {
			continue
		}
		known[e.ID] = true
		child := &Node{Object: e.ID, version: e.Version, remote: f.remote || node.remote}
		node.Children = append(node.Children, child)
		if _, nested := expandable(e.ID.GroupKind()); nested && !child.remote {
			next = append(next, child)
		}
	}
	return next, nil
}

// read lists the kinds of the nodes that were not listed yet, and reports
// whether it sent a request.
func (b *builder) read(ctx context.Context, nodes []*Node, everywhere bool) (bool, error) {
	wanted := wants{}
	for _, node := range nodes {
		k, _ := expandable(node.Object.GroupKind())
		if _, known := b.flux[node.Object]; known || b.listed[scope{k.Kind, node.Object.Namespace}] || b.listed[scope{k.Kind, ""}] {
			continue
		}
		// Nested Kustomizations are usually in the same namespace: one list
		// covers all further levels.
		wanted.add(kube.Of(k), node.Object.Namespace, "")
	}
	if len(wanted) == 0 {
		return false, nil
	}
	requests := wanted.requests(everywhere)
	found, err := collect(ctx, b.cluster, requests, &b.gaps, func(o controllers.Object) (fluxObject, error) {
		k, _ := controllers.FindKind(controllers.Path{"kind"}.String(o))
		return fluxObjectOf(k, o), nil
	})
	for _, f := range found {
		b.flux[f.object] = f
	}
	for _, r := range requests {
		for _, namespace := range r.done {
			b.listed[scope{r.resource.Kind, namespace}] = true
		}
	}
	return true, err
}
