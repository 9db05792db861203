package diagnose

import (
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diagnose/rules"
)

// scope is what a controller watches according to its arguments.
type scope struct {
	// selector selects the objects by their labels, nil for all objects. argument is the argument that sets it.
	selector labels.Selector
	argument string
	// namespaced is set if the controller watches only its own namespace.
	namespaced bool
}

// readScope reads the arguments of a controller that limit what it watches.
func (in *installation) readScope(d *appsv1.Deployment) {
	if d == nil {
		return
	}
	var s scope
	for _, c := range d.Spec.Template.Spec.Containers {
		for _, arg := range c.Args {
			name, value, _ := strings.Cut(strings.TrimLeft(arg, "-"), "=")
			switch {
			case name == "watch-label-selector" && value != "":
				if selector, err := labels.Parse(value); err == nil {
					s.selector, s.argument = selector, arg
				}
			case name == "watch-all-namespaces" && value == "false":
				s.namespaced = true
			}
		}
	}
	if s != (scope{}) {
		in.scopes[d.Name] = s
	}
}

// unwatched returns the finding for an object that its controller does not watch.
func (in *installation) unwatched(k controllers.Kind, o controllers.Object) (rules.Finding, bool) {
	s := in.scopes[k.Controller]
	own, _ := controllers.Path{"metadata.labels"}.Lookup(o)
	set := labels.Set{}
	if all, ok := own.(map[string]any); ok {
		for name, value := range all {
			set[name] = fmt.Sprint(value)
		}
	}
	f := rules.Finding{Object: k.IDOf(o), Code: "unwatched"}
	switch {
	case s.namespaced && controllers.Namespace(o) != in.cluster.Home:
		f.Message = fmt.Sprintf("%s does not watch namespace %s: it runs with --watch-all-namespaces=false", k.Controller, controllers.Namespace(o))
		f.Fixes = []string{fmt.Sprintf("create the object in namespace %s, or run %s with --watch-all-namespaces=true", in.cluster.Home, k.Controller)}
	case s.selector != nil && !s.selector.Matches(set):
		f.Message = fmt.Sprintf("%s does not watch it: its labels do not match %s", k.Controller, s.argument)
		f.Fixes = []string{fmt.Sprintf("add labels that match %s to %s, or change the argument of %s", s.selector, f.Object, k.Controller)}
	default:
		return rules.Finding{}, false
	}
	return f, true
}
