package controllers

import "slices"

// Health describes which objects a controller waits for after it has applied them.
type Health struct {
	// Checks is the reference to the objects that the spec lists. All is the field that adds all
	// applied objects; they are always added if it is empty.
	Checks Ref
	All    Path
	// Reasons lists the Ready condition reasons while the controller waits, and after the wait has failed.
	Reasons []string
}

// IsRemote reports whether an object applies its objects to another cluster.
func IsRemote(o Object) bool {
	_, is := Path{"spec.kubeConfig"}.Lookup(o)
	return is
}

// waits reports whether an object waits for the health of other objects in its cluster, or whether
// this wait has failed.
func waits(k Kind, o Object) bool {
	return k.Health != nil && !IsRemote(o) && !k.IsReady(o) && slices.Contains(k.Health.Reasons, k.Ready(o).Reason)
}

// all reports whether the controller waits for all applied objects.
func (h Health) all(o Object) bool {
	v, _ := h.All.Lookup(o)
	return len(h.All) == 0 || v == true
}

// HealthChecks returns the Flux objects that the health checks of an object are waiting for or have
// failed on: the objects that its spec lists, and its inventory if the controller waits for all
// applied objects.
func HealthChecks(k Kind, o Object) []ID {
	if !waits(k, o) {
		return nil
	}
	ids := k.Health.Checks.Targets(o)
	if k.Health.all(o) {
		ids = append(ids, Managed(o)...)
	}
	own := k.IDOf(o)
	return slices.DeleteFunc(ids, func(t ID) bool {
		_, ofFlux := t.Flux()
		return !ofFlux || t == own
	})
}

// WaitsForApplied reports whether an object waits for the health of all objects that it applies.
func WaitsForApplied(k Kind, o Object) bool { return waits(k, o) && k.Health.all(o) }
