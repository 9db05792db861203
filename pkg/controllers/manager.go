package controllers

import (
	"maps"
	"slices"
	"strings"
	"sync"
)

// RequestAnnotation is the annotation that requests a reconciliation:
// meta.ReconcileRequestAnnotation in fluxcd/pkg/apis/meta.
const RequestAnnotation = "reconcile.fluxcd.io/requestedAt"

// Applies reports whether objects of the kind apply objects to the cluster and
// mark them with owner labels.
func (k Kind) Applies() bool { return k.Manager != "" }

// appliers returns the kinds whose objects apply objects, Kustomizations first.
var appliers = sync.OnceValue(func() []Kind {
	rows := slices.Clone(Kinds)
	slices.Reverse(rows)
	return slices.DeleteFunc(append(rows, Operator...), func(k Kind) bool { return !k.Applies() })
})

// Owners returns the Flux objects in the owner labels of an object. With several
// of them, Kustomizations come first, as in `flux trace`.
func Owners(o Object) []ID {
	v, _ := Path{"metadata.labels"}.Lookup(o)
	labels, _ := v.(map[string]any)
	var owners []ID
	for _, k := range appliers() {
		ofName, ofNamespace := OwnerLabels(k)
		name, _ := labels[ofName].(string)
		namespace, _ := labels[ofNamespace].(string)
		if name != "" && namespace != "" {
			owners = append(owners, k.ID(namespace, name))
		}
	}
	return owners
}

// Manager returns the Flux object that applied an object, according to its owner labels. It ignores
// labels that refer to the object itself.
func Manager(o Object) (ID, bool) {
	for _, owner := range Owners(o) {
		if owner != IDOf(o) {
			return owner, true
		}
	}
	return ID{}, false
}

// ManagedByFlux reports whether a Flux controller has written an object, according to its managed fields, or whether that is
// unknown because they were removed.
func ManagedByFlux(o Object) bool {
	list, _ := Path{"metadata.managedFields"}.Lookup(o)
	entries, _ := list.([]any)
	if len(entries) == 0 {
		return true
	}
	return slices.ContainsFunc(entries, func(entry any) bool {
		m, _ := entry.(map[string]any)
		return slices.ContainsFunc(appliers(), func(k Kind) bool { return Path{"manager"}.String(m) == k.Manager })
	})
}

// RemoveOwner removes the labels and annotations with which Flux and Helm mark the objects that they
// apply, and the maps that are empty then.
func RemoveOwner(o Object) {
	meta, _ := o["metadata"].(Object)
	labels, _ := meta["labels"].(Object)
	for _, k := range Known {
		name, namespace := OwnerLabels(k)
		delete(labels, name)
		delete(labels, namespace)
	}
	if labels[managedBy] == "Helm" {
		delete(labels, managedBy)
	}
	annotations, _ := meta["annotations"].(Object)
	maps.DeleteFunc(annotations, func(name string, _ any) bool { return strings.HasPrefix(name, "meta.helm.sh/") })
	for _, key := range []string{"labels", "annotations"} {
		if entries, ok := meta[key].(Object); ok && len(entries) == 0 {
			delete(meta, key)
		}
	}
}

// managedBy is the label that Helm sets on the objects of a release.
const managedBy = "app.kubernetes.io/managed-by"
