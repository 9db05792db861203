package assert

import "github.com/fluxkit/flux/pkg/controllers"

// Refs returns the objects that an assertion is about.
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

// fluxRefs returns the objects that have to be Flux objects.
func (e *Expectation) fluxRefs() []Ref {
	switch {
	case e.Ready != nil:
		return []Ref{e.Ready.Object}
	case e.Why != nil:
		return []Ref{e.Why.Object}
	}
	return e.Order
}

// target returns the object as the engines name it.
func (r Ref) target() controllers.Target {
	return controllers.Target{Kind: r.Kind, Namespace: r.Namespace, Name: r.Name}
}
