package controllers

import (
	"maps"
	"slices"
	"strings"
)

// Targets returns the referenced objects. The namespace defaults to the namespace of the object,
// unless the reference is absolute.
func (r Ref) Targets(o Object) []ID {
	v, ok := r.Path.Lookup(o)
	if !ok {
		return nil
	}
	if r.Keyed {
		return r.keyed(v, Namespace(o))
	}
	items, isList := v.([]any)
	if !isList {
		items = []any{v}
	}
	var targets []ID
	for _, item := range items {
		m, ok := item.(map[string]any)
		if ok && r.Field != "" {
			m, ok = m[r.Field].(map[string]any)
		}
		if ok {
			targets = append(targets, r.target(m, Namespace(o)))
		}
	}
	return targets
}

// keyed returns the objects named by the keys of a map, sorted by name.
func (r Ref) keyed(v any, namespace string) []ID {
	m, _ := v.(map[string]any)
	var targets []ID
	for _, name := range slices.Sorted(maps.Keys(m)) {
		targets = append(targets, FluxID(r.Kinds[0], namespace, name))
	}
	return targets
}

func (r Ref) target(m map[string]any, namespace string) ID {
	field := func(name string) string { return Path{name}.String(m) }
	if own := field("namespace"); (own != "" || r.Absolute) && r.CrossNamespace {
		namespace = own
	}
	kind := field("kind")
	if kind == "" && len(r.Kinds) == 1 {
		kind = r.Kinds[0]
	}
	t := FluxID(kind, namespace, field("name"))
	if group, _, versioned := strings.Cut(field("apiVersion"), "/"); versioned {
		t.Group = group
	}
	return t
}

// SourceOf returns the sources of an object, or nil if its kind has none. If the chart of a release
// is not a HelmChart, its source is the object that is created for it, since the spec of that
// object has the address.
func (k Kind) SourceOf(o Object) []ID {
	if k.Source == nil {
		return nil
	}
	targets := k.Source.Targets(o)
	if len(targets) == 0 && k.Release {
		if chart, ok := chartOf(o); ok && chart.Kind != ChartKind {
			return []ID{chart}
		}
	}
	return targets
}

// Waits reports whether an object becomes ready only after the referenced objects. Alerts and
// Receivers do not wait for the objects that they reference.
func (r Ref) Waits() bool { return r.Relation != "resource" }

// AllRefs returns every reference of the kind, the source first.
func (k Kind) AllRefs() []Ref {
	var refs []Ref
	if k.Source != nil {
		refs = append(refs, *k.Source)
	}
	refs = append(refs, k.Refs...)
	if k.Results != nil {
		refs = append(refs, *k.Results)
	}
	return refs
}

// Producers returns the kinds whose objects produce objects of the kind.
func Producers(k Kind) []Kind {
	var kinds []Kind
	for _, row := range Kinds {
		if row.Produces != nil && slices.Contains(row.Produces.Kinds, k.Kind) {
			kinds = append(kinds, row)
		}
	}
	return kinds
}

// FieldOf returns the field with the references of a relation, such as ".spec.eventSources", or "".
func FieldOf(k Kind, relation string) string {
	for _, r := range k.AllRefs() {
		if r.Relation == relation {
			return "." + strings.TrimSuffix(r.Path[0], "[]")
		}
	}
	return ""
}

// Dependents returns the kinds whose objects may wait for an object of the kind. It omits includes,
// which are too rare to justify listing all sources.
func (k Kind) Dependents() []Kind {
	var kinds []Kind
	for _, row := range Known {
		if slices.ContainsFunc(row.AllRefs(), func(r Ref) bool { return r.Waits() && r.Relation != "include" && slices.Contains(r.Kinds, k.Kind) }) {
			kinds = append(kinds, row)
		}
	}
	return kinds
}
