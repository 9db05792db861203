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
// them, and have no names on the command line.
var Operator = []Kind{
	{
		Group: OperatorGroup, Version: "v1", Kind: FluxInstance, Resource: "fluxinstances", Controller: "flux-operator",
		Suspension: operated(), Inventory: Path{inventory}, Manager: "flux-operator", Prunes: true, Keep: unpruned(),
	},
	{
		Group: OperatorGroup, Version: "v1", Kind: ResourceSet, Resource: "resourcesets", Controller: "flux-operator",
		Suspension: operated(), Inventory: Path{inventory}, Manager: "flux-operator", Prunes: true, Keep: unpruned(),
		Refs: []Ref{{Relation: "input", Path: Path{"spec.inputsFrom[]"}, Kinds: []string{InputProvider}}},
	},
	{
		Group: OperatorGroup, Version: "v1", Kind: InputProvider, Resource: "resourcesetinputproviders", Controller: "flux-operator",
		Suspension: operated(), Secrets: []string{"spec.secretRef", "spec.certSecretRef"},
	},
}
