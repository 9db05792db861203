package controllers

// RequestAnnotation is the annotation that requests a reconciliation:
// meta.ReconcileRequestAnnotation in fluxcd/pkg/apis/meta.
const RequestAnnotation = "reconcile.fluxcd.io/requestedAt"

// Nests reports whether objects of the kind apply objects, which may be Flux
// objects.
func (k Kind) Nests() bool { return len(k.Inventory) == 1 && k.Inventory[0] == inventory }

// Manager returns the Flux object that applied an object, according to its
// owner labels. It ignores labels that name the object itself.
func Manager(o Object) (Target, bool) {
	v, _ := Path{"metadata.labels"}.Lookup(o)
	labels, _ := v.(map[string]any)
	for _, k := range Kinds {
		if !k.Nests() {
			continue
		}
		name, _ := labels[k.Group+"/name"].(string)
		namespace, _ := labels[k.Group+"/namespace"].(string)
		itself := (Path{"kind"}).String(o) == k.Kind && Name(o) == name && Namespace(o) == namespace
		if name != "" && !itself {
			return Target{Kind: k.Kind, Namespace: namespace, Name: name}, true
		}
	}
	return Target{}, false
}
