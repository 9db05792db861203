package tree

import (
	"encoding/json"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fluxkit/flux/pkg/controllers"
)

// Object is a reference to an object, regardless of the API version.
type Object struct {
	Namespace string
	Name      string
	GroupKind schema.GroupKind
}

// encodedObject is the JSON form of Object.
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

// UnmarshalJSON decodes the format of MarshalJSON.
func (o *Object) UnmarshalJSON(data []byte) error {
	var e encodedObject
	if err := json.Unmarshal(data, &e); err != nil {
		return err
	}
	*o = Object{e.Namespace, e.Name, schema.GroupKind{Group: e.Group, Kind: e.Kind}}
	return nil
}

// String returns the object as Kind/namespace/name.
func (o Object) String() string {
	if o.Namespace == "" {
		return o.GroupKind.Kind + "/" + o.Name
	}
	return o.GroupKind.Kind + "/" + o.Namespace + "/" + o.Name
}

// Status is the status of an object in the terms of kstatus, with Ready for
// Current.
type Status string

// The values of Status. NotFound is an object of the inventory that does not
// exist. Unknown is an object that was not read: it is in another cluster or
// forbidden.
const (
	Ready       Status = "Ready"
	InProgress  Status = "InProgress"
	Failed      Status = "Failed"
	Terminating Status = "Terminating"
	NotFound    Status = "NotFound"
	Unknown     Status = "Unknown"
)

// Node is an object with the objects that it has applied or owns.
type Node struct {
	Object Object `json:"resource"`
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

// APIVersion returns the API version of an object in an inventory.
func (n *Node) APIVersion() string {
	return schema.GroupVersion{Group: n.Object.GroupKind.Group, Version: n.version}.String()
}

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

// Gap is a kind whose objects could not be listed.
type Gap struct {
	// Resource is the plural with the group, such as "deployments.apps".
	Resource string
	// Namespaces are the namespaces that could not be listed; empty for all of
	// them, or for a cluster-scoped kind.
	Namespaces []string
	Err        error
}
