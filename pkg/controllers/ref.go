package controllers

// Target is an object that another refers to.
type Target struct {
	APIVersion, Kind, Namespace, Name string
}

// String is the target as tables show it: Kind/namespace/name.
func (t Target) String() string { return t.Kind + "/" + t.Namespace + "/" + t.Name }

// Targets returns what the reference of an object points to, the object's own
// namespace filled in where the reference leaves it out.
func (r Ref) Targets(o Object) []Target {
	v, ok := r.Path.Lookup(o)
	if !ok {
		return nil
	}
	items, isList := v.([]any)
	if !isList {
		items = []any{v}
	}
	var targets []Target
	for _, item := range items {
		if m, ok := item.(map[string]any); ok {
			targets = append(targets, r.target(m, Namespace(o)))
		}
	}
	return targets
}

func (r Ref) target(m map[string]any, namespace string) Target {
	field := func(name string) string { return Path{name}.String(m) }
	t := Target{field("apiVersion"), field("kind"), field("namespace"), field("name")}
	if t.Namespace == "" || !r.CrossNamespace {
		t.Namespace = namespace
	}
	if t.Kind == "" && len(r.Kinds) == 1 {
		t.Kind = r.Kinds[0]
	}
	return t
}

// SourceOf returns the sources of an object, nil where its kind has none.
func (k Kind) SourceOf(o Object) []Target {
	if k.Source == nil {
		return nil
	}
	return k.Source.Targets(o)
}
