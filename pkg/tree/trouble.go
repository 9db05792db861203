package tree

// Trouble is the part of the tree that leads to what is not ready, nil where
// everything is or nothing is known.
func (n *Node) Trouble() *Node {
	part := *n
	part.Children = nil
	for _, child := range n.Children {
		if c := child.Trouble(); c != nil {
			part.Children = append(part.Children, c)
		}
	}
	if len(part.Children) == 0 && (n.Status == Ready || n.Status == Unknown || n.Status == "") {
		return nil
	}
	return &part
}
