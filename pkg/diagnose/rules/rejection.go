package rules

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/fluxkit/flux/internal/budget"
	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diagnose/failure"
)

// mostShown is the maximum number of fields or objects of one failure to print.
const mostShown = 3

// rejectedObject returns the object that the API server rejected.
func rejectedObject(s Subject) string {
	o := s.failure.Rejected()
	if o.Namespace == "" && s.failure.Object.Kind == "" {
		o.Namespace = targetNamespace(s)
	}
	return o.String()
}

// rejectedNamespace returns the namespace of the rejected object.
func rejectedNamespace(s Subject) string {
	return cmp.Or(s.failure.Object.Namespace, s.failure.Named.Namespace, targetNamespace(s))
}

// targetNamespace returns the namespace to which the object applies.
func targetNamespace(s Subject) string { return cmp.Or(s.Text("spec.targetNamespace"), s.namespace()) }

// deniedUser returns the user without the permission.
func deniedUser(s Subject) string {
	rest, is := strings.CutPrefix(s.failure.User, "system:serviceaccount:")
	namespace, name, ok := strings.Cut(rest, ":")
	switch {
	case !is || !ok:
		return s.failure.User
	case name == s.Kind.Controller:
		return name
	}
	return fmt.Sprintf("ServiceAccount %s/%s", namespace, name)
}

// inFile returns the location of the object's definition, if it is known.
func inFile(s Subject) string {
	if s.Live.File != "" {
		return " in " + s.Live.File
	}
	if chart := s.Text("spec.chart.spec.chart"); chart != "" {
		return " in the values of " + s.String() + " or the templates of chart " + chart
	}
	return ""
}

// Place returns where an object that the subject applies is defined, with a leading " in ", or "" if that is unknown.
func Place(s Subject) string { return inFile(s) }

// rejectedFields returns the paths of the rejected fields.
func rejectedFields(s Subject) string {
	var paths []string
	for _, f := range s.failure.Fields {
		if path := "." + f.Path; !slices.Contains(paths, path) {
			paths = append(paths, path)
		}
	}
	return budget.List(paths, mostShown)
}

// fieldProblems returns the rejected fields with the reasons, except immutable fields.
func fieldProblems(s Subject) string {
	var all []string
	for _, f := range s.failure.Fields {
		if !f.Immutable() {
			all = append(all, f.String())
		}
	}
	return budget.List(all, mostShown)
}

// unspecified reports whether a quota requires fields that the object does not set.
func unspecified(s Subject) bool { return Unspecified(s.failure) }

// Unspecified reports whether a quota is not exceeded, but requires fields that an object does not set.
func Unspecified(f failure.Failure) bool {
	return f.Type == failure.Quota && strings.HasPrefix(f.Detail, "must specify")
}

// kubeConfig returns the Secret with the kubeconfig of another cluster, or "".
func kubeConfig(s Subject) string {
	return prefixed("Secret "+s.namespace()+"/", s.Text("spec.kubeConfig.secretRef.name"))
}

// namesNamespace reports whether the failure is about a namespace.
func namesNamespace(s Subject) bool { return s.failure.Named.Kind == "Namespace" }

// commonMetadata returns the field of .spec.commonMetadata with the rejected label or annotation, or "".
func commonMetadata(s Subject) string {
	for _, f := range s.failure.Fields {
		part, is := strings.CutPrefix(f.Path, "metadata.")
		v, _ := controllers.Path{"spec.commonMetadata." + part}.Lookup(s.Object)
		entries, _ := v.(map[string]any)
		if !is {
			continue
		}
		for key, value := range entries {
			if text := f.String(); strings.Contains(text, strconv.Quote(key)) || strings.Contains(text, fmt.Sprintf("%q", value)) {
				return ".spec.commonMetadata." + part
			}
		}
	}
	return ""
}

// recreate returns the fixes for an immutable field, the non-destructive one first.
func recreate(s Subject) []string {
	o := s.failure.Object
	if o.Kind == "" || o.Name == "" {
		o = failure.Object{Kind: s.failure.Named.Kind, Namespace: targetNamespace(s), Name: s.failure.Named.Name}
	}
	revert := fmt.Sprintf("revert %s of %s%s", rejectedFields(s), o, inFile(s))
	if s.Kind.Recreate != "" {
		return []string{revert, fmt.Sprintf("or set annotation %s: enabled on it, which deletes and recreates %s: %s", s.Kind.Recreate, o, lossOf(o.Kind))}
	}
	resource := strings.ToLower(o.Kind)
	if s.failure.Named.Group != "" {
		resource += "." + s.failure.Named.Group
	}
	remove := hint.Command("kubectl -n %s delete %s ", cmp.Or(o.Namespace, targetNamespace(s)), resource) + hint.Operand(o.Name)
	return []string{revert, fmt.Sprintf("or delete %s (%s), so that the next upgrade recreates it: %s", o, lossOf(o.Kind), remove)}
}

// losses describes the consequences of deleting an object, by kind.
var losses = map[string]string{
	"Deployment": "its pods are stopped", "StatefulSet": "its pods are stopped", "DaemonSet": "its pods are stopped", "ReplicaSet": "its pods are stopped", "Pod": "its pods are stopped",
	"Job":                      "its pods and their logs are lost",
	"PersistentVolumeClaim":    "the data of the volume is lost, unless its reclaim policy is Retain",
	"PersistentVolume":         "the data of the volume is lost, unless its reclaim policy is Retain",
	"CustomResourceDefinition": "all custom resources of the kind are deleted",
	"Namespace":                "everything in the namespace is deleted",
	"Service":                  "its cluster IP changes, and it is unreachable until it is recreated",
}

func lossOf(kind string) string {
	return cmp.Or(losses[kind], "it is deleted, with all objects that it owns, until it is recreated")
}

