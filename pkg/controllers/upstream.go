package controllers

import (
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Upstream returns the objects from which an object takes its content, one level up: for a
// HelmRelease, the HelmChart and not its repository, for an ImagePolicy, the ImageRepository. It
// returns nil for an object without a source.
func (k Kind) Upstream(o Object) []Target {
	if k.Release {
		if chart, ok := chartOf(o); ok {
			return []Target{chart}
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

// defaultChart is the kind of the object that helm-controller creates for spec.chart. Since Flux
// 2.10, spec.chart.kind selects another kind.
const defaultChart = "HelmChart"

// chartOf returns the object that helm-controller creates for spec.chart: a
// HelmChart in the namespace of its source, or an object of another kind in the
// namespace of the release.
func chartOf(o Object) (Target, bool) {
	if _, ok := (Path{"spec.chart.spec"}).Lookup(o); !ok {
		return Target{}, false
	}
	kind := Path{"spec.chart.kind"}.String(o)
	if kind == "" {
		kind = defaultChart
	}
	// The format is NAMESPACE/NAME or KIND/NAMESPACE/NAME. The field names the previous object
	// until the controller has observed a changed kind.
	switch parts := strings.Split(Path{"status.helmChart"}.String(o), "/"); {
	case len(parts) == 2 && kind == defaultChart:
		return Target{Kind: kind, Namespace: parts[0], Name: parts[1]}, true
	case len(parts) == 3 && kind == parts[0]:
		return Target{Kind: kind, Namespace: parts[1], Name: parts[2]}, true
	}
	namespace := Path{"spec.chart.spec.sourceRef.namespace"}.String(o)
	if namespace == "" || kind != defaultChart {
		namespace = Namespace(o)
	}
	return Target{Kind: kind, Namespace: namespace, Name: Namespace(o) + "-" + Name(o)}, true
}

// DependenciesOf returns the objects in spec.dependsOn.
func (k Kind) DependenciesOf(o Object) []Target {
	for _, r := range k.Refs {
		if r.Relation == "dependency" {
			return r.Targets(o)
		}
	}
	return nil
}

// Managed returns the objects in the inventory of an object. It skips entries
// with an invalid id.
func (k Kind) Managed(o Object) []Target {
	list, _ := Path{inventory}.Lookup(o)
	entries, _ := list.([]any)
	var targets []Target
	for _, entry := range entries {
		m, _ := entry.(map[string]any)
		id, err := ParseInventoryID(Path{"id"}.String(m))
		if err != nil {
			continue
		}
		gv := schema.GroupVersion{Group: id.GroupKind.Group, Version: Path{"v"}.String(m)}
		targets = append(targets, Target{APIVersion: gv.String(), Kind: id.GroupKind.Kind, Namespace: id.Namespace, Name: id.Name})
	}
	return targets
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
