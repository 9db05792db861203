package input

import (
	"fmt"
	"strings"
)

// Reference names an object: [Kind/]name[.namespace].
type Reference struct{ Kind, Name, Namespace string }

// Rules say which references a field takes.
type Rules struct {
	// Kinds are the kinds that it may point to; the case does not matter.
	Kinds []string
	// Default is the kind where none is named; "" where one has to be.
	Default string
	// Local says that it may not name a namespace.
	Local bool
	// Any says that the name may be "*".
	Any bool
}

// Parse reads a reference.
func (r Rules) Parse(s string) (Reference, error) {
	kind, rest, named := strings.Cut(s, "/")
	if !named {
		kind, rest = r.Default, s
	}
	if kind == "" {
		return Reference{}, fmt.Errorf("%q has to be of the form %s", s, r.form())
	}
	known := ""
	for _, k := range r.Kinds {
		if strings.EqualFold(k, kind) {
			known = k
		}
	}
	if known == "" {
		return Reference{}, fmt.Errorf("%q: kind %q is not supported, it has to be one of %s", s, kind, strings.Join(r.Kinds, ", "))
	}
	ref := Reference{Kind: known, Name: rest}
	// No name of Flux has a dot, so the rest is the namespace.
	if name, namespace, dotted := strings.Cut(rest, "."); dotted && !r.Local {
		ref.Name, ref.Namespace = name, namespace
		if err := Name(namespace); err != nil {
			return Reference{}, fmt.Errorf("%q: namespace %q is invalid, it has to be of the form %s", s, namespace, r.form())
		}
	}
	if r.Any && ref.Name == "*" {
		return ref, nil
	}
	if err := ObjectName(ref.Name); err != nil {
		return Reference{}, fmt.Errorf("%q has to be of the form %s: %w", s, r.form(), err)
	}
	return ref, nil
}

func (r Rules) form() string {
	form := "<kind>/<name>"
	if r.Default != "" {
		form = "[<kind>/]<name>"
	}
	if !r.Local {
		form += "[.<namespace>]"
	}
	return form
}

// Dependency reads [namespace/]name.
func Dependency(s string) (Reference, error) {
	namespace, name, both := strings.Cut(s, "/")
	if !both {
		namespace, name = "", s
	}
	if Name(name) != nil || both && Name(namespace) != nil {
		return Reference{}, fmt.Errorf("%q has to be of the form <name> or <namespace>/<name>", s)
	}
	return Reference{Name: name, Namespace: namespace}, nil
}