// missingAPI returns the kind that is not served, and the file that uses it, if it is known.
func missingAPI(s Subject) string {
	api := s.failure.Named.Kind
	if s.failure.Version != "" {
		api += " in version " + s.failure.Version
	}
	if s.Live.File != "" {
		api += ", which is used in " + s.Live.File
	}
	return api
}

// InstallCRD and DependOnCRD begin the fixes for a kind without a CRD. flux test replaces them: its sandbox contains only the CRDs of
// Flux and of the repository.
const (
	InstallCRD  = "install the CRD of "
	DependOnCRD = "add the Kustomization or HelmRelease that installs it to .spec.dependsOn of "
)

// serve returns the fixes for a kind that the API server does not serve.
func serve(s Subject) []string {
	group := s.failure.Group()
	switch {
	case slices.Contains(s.Live.Served, s.failure.Version):
		return nil // the CRD has been installed since
	case slices.Contains(controllers.Groups(), group):
		directory := "<directory>"
		if i := strings.LastIndexByte(s.Live.File, '/'); i > 0 {
			directory = hint.Quote(s.Live.File[:i])
		}
		rewrite := "in a clone of the source, rewrite the API versions: flux migrate -f " + directory
		if k, _ := controllers.KindOf(group, s.failure.Named.Kind); len(s.Live.Served) == 0 && s.failure.Version == k.APIVersion() {
			return []string{"install " + k.Controller + ", which reconciles it; to list the installed components: flux check", "or, if it is installed, " + rewrite}
		}
		return []string{rewrite, "or install the Flux component that serves it; to list the installed components: flux check"}
	case len(s.Live.Served) > 0:
		return []string{fmt.Sprintf("set apiVersion of %s to %s%s: the cluster serves no other version", s.failure.Named.Kind, strings.Join(s.Live.Served, " or "), inFile(s))}
	case len(s.Live.Providers) > 0:
		providers := s.Live.Providers[:min(len(s.Live.Providers), mostShown)]
		return []string{fmt.Sprintf("add %s, which applies CRDs of group %s, to .spec.dependsOn of %s", strings.Join(providers, " or "), group, s)}
	}
	install := fmt.Sprintf(InstallCRD+"kind %s of group %s", s.failure.Named.Kind, cmp.Or(group, "core"))
	if len(s.Live.Unapplied) > 0 {
		return []string{
			fmt.Sprintf("if the chart of %s installs the CRD, move the objects of kind %s to another Kustomization that depends on %s: Flux applies no object of this Kustomization until the dry run of all objects succeeds",
				strings.Join(s.Live.Unapplied, " or "), s.failure.Named.Kind, s),
			"otherwise, " + install,
		}
	}
	return []string{install, "or " + DependOnCRD + s.String()}
}

// serveArtifacts returns the fixes for an artifact server that does not respond.
func serveArtifacts(s Subject) []string {
	return []string{"check the controller that stores the artifact, its Service, its argument --storage-adv-addr, and the NetworkPolicies: " +
		hint.Command("kubectl get deployments,services,networkpolicies -n %s", s.Home)}
}

// unhealthyObjects describes the objects that did not become ready.
func unhealthyObjects(s Subject) string {
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

// heal returns the fixes for objects that did not become ready. Missing applied objects need no fix: the controller recreates
// them.
func heal(s Subject) []string {
	var fixes []string
	for _, h := range s.failure.Objects[:min(len(s.failure.Objects), mostShown)] {
		switch {
		case h.Status != "NotFound":
			fixes = append(fixes, fmt.Sprintf("fix %s in the source, commit and push", h))
		case isHealthChecked(s, h.Object):
			fixes = append(fixes, fmt.Sprintf("add %s to the source, or remove it from .spec.healthChecks of %s", h, s))
		}
	}
	return fixes
}

// isHealthChecked reports whether .spec.healthChecks contains an object.
func isHealthChecked(s Subject, o failure.Object) bool {
	list, _ := controllers.Path{"spec.healthChecks"}.Lookup(s.Object)
	items, _ := list.([]any)
	return slices.ContainsFunc(items, func(item any) bool {
		m, _ := item.(map[string]any)
		field := func(name string) string { return controllers.Path{name}.String(m) }
		return field("kind") == o.Kind && field("name") == o.Name && cmp.Or(field("namespace"), o.Namespace) == o.Namespace
	})
}

// HasHealthExpression reports whether .spec.healthCheckExprs evaluates the health of an object.
func HasHealthExpression(s Subject, o controllers.Object) bool {
	list, _ := controllers.Path{"spec.healthCheckExprs"}.Lookup(s.Object)
	items, _ := list.([]any)
	field := func(m map[string]any, name string) string { return controllers.Path{name}.String(m) }
	return slices.ContainsFunc(items, func(item any) bool {
		m, _ := item.(map[string]any)
		return field(m, "apiVersion") == field(o, "apiVersion") && field(m, "kind") == field(o, "kind")
	})
}

// DescribeStatus returns the status of an object that health expressions read, in one line.
func DescribeStatus(t controllers.ID, o controllers.Object) string {
	status, _ := o["status"].(map[string]any)
	if len(status) == 0 {
		return fmt.Sprintf("%s has no status: no controller has set it", t)
	}
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(status)) {
		if text := (controllers.Path{name}).String(status); text != "" {
			parts = append(parts, name+": "+text)
		}
	}
	if c, ok := controllers.FindCondition(o, "Ready"); ok {
		parts = append(parts, "Ready: "+failure.Join(c.Status+" "+c.Reason, c.Message))
	}
	return failure.OneLine(fmt.Sprintf("status of %s: %s", t, strings.Join(parts, ", ")))
}
