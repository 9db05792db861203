package tree

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fluxkit/flux/pkg/controllers"
)

// consumed reports whether a kind is a source. Sources have consumers instead of an inventory.
func consumed(kind schema.GroupKind) (controllers.Kind, bool) {
	k, ok := controllers.KindOf(kind.Group, kind.Kind)
	return k, ok && k.Family == "source"
}

// consumers adds the consumers of a source to the tree, recursively: charts of
// repositories, and releases of charts. Consumers with inventories are
// expanded.
func (b *builder) consumers(ctx context.Context, root *Node, k controllers.Kind) error {
	g, gaps, err := Dependencies(ctx, b.cluster.client, "")
	if err != nil {
		return err
	}
	for _, gap := range gaps {
		if gap.Resource == k.CRD() {
			return gap.Err
		}
		b.gaps.merge(gap)
	}
	if v := g.Vertex(root.Object); v == nil || v.Missing {
		return apierrors.NewNotFound(schema.GroupResource{Group: k.Group, Resource: k.Resource}, root.Object.Name)
	}
	var pending []*Node
	seen := map[controllers.ID]bool{root.Object: true}
	var hang func(n *Node)
	hang = func(n *Node) {
		for _, e := range g.To(n.Object) {
			if e.Relation != "source" || seen[e.From] {
				continue
			}
			seen[e.From] = true
			row, _ := controllers.KindOf(e.From.Group, e.From.Kind)
			child := &Node{Object: e.From, version: row.Version}
			n.Children = append(n.Children, child)
			if row.Inventory != nil {
				pending = append(pending, child)
			}
			hang(child)
		}
	}
	hang(root)
	return b.grow(ctx, root, pending)
}
