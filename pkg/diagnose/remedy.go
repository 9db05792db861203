package diagnose

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fluxkit/flux/internal/budget"
	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diagnose/failure"
)

// rejection is a subject whose objects the API server or a health check has
// rejected.
type rejection struct{ subject }

func (s subject) rejection() rejection { return rejection{s} }

// user returns the user that lacks a permission.
func (s rejection) user() string {
	rest, is := strings.CutPrefix(s.failure.User, "system:serviceaccount:")
	namespace, name, ok := strings.Cut(rest, ":")
	switch {
	case !is || !ok:
		return s.failure.User
	case name == s.kind.Controller:
		return name
	}
	return fmt.Sprintf("ServiceAccount %s/%s", namespace, name)
}

// rejectedIn returns the namespace of the rejected object.
func (s rejection) rejectedIn() string {
	return orElse(orElse(s.failure.Object.Namespace, s.failure.Named.Namespace), s.target())
}

// inFile returns the location of the object's definition, if it is known.
func (s rejection) inFile() string {
	if s.file != "" {
		return " in " + s.file
	}
	if chart := s.text("spec.chart.spec.chart"); chart != "" {
		return " in the values of " + s.String() + " or the templates of chart " + chart
	}
	return ""
}

// usedIn returns the file that uses an API, if it is known.
func (s rejection) usedIn() string {
	if s.file != "" {
		return ", which is used in " + s.file
	}
	return ""
}

// mostShown is the maximum number of fields or objects of one failure to print.
const mostShown = 3

// fields returns the paths of the rejected fields.
func (s rejection) fields() string {
	var paths []string
	for _, f := range s.failure.Fields {
		if path := "." + f.Path; !slices.Contains(paths, path) {
			paths = append(paths, path)
		}
	}
	return budget.List(paths, mostShown)
}

// problems returns the rejected fields with the reasons, except immutable
// fields.
func (s rejection) problems() string {
	var all []string
	for _, f := range s.failure.Fields {
		if !f.Immutable() {
			all = append(all, f.String())
		}
	}
	return budget.List(all, mostShown)
}

// recreate returns the remedies for an immutable field, the non-destructive one
// first.
func (s rejection) recreate() []string {
	o := s.failure.Object
	if o.Kind == "" || o.Name == "" {
		o = failure.Object{Kind: s.failure.Named.Kind, Namespace: s.target(), Name: s.failure.Named.Name}
	}
	revert := fmt.Sprintf("revert %s of %s%s", s.fields(), o, s.inFile())
	if s.kind.Recreate != "" {
		return []string{revert, fmt.Sprintf("or set annotation %s: enabled on it, which deletes and recreates %s: %s", s.kind.Recreate, o, destroyed(o.Kind))}
	}
	resource := strings.ToLower(o.Kind)
	if s.failure.Named.Group != "" {
		resource += "." + s.failure.Named.Group
	}
	return []string{revert, fmt.Sprintf("or delete %s (%s), which the next upgrade creates again: kubectl -n %s delete %s %s", o, destroyed(o.Kind), hint.Quote(orElse(o.Namespace, s.target())), hint.Quote(resource), hint.Operand(o.Name))}
}

// destroyed describes the loss if an object of a kind is deleted.
func destroyed(kind string) string {
	switch kind {
	case "Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "Pod":
		return "its pods are stopped"
	case "Job":
		return "its pods and their logs are lost"
	case "PersistentVolumeClaim", "PersistentVolume":
		return "the data of the volume is lost, unless its reclaim policy is Retain"
	case "CustomResourceDefinition":
		return "all custom resources of the kind are deleted"
	case "Namespace":
		return "everything in the namespace is deleted"
	case "Service":
		return "its cluster IP changes, and it is unreachable until then"
	default:
		return "it is deleted with all objects that it owns, until it is created again"
	}
}

// serveIt returns the remedies for a kind that the API server does not serve.
func (s rejection) serveIt() []string {
	group, _ := groupVersion(s.failure)
	switch {
	case slices.Contains(s.served, s.failure.Version):
		return nil // the CRD has been installed since
	case slices.Contains(controllers.Groups(), group):
		folder := "<folder>"
		if i := strings.LastIndexByte(s.file, '/'); i > 0 {
			folder = hint.Quote(s.file[:i])
		}
		return []string{"in a clone of the source, rewrite the API versions: flux migrate -f " + folder, "or install the component of Flux that serves it; see which are installed: flux check"}
	case len(s.served) > 0:
		return []string{fmt.Sprintf("set apiVersion of %s to %s%s: the cluster serves no other version", s.failure.Named.Kind, strings.Join(s.served, " or "), s.inFile())}
	case len(s.providers) > 0:
		return []string{fmt.Sprintf("add %s, which applies CRDs of group %s, to .spec.dependsOn of %s", strings.Join(s.providers, " or "), group, s)}
	}
	return []string{fmt.Sprintf("install the CRD of kind %s of group %s", s.failure.Named.Kind, orElse(group, "core")), "if a Kustomization or HelmRelease installs it, name that in .spec.dependsOn of " + s.String()}
}

// unhealthy describes the objects that did not become ready.
func (s rejection) unhealthy() string {
	var all []string
	for _, h := range s.failure.Objects {
		switch {
		case h.Status == "NotFound":
			all = append(all, h.String()+" does not exist")
		case h.Detail != "":
			all = append(all, fmt.Sprintf("%s is not ready (%s): %s", h, h.Status, h.Detail))
		default:
			all = append(all, fmt.Sprintf("%s is not ready (%s)", h, h.Status))
		}
	}
	return budget.List(all, mostShown)
}

// heal returns the remedies for objects that did not become ready. Applied
// objects that are missing are created again without a remedy.
func (s rejection) heal() []string {
	var remedies []string
	for _, h := range s.failure.Objects[:min(len(s.failure.Objects), mostShown)] {
		switch {
		case h.Status != "NotFound":
			remedies = append(remedies, fmt.Sprintf("fix %s in the source, commit and push", h))
		case s.checks(h.Object):
			remedies = append(remedies, fmt.Sprintf("add %s to the source, or remove it from .spec.healthChecks of %s", h, s))
		}
	}
	return remedies
}

// checks reports whether .spec.healthChecks names an object.
func (s rejection) checks(o failure.Object) bool {
	list, _ := controllers.Path{"spec.healthChecks"}.Lookup(s.object)
	items, _ := list.([]any)
	return slices.ContainsFunc(items, func(item any) bool {
		m, _ := item.(map[string]any)
		field := func(name string) string { return controllers.Path{name}.String(m) }
		return field("kind") == o.Kind && field("name") == o.Name && orElse(field("namespace"), o.Namespace) == o.Namespace
	})
}
