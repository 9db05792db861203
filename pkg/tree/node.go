package tree

import (
	"slices"
	"time"

	"github.com/fluxkit/flux/pkg/controllers"
)

// Status is the kstatus status of an object, with Ready instead of Current.
type Status string

// The values of Status. NotFound is an object of the inventory that does not exist. Unknown is an
// object that was not read, because it is in another cluster or access is forbidden.
const (
	Ready       Status = "Ready"
	InProgress  Status = "InProgress"
	Failed      Status = "Failed"
	Terminating Status = "Terminating"
	NotFound    Status = "NotFound"
	Unknown     Status = "Unknown"
)

// Mark returns the terminal mark of a status: ✔, ✗, ◎ for a status in transition, ? for an unknown status, and "" if
// the status was not requested.
func (s Status) Mark() string {
	switch s {
	case Ready:
		return "✔"
	case Failed, NotFound:
		return "✗"
	case InProgress, Terminating:
		return "◎"
	case Unknown:
		return "?"
	}
	return ""
}

// Node is an object with the objects that it has applied or owns.
type Node struct {
	Object controllers.ID `json:"resource"`
	// Status is empty if it was not requested.
	Status Status `json:"status,omitempty"`
	// Message is the reason for the status, if there is one.
	Message string `json:"message,omitempty"`
	// Restarts is the number of container restarts of a pod, nil for other
	// kinds.
	Restarts *int `json:"restarts,omitempty"`
	// Created is nil for an object that was not read or does not exist.
	Created  *time.Time `json:"createdAt,omitempty"`
	Children []*Node    `json:"resources,omitempty"`

	version  string // of the object in the inventory
	remote   bool   // in another cluster
	deletion controllers.Object
}

// Deletion returns the deletion timestamp and the finalizers of an object that
// is being deleted, as metadata of an object, else nil.
func (n *Node) Deletion() controllers.Object { return n.deletion }

// Remote reports whether the object is in another cluster.
func (n *Node) Remote() bool { return n.remote }

// Each calls visit with the node and its descendants, parents first.
func (n *Node) Each(visit func(*Node)) { n.each(visit) }

// each calls visit with the node and its descendants, parents first.
func (n *Node) each(visit func(*Node)) {
	visit(n)
	for _, child := range n.Children {
		child.each(visit)
	}
}

// describe sets the fields of the node from the live object.
func (n *Node) describe(l live) {
	n.Status, n.Message, n.Restarts, n.deletion = l.status, l.message, l.restarts, l.deletion
	if !l.created.IsZero() {
		n.Created = &l.created
	}
}

// Tree is a collected tree with its gaps.
type Tree struct {
	Root *Node
	Gaps []Gap
}

// Gap is a resource whose objects could not be listed.
type Gap struct {
	// Resource is the plural name with the group, such as "deployments.apps".
	Resource string
	// Namespaces lists the namespaces that could not be listed; empty for all of them, or for a
	// cluster-scoped kind.
	Namespaces []string
	Err        error
}

// Covers reports whether objects of a resource could not be listed in a namespace.
func (g Gap) Covers(resource, namespace string) bool {
	return g.Resource == resource && (len(g.Namespaces) == 0 || slices.Contains(g.Namespaces, namespace))
}
