package tree

import (
	"fmt"
	"strings"

	"github.com/fluxkit/flux/internal/budget"
	"github.com/fluxkit/flux/pkg/controllers"
)

// Trees returns the graph as trees from dependents to dependencies. Roots are objects without
// dependents, followed by cycles. The dependencies of each object appear once. A subtree that is
// too deep becomes a separate tree.
func (g *Graph) Trees() []*Node {
	shown := map[controllers.ID]bool{}
	var roots []*Node
	for _, alone := range []bool{true, false} {
		for _, v := range g.Vertices {
			// Isolated objects are omitted.
			if len(g.To(v.Object)) == 0 == alone && !shown[v.Object] && len(g.From(v.Object)) > 0 {
				roots = append(roots, g.tree(v.Object, shown, 1))
			}
		}
	}
	return roots
}

// Tree returns the tree of the dependencies of an object.
func (g *Graph) Tree(o controllers.ID) *Node { return g.tree(o, map[controllers.ID]bool{}, 1) }

func (g *Graph) tree(o controllers.ID, shown map[controllers.ID]bool, depth int) *Node {
	v := g.at[o]
	node := &Node{Object: o, Status: v.Status(), Message: g.Why(v)}
	if shown[o] {
		return node
	}
	if depth > budget.TreeDepth && len(g.From(o)) > 0 {
		node.Message = strings.TrimPrefix(node.Message+fmt.Sprintf("; its dependencies are not shown here, because the tree has more than %d levels", budget.TreeDepth), "; ")
		return node
	}
	shown[o] = true
	for _, e := range g.From(o) {
		node.Children = append(node.Children, g.tree(e.To, shown, depth+1))
	}
	return node
}

// Status returns the status of an object in a tree, "" if it is unknown.
func (v *Vertex) Status() Status {
	if v.Missing {
		return NotFound
	}
	return ReadyStatus(v.Ready)
}

// ReadyStatus converts the status of a Ready condition, "" without a condition.
func ReadyStatus(ready string) Status {
	return map[string]Status{"True": Ready, "False": Failed, "Unknown": InProgress}[ready]
}

// Why describes why an object is not ready: its suspension, the objects that block it, or its own
// message.
func (g *Graph) Why(v *Vertex) string {
	var parts []string
	if v.Suspended {
		parts = append(parts, "suspended")
	}
	for _, o := range v.BlockedBy {
		parts = append(parts, "blocked by "+o.String())
	}
	if v.MoreBlockers {
		parts = append(parts, "blocked by others")
	}
	if v.out() && len(v.BlockedBy) == 0 && v.Message != "" {
		parts = append(parts, v.Message)
	}
	return strings.Join(parts, "; ")
}
