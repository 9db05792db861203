package controllers

import "strings"

// Upstream returns the objects from which an object takes its content, one level up: for a
// HelmRelease, the HelmChart and not its repository, for an ImagePolicy, the ImageRepository. It
// returns nil for an object without a source.
func (k Kind) Upstream(o Object) []ID {
	if k.Release {
		if chart, ok := chartOf(o); ok {
			return []ID{chart}
		}
	}
	if k.Source != nil {
		return k.Source.Targets(o)
	}
	if r, ok := k.imageRef(); ok {
		return r.Targets(o)
	}
	return nil
}

// HasUpstream reports whether objects of the kind take their content from other
// objects.
func (k Kind) HasUpstream() bool {
	_, image := k.imageRef()
	return k.Source != nil || image
}

func (k Kind) imageRef() (Ref, bool) {
	for _, r := range k.Refs {
		if r.Relation == "image" {
			return r, true
		}
	}
	return Ref{}, false
}

// ChartKind is the kind of the object that helm-controller creates for spec.chart. Since Flux
// 2.10, spec.chart.kind selects another kind.
const ChartKind = "HelmChart"

// chartOf returns the object that helm-controller creates for spec.chart: a
// HelmChart in the namespace of its source, or an object of another kind in the
// namespace of the release.
func chartOf(o Object) (ID, bool) {
	if _, ok := (Path{"spec.chart.spec"}).Lookup(o); !ok {
		return ID{}, false
	}
	kind := Path{"spec.chart.kind"}.String(o)
	if kind == "" {
		kind = ChartKind
	}
	// The format is NAMESPACE/NAME or KIND/NAMESPACE/NAME. The field refers to the previous object
	// until the controller has observed a changed kind.
	switch parts := strings.Split(Path{"status.helmChart"}.String(o), "/"); {
	case len(parts) == 2 && kind == ChartKind:
		return FluxID(kind, parts[0], parts[1]), true
	case len(parts) == 3 && kind == parts[0]:
		return FluxID(kind, parts[1], parts[2]), true
	}
	namespace := Path{"spec.chart.spec.sourceRef.namespace"}.String(o)
	if namespace == "" || kind != ChartKind {
		namespace = Namespace(o)
	}
	return FluxID(kind, namespace, Namespace(o)+"-"+Name(o)), true
}

// DependenciesOf returns the objects in spec.dependsOn.
func (k Kind) DependenciesOf(o Object) []ID {
	for _, r := range k.Refs {
		if r.Relation == "dependency" {
			return r.Targets(o)
		}
	}
	return nil
}

// Uninstalled reports whether helm-controller has uninstalled a failed release as remediation.
func Uninstalled(o Object) bool {
	c, ok := FindCondition(o, "Remediated")
	return ok && c.Status == "True" && c.Reason == "UninstallSucceeded"
}

// RetriesExhausted reports whether helm-controller stopped retrying a release
// until the spec changes or the failures are reset. Controllers before v1.0
// only report it in the message.
func RetriesExhausted(o Object) bool {
	if c, ok := FindCondition(o, "Stalled"); ok && c.Status == "True" && (c.Reason == "RetriesExceeded" || c.Reason == "MissingRollbackTarget") {
		return true
	}
	c, ok := FindCondition(o, "Ready")
	return ok && c.Status == "False" && (c.Message == "install retries exhausted" || c.Message == "upgrade retries exhausted")
}
