package schema

import (
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/fluxkit/flux/pkg/validate/verdict"
)

// The methods of Kubernetes API types with a limited lifetime.
type (
	deprecating interface{ APILifecycleDeprecated() (major, minor int) }
	removing    interface{ APILifecycleRemoved() (major, minor int) }
	replacing   interface {
		APILifecycleReplacement() schema.GroupVersionKind
	}
)

// typed returns a value of the Go type of a Kubernetes kind, or nil.
func typed(kind schema.GroupVersionKind) any {
	o, err := scheme.Scheme.New(kind)
	if err != nil {
		return nil
	}
	return o
}

// deprecated returns a notice if a kind is deprecated in a minor version, or "".
func deprecated(kind schema.GroupVersionKind, version string) string {
	o, ok := typed(kind).(deprecating)
	if !ok {
		return ""
	}
	major, minor := o.APILifecycleDeprecated()
	if !since(major, minor, version) {
		return ""
	}
	text := fmt.Sprintf("%s %s is deprecated since Kubernetes %d.%d", kind.GroupVersion(), kind.Kind, major, minor)
	if r, ok := o.(removing); ok {
		if major, minor := r.APILifecycleRemoved(); major > 0 {
			text += fmt.Sprintf(", and removed in %d.%d", major, minor)
		}
	}
	return text + instead(o)
}

// removed returns the version in which a kind was removed, or "" if the minor version still serves
// it.
func removed(kind schema.GroupVersionKind, version string) string {
	if o, ok := typed(kind).(removing); ok {
		if major, minor := o.APILifecycleRemoved(); since(major, minor, version) {
			return fmt.Sprintf("%d.%d", major, minor)
		}
	}
	return ""
}

// instead describes the replacement of a type.
func instead(o any) string {
	if r, ok := o.(replacing); ok {
		if kind := r.APILifecycleReplacement(); kind.Kind != "" {
			return fmt.Sprintf(": use %s %s", kind.GroupVersion(), kind.Kind)
		}
	}
	return ""
}

// since reports whether a version is the same as, or later than, major.minor.
func since(major, minor int, version string) bool {
	first, second, _ := strings.Cut(version, ".")
	a, errA := strconv.Atoi(first)
	b, errB := strconv.Atoi(second)
	return errA == nil && errB == nil && major > 0 && (a > major || a == major && b >= minor)
}

// notServed returns the validation result for an object in a Kubernetes API group whose kind or
// version the minor version does not serve.
func (c *cluster) notServed(kind schema.GroupVersionKind) verdict.Verdict {
	o := typed(kind)
	refused := func(message string) verdict.Verdict {
		return verdict.Verdict{Problems: []verdict.Problem{{Rule: verdict.RuleAPIVersion, Field: "apiVersion", Path: []string{"apiVersion"}, Message: message}}}
	}
	if version := removed(kind, c.minor); version != "" {
		return refused(fmt.Sprintf("%s %s was removed in Kubernetes %s%s", kind.GroupVersion(), kind.Kind, version, instead(o)))
	}
	if o != nil {
		return verdict.Verdict{Unknown: fmt.Sprintf("%s %s is only served by API servers that enable it", kind.GroupVersion(), kind.Kind)}
	}
	text := fmt.Sprintf("Kubernetes %s has no %s in %s", c.minor, kind.Kind, kind.GroupVersion())
	for _, k := range c.Kinds {
		if k.Group == kind.Group && k.Kind == kind.Kind {
			text += ": use " + k.APIVersion()
		}
	}
	return refused(text)
}
