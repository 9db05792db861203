package controllers

// OperatorGroup is the API group of flux-operator, which installs Flux from a FluxInstance and applies the objects of
// ResourceSets. A cluster may be without it.
const OperatorGroup = "fluxcd.controlplane.io"

// The kinds of flux-operator.
const (
	FluxInstance  = "FluxInstance"
	ResourceSet   = "ResourceSet"
	InputProvider = "ResourceSetInputProvider"
)

// IsFluxInstance reports whether the object is a FluxInstance.
func (i ID) IsFluxInstance() bool { return i.is(OperatorGroup, FluxInstance) }

// IsResourceSet reports whether the object is a ResourceSet.
func (i ID) IsResourceSet() bool { return i.is(OperatorGroup, ResourceSet) }

// operated describes how objects of flux-operator are suspended.
func operated() Suspension {
	return Suspension{Annotation: OperatorGroup + "/reconcile", Value: "disabled"}
}

// unpruned prevents the deletion of an object by flux-operator.
func unpruned() Setting { return Setting{OperatorGroup + "/prune", "disabled"} }

// Operator are the rows of the kinds of flux-operator. They are not among Kinds, because no distribution of Flux contains
// them.
var Operator = []Kind{
	{
		Group: OperatorGroup, Version: "v1", Kind: FluxInstance, Resource: "fluxinstances",
		Examples:   Examples{Names: [2]string{"flux", "flux"}},
		Controller: "flux-operator", Word: "instance", Plural: "instances", Verbs: Get | Export | Suspend | Resume | Reconcile | Tree,
		Columns:    []Column{revision(Path{"status.lastAppliedRevision"}), suspended},
		Suspension: operated(), Done: "applied revision %s", Result: Path{"status.lastAppliedRevision"}, Inventory: Path{inventory},
		Attempts: []Attempt{{Path: Path{"status.lastAttemptedRevision"}}},
		Manager:  "flux-operator", Prunes: true, Keep: unpruned(), Recorded: true,
	},
	{
		Group: OperatorGroup, Version: "v1", Kind: ResourceSet, Resource: "resourcesets",
		Examples:   Examples{Names: [2]string{"apps", "tenants"}},
		Controller: "flux-operator", Word: "resourceset", Plural: "resourcesets", Short: "rset", Verbs: Get | Export | Suspend | Resume | Reconcile | Delete | Tree,
		Columns:    []Column{revision(Path{"status.lastAppliedRevision"}), suspended},
		Suspension: operated(), Done: "applied revision %s", Result: Path{"status.lastAppliedRevision"}, Inventory: Path{inventory},
		Manager: "flux-operator", Prunes: true, Keep: unpruned(), Recorded: true, Recreate: OperatorGroup + "/force",
		Refs: []Ref{{Relation: "input", Path: Path{"spec.inputsFrom[]"}, Kinds: []string{InputProvider}}},
	},
	{
		Group: OperatorGroup, Version: "v1", Kind: InputProvider, Resource: "resourcesetinputproviders",
		Examples:   Examples{Names: [2]string{"pull-requests", "tags"}},
		Controller: "flux-operator", Word: "input-provider", Plural: "input-providers", Short: "rsip", Verbs: Get | Export | Suspend | Resume | Reconcile | Delete,
		Columns:    []Column{suspended},
		Suspension: operated(), Done: "%s",
		Fetch:   Fetch{Address: "spec.url", Credentials: "spec.secretRef", CA: "spec.certSecretRef"},
		Secrets: []string{"spec.secretRef", "spec.certSecretRef"},
	},
}
