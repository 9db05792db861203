package report

import (
	"time"

	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/tree"
)

// ObjectName is a reference to an object, for JSON.
type ObjectName struct {
	Group     string `json:"group,omitempty"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

// NameOfNode returns the name of an object of a tree.
func NameOfNode(o tree.Object) ObjectName {
	return ObjectName{o.GroupKind.Group, o.GroupKind.Kind, o.Namespace, o.Name}
}

// TimeOrNil returns nil for the zero time.
func TimeOrNil(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// NameOf returns the name of an object, with the group of its kind.
func NameOf(t controllers.Target) ObjectName {
	k, _ := controllers.FindKind(t.Kind)
	return ObjectName{k.Group, t.Kind, t.Namespace, t.Name}
}
