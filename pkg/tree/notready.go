package tree

// NotReady returns the part of the tree with objects that are not ready, or nil.
func (n *Node) NotReady() *Node {
	part := *n
	part.Children = nil
	for _, child := range n.Children {
		if c := child.NotReady(); c != nil {
			part.Children = append(part.Children, c)
		}
	}
	if len(part.Children) == 0 && (n.Status == Ready || n.Status == Unknown || n.Status == "") {
		return nil
	}
	return &part
}
