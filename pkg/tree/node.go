package tree

import (
	"encoding/json"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Object names an object, whatever the version it is read in.
type Object struct {
	Namespace string
	Name      string
	GroupKind schema.GroupKind
}

// encodedObject is an Object for programs.
type encodedObject struct {
	Group     string `json:"group,omitempty"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

// MarshalJSON encodes the object with group, kind, namespace and name.
func (o Object) MarshalJSON() ([]byte, error) {
	return json.Marshal(encodedObject{o.GroupKind.Group, o.GroupKind.Kind, o.Namespace, o.Name})
}

// UnmarshalJSON decodes what MarshalJSON has encoded.
func (o *Object) UnmarshalJSON(data []byte) error {
	var e encodedObject
	if err := json.Unmarshal(data, &e); err != nil {
		return err
	}
	*o = Object{e.Namespace, e.Name, schema.GroupKind{Group: e.Group, Kind: e.Kind}}
	return nil
}

// String is the object as lines of the tree show it: Kind/namespace/name.
func (o Object) String() string {
	if o.Namespace == "" {
		return o.GroupKind.Kind + "/" + o.Name
	}
	return o.GroupKind.Kind + "/" + o.Namespace + "/" + o.Name
}

// Status is how ready an object is, in the words of kstatus; what kstatus
// calls Current is Ready here.
type Status string

// The values of Status. NotFound is an object that the inventory names and
// the cluster does not have; Unknown is one that was not looked at, because
// it is in another cluster or may not be read.
const (
	Ready       Status = "Ready"
	InProgress  Status = "InProgress"
	Failed      Status = "Failed"
	Terminating Status = "Terminating"
	NotFound    Status = "NotFound"
	Unknown     Status = "Unknown"
)

// Node is an object and what it has applied or owns.
type Node struct {
	Object Object `json:"resource"`
	// Status is empty where it was not asked for.
	Status Status `json:"status,omitempty"`
	// Message says why the object is in its status, where there is something to say.
	Message string `json:"message,omitempty"`
	// Restarts counts the restarts of a pod's containers; nil for what is no pod.
	Restarts *int `json:"restarts,omitempty"`
	// Created is nil for what was not looked at or is not there.
	Created  *time.Time `json:"createdAt,omitempty"`
	Children []*Node    `json:"resources,omitempty"`

	version string // of the object in the inventory
	remote  bool   // in another cluster
}

// each calls visit with the node and everything below it, parents first.
func (n *Node) each(visit func(*Node)) {
	visit(n)
	for _, child := range n.Children {
		child.each(visit)
	}
}

// has tells whether an object hangs directly below the node.
func (n *Node) has(o Object) bool {
	return slices.ContainsFunc(n.Children, func(child *Node) bool { return child.Object == o })
}

// describe puts what is known of the live object into the node.
func (n *Node) describe(l live) {
	n.Status, n.Message, n.Restarts = l.status, l.message, l.restarts
	if !l.created.IsZero() {
		n.Created = &l.created
	}
}

// Tree is a collected tree and what could not be collected.
type Tree struct {
	Root *Node
	Gaps []Gap
}

// Gap is a kind of objects that could not be listed.
type Gap struct {
	// Resource is the plural with its group, such as "deployments.apps".
	Resource string
	// Namespaces are where; empty for all of them or none.
	Namespaces []string
	Err        error
}
