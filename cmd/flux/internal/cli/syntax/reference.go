package syntax

import (
	"fmt"
	"strings"

	"github.com/fluxkit/flux/pkg/controllers"
)

// Rules restrict the references of a field.
type Rules struct {
	// Kinds are the allowed kinds, compared case-insensitively.
	Kinds []string
	// Default is the kind of references without a kind. If empty, a kind is required.
	Default string
	// Local forbids a namespace.
	Local bool
	// Any allows the name "*".
	Any bool
}

// Parse parses a reference of the form [Kind/]name[.namespace]. The ID has no group.
func (r Rules) Parse(s string) (controllers.ID, error) {
	kind, rest, named := strings.Cut(s, "/")
	if !named {
		kind, rest = r.Default, s
	}
	if kind == "" {
		return controllers.ID{}, fmt.Errorf("invalid reference %q: must be %s", s, r.form())
	}
	known := ""
	for _, k := range r.Kinds {
		if strings.EqualFold(k, kind) {
			known = k
		}
	}
	if known == "" {
		return controllers.ID{}, fmt.Errorf("%q: unsupported kind %q: must be one of %s", s, kind, strings.Join(r.Kinds, ", "))
	}
	ref := controllers.ID{Kind: known, Name: rest}
	// Names of Flux objects have no dots, so the rest is the namespace.
	if name, namespace, dotted := strings.Cut(rest, "."); dotted && !r.Local {
		ref.Name, ref.Namespace = name, namespace
		if err := Name(namespace); err != nil {
			return controllers.ID{}, fmt.Errorf("%q: invalid namespace %q: must be %s", s, namespace, r.form())
		}
	}
	if r.Any && ref.Name == "*" {
		return ref, nil
	}
	if err := ObjectName(ref.Name); err != nil {
		return controllers.ID{}, fmt.Errorf("invalid reference %q: must be %s: %w", s, r.form(), err)
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

// Dependency parses a dependency of the form [NAMESPACE/]NAME.
func Dependency(s string) (controllers.ID, error) {
	ref, err := NamespacedName(s)
	if err != nil {
		return controllers.ID{}, fmt.Errorf("invalid dependency %w", err)
	}
	return ref, nil
}

// NamespacedName parses [namespace/]name.
func NamespacedName(s string) (controllers.ID, error) {
	namespace, name, both := strings.Cut(s, "/")
	if !both {
		namespace, name = "", s
	}
	if Name(name) != nil || both && Name(namespace) != nil {
		return controllers.ID{}, fmt.Errorf("%q: must be <name> or <namespace>/<name>", s)
	}
	return controllers.ID{Name: name, Namespace: namespace}, nil
}
