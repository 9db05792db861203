package tree

import "strings"

// Trees shows the graph as trees: what needs others above what it needs. They
// begin at what nothing else needs; what only cycles lead to comes last. Each
// object has what it needs below it once, wherever it appears again.
func (g *Graph) Trees() []*Node {
	shown := map[Object]bool{}
	var roots []*Node
	for _, alone := range []bool{true, false} {
		for _, v := range g.Vertices {
			// What needs nothing and is needed by nothing says nothing here.
			if len(g.To(v.Object)) == 0 == alone && !shown[v.Object] && len(g.From(v.Object)) > 0 {
				roots = append(roots, g.tree(v.Object, shown))
			}
		}
	}
	return roots
}

// Tree is what an object needs and what that needs.
func (g *Graph) Tree(o Object) *Node { return g.tree(o, map[Object]bool{}) }

func (g *Graph) tree(o Object, shown map[Object]bool) *Node {
	v := g.at[o]
	node := &Node{Object: o, Status: v.Status(), Message: g.why(v)}
	if shown[o] {
		return node
	}
	shown[o] = true
	for _, e := range g.From(o) {
		node.Children = append(node.Children, g.tree(e.To, shown))
	}
	return node
}

// Status is the word that trees have for how ready an object is, "" where that
// is not known.
func (v *Vertex) Status() Status {
	switch {
	case v.Missing:
		return NotFound
	case v.Ready == "True":
		return Ready
	case v.Ready == "False":
		return Failed
	case v.Ready == "Unknown":
		return InProgress
	default:
		return ""
	}
}

// why is what is to be said of an object: what holds it up, else its own message.
func (g *Graph) why(v *Vertex) string {
	var parts []string
	if v.Suspended {
		parts = append(parts, "suspended")
	}
	for _, o := range v.BlockedBy {
		parts = append(parts, "blocked by "+o.String())
	}
	if v.out() && len(v.BlockedBy) == 0 && v.Message != "" {
		parts = append(parts, v.Message)
	}
	return strings.Join(parts, "; ")
}
