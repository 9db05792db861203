package reconcile

import "github.com/fluxkit/flux/pkg/controllers"

// Subject is an object to wait for.
type Subject struct {
	Kind            controllers.Kind
	Namespace, Name string
	// Object is the object as it was read, nil if it was not.
	Object controllers.Object
}

// Target returns the reference to the subject.
func (s Subject) Target() controllers.Target {
	return controllers.Target{Kind: s.Kind.Kind, Namespace: s.Namespace, Name: s.Name}
}

// String returns the subject as Kind/namespace/name.
func (s Subject) String() string { return s.Target().String() }
