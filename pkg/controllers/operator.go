package controllers

import (
	"slices"
	"time"
)

// OperatorGroup is the API group of flux-operator, which installs Flux from a FluxInstance and applies the objects of
// ResourceSets. A cluster may be without it.
const OperatorGroup = "fluxcd.controlplane.io"

// The kinds of flux-operator.
const (
	FluxInstance  = "FluxInstance"
	ResourceSet   = "ResourceSet"
	InputProvider = "ResourceSetInputProvider"
)

// CopyAnnotation of a Secret or ConfigMap in a ResourceSet is the NAMESPACE/NAME of the object whose data the operator copies.
const CopyAnnotation = OperatorGroup + "/copyFrom"

// StaticProvider is the type of an input provider whose inputs are in its spec.
const StaticProvider = "Static"

// OperatorName is the name of flux-operator: of its Deployment, its image and its field manager.
const OperatorName = "flux-operator"

const (
	operated = Get | Export | Suspend | Resume | Reconcile
)

func applied() Path { return Path{"status.lastAppliedRevision"} }

func exported() Path { return Path{"status.lastExportedRevision"} }

// IsFluxInstance reports whether the object is a FluxInstance.
func (i ID) IsFluxInstance() bool { return i.is(OperatorGroup, FluxInstance) }

// IsResourceSet reports whether the object is a ResourceSet.
func (i ID) IsResourceSet() bool { return i.is(OperatorGroup, ResourceSet) }

// disabled describes how objects of flux-operator are suspended.
func disabled() Suspension {
	return Suspension{Annotation: OperatorGroup + "/reconcile", Value: "disabled"}
}

// every returns the schedule of a kind of flux-operator with its defaults.
func every(interval, timeout time.Duration) Schedule {
	return Schedule{
		Interval: OperatorGroup + "/reconcileEvery", DefaultInterval: interval,
		Timeout: OperatorGroup + "/reconcileTimeout", DefaultTimeout: timeout,
	}
}

// unfinished lists the Ready condition reasons while flux-operator waits for healthy objects, and after the wait has
// failed.
func unfinished() []string { return []string{"ReconciliationFailed", "Progressing"} }

// unpruned prevents the deletion of an object by flux-operator.
func unpruned() Setting { return Setting{OperatorGroup + "/prune", "disabled"} }

// Operator lists the rows of the flux-operator kinds. They are not in Kinds, which "all" selects, because no Flux
// distribution contains them.
var Operator = []Kind{
	{
		Group: OperatorGroup, Version: "v1", Kind: FluxInstance, Resource: "fluxinstances", Controller: OperatorName,
		Word: "fluxinstance", Plural: "fluxinstances", Verbs: operated | Tree | History,
		Examples: Examples{Names: [2]string{"flux", "flux-system"}, Revision: "v2.9.0@sha256:6f9a1b2c"},
		Columns:  []Column{revision(applied()), suspended}, Done: "applied revision %s", Result: applied(),
		Suspension: disabled(), Inventory: Path{inventory}, Manager: OperatorName, Prunes: true, Keep: unpruned(), Secrets: secretNames,
		Recorded: true, Schedule: every(time.Hour, 5*time.Minute), Health: &Health{All: Path{"spec.wait"}, Reasons: unfinished()},
	},
	{
		Group: OperatorGroup, Version: "v1", Kind: ResourceSet, Resource: "resourcesets", Controller: OperatorName,
		Word: "resourceset", Plural: "resourcesets", Short: "rset", Verbs: operated | Tree | History,
		Examples: Examples{Names: [2]string{"my-app", "tenants"}, Revision: "sha256:6f9a1b2c"},
		Columns:  []Column{revision(applied()), suspended}, Done: "applied revision %s", Result: applied(),
		Suspension: disabled(), Inventory: Path{inventory}, Manager: OperatorName, Label: "resourceset." + OperatorGroup, Prunes: true, Keep: unpruned(),
		Recorded: true, Schedule: every(time.Hour, 5*time.Minute), Health: &Health{All: Path{"spec.wait"}, Reasons: unfinished()},
		Refs: []Ref{
			{Relation: "input", Path: Path{"spec.inputsFrom[]"}, Kinds: []string{InputProvider}},
			{Relation: "dependency", Path: Path{"spec.dependsOn[]"}, CrossNamespace: true, Absolute: true},
		},
	},
	{
		Group: OperatorGroup, Version: "v1", Kind: InputProvider, Resource: "resourcesetinputproviders", Controller: OperatorName,
		Word: "resourcesetinputprovider", Plural: "resourcesetinputproviders", Short: "rsip", Verbs: operated,
		Examples: Examples{Names: [2]string{"my-app", "pull-requests"}, Revision: "sha256:6f9a1b2c"},
		Columns:  []Column{revision(exported()), suspended}, Done: "exported revision %s", Result: exported(),
		Suspension: disabled(), Secrets: []string{"spec.secretRef", "spec.certSecretRef"}, Schedule: every(10*time.Minute, 2*time.Minute),
		Fetch: Fetch{Address: "spec.url", Revision: "spec.filter", Credentials: "spec.secretRef", CA: "spec.certSecretRef"},
	},
	{
		Group: OperatorGroup, Version: "v1", Kind: "FluxReport", Resource: "fluxreports", Controller: OperatorName,
		Word: "fluxreport", Plural: "fluxreports", Verbs: operated,
		Examples: Examples{Names: [2]string{"flux", "flux-system"}},
		Columns:  []Column{text("VERSION", "spec.distribution.version"), suspended}, Done: "reported version %s", Result: Path{"spec.distribution.version"},
		Suspension: disabled(), Schedule: every(5*time.Minute, 0), Reported: true,
	},
}

// Known lists the rows of all kinds that the command line accepts: Flux kinds, then flux-operator kinds.
var Known = slices.Concat(Kinds, Operator) //nolint:gochecknoglobals // the rows are global
