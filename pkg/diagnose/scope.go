package diagnose

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diagnose/rules"
)

// scope describes the objects that a controller watches according to its arguments.
type scope struct {
	// selector selects the objects by their labels; nil selects all objects. argument is the argument that sets it.
	selector labels.Selector
	argument string
	// labels is the value of that argument.
	labels string
	// namespaced is set if the controller watches only its own namespace.
	namespaced bool
}

// scopesOf returns the scopes of a controller's Deployments: its main Deployment and its shards, whose names begin with the
// name of the controller.
func scopesOf(controller string, deployments map[string]*appsv1.Deployment) []scope {
	var scopes []scope
	for _, name := range slices.Sorted(maps.Keys(deployments)) {
		if name == controller || strings.HasPrefix(name, controller+"-") {
			scopes = append(scopes, scopeOf(deployments[name]))
		}
	}
	return scopes
}

// scopeOf reads the arguments of a Deployment that limit the objects to watch.
func scopeOf(d *appsv1.Deployment) scope {
	var s scope
	for _, c := range d.Spec.Template.Spec.Containers {
		for _, arg := range c.Args {
			name, value, _ := strings.Cut(strings.TrimLeft(arg, "-"), "=")
			switch {
			case name == "watch-label-selector" && value != "":
				s.labels = value
				if selector, err := labels.Parse(value); err == nil {
					s.selector, s.argument = selector, arg
				}
			case name == "watch-all-namespaces" && value == "false":
				s.namespaced = true
			}
		}
	}
	return s
}

// excludes reports whether the arguments exclude an object with some labels.
func (s scope) excludes(namespace, home string, set labels.Set) bool {
	return s.namespaced && namespace != home || s.selector != nil && !s.selector.Matches(set)
}

// labelsOf returns the labels of an object.
func labelsOf(o controllers.Object) labels.Set {
	own, _ := controllers.Path{"metadata.labels"}.Lookup(o)
	set := labels.Set{}
	if all, ok := own.(map[string]any); ok {
		for name, value := range all {
			set[name] = fmt.Sprint(value)
		}
	}
	return set
}

// unwatched returns the finding for an object that no Deployment of its controller watches. Each shard excludes the objects of
// the others.
func (in *installation) unwatched(k controllers.Kind, o controllers.Object) (rules.Finding, bool) {
	set := labelsOf(o)
	scopes := in.scopes[k.Controller]
	namespace, home := controllers.Namespace(o), in.cluster.Home
	if len(scopes) == 0 || slices.ContainsFunc(scopes, func(s scope) bool { return !s.excludes(namespace, home, set) }) {
		return rules.Finding{}, false
	}
	f, s := rules.Finding{Object: k.IDOf(o), Code: "unwatched"}, scopes[0]
	if s.namespaced && namespace != home {
		f.Message = fmt.Sprintf("%s does not watch namespace %s: it runs with --watch-all-namespaces=false", k.Controller, namespace)
		f.Fixes = []string{fmt.Sprintf("create the object in namespace %s, or run %s with --watch-all-namespaces=true", home, k.Controller)}
	} else {
		f.Message = fmt.Sprintf("%s does not watch it: its labels do not match %s", k.Controller, s.argument)
		f.Fixes = []string{fmt.Sprintf("add labels that match %s to %s, or change the argument of %s", s.selector, f.Object, k.Controller)}
	}
	return f, true
}
