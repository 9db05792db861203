package reconcile

import "github.com/fluxkit/flux/pkg/controllers"

// Subject is an object that is waited for.
type Subject struct {
	Kind            controllers.Kind
	Namespace, Name string
	// Object is how it was found, nil where it was not read yet.
	Object controllers.Object
}

// Target is the subject as a reference names it.
func (s Subject) Target() controllers.Target {
	return controllers.Target{Kind: s.Kind.Kind, Namespace: s.Namespace, Name: s.Name}
}

// String is the subject as messages name it: Kind/namespace/name.
func (s Subject) String() string { return s.Target().String() }
