package assert

import "github.com/fluxkit/flux/pkg/controllers"

// Refs returns the objects that an assertion refers to.
func (e *Expectation) Refs() []Ref {
	for _, r := range []*Ref{e.Exists, e.Absent, e.Pruned} {
		if r != nil {
			return []Ref{*r}
		}
	}
	switch {
	case e.Value != nil:
		return []Ref{e.Value.Object}
	case e.Corrected != nil:
		return []Ref{e.Corrected.Object}
	case e.Event != nil:
		return []Ref{e.Event.Object}
	case e.Notification != nil && e.Notification.Object != nil:
		return []Ref{*e.Notification.Object}
	}
	return e.fluxRefs()
}

// fluxRefs returns the objects that must be Flux objects.
func (e *Expectation) fluxRefs() []Ref {
	switch {
	case e.Ready != nil:
		return []Ref{e.Ready.Object}
	case e.Why != nil:
		return []Ref{e.Why.Object}
	}
	return e.Order
}

// matches reports whether the reference refers to an object. Without an API version, it refers to objects of all groups,
// unless the kind is a Flux kind.
func (r Ref) matches(id controllers.ID) bool {
	if _, flux := r.flux(); r.APIVersion == "" && !flux {
		id.Group = ""
	}
	return id == r.target()
}

// target returns the ID of the object.
func (r Ref) target() controllers.ID {
	return controllers.NewID(r.GroupVersionKind().GroupKind(), r.Namespace, r.Name)
}
