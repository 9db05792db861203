package review

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diff"
)

// Occurrence is a part of an object that a rule reports.
type Occurrence struct {
	// Detail continues the effect of the rule, or is empty.
	Detail string
	// Field is the path of the field that causes it, and Value its value.
	Field, Value string
}

// added finds the occurrences that only the new object has. occurrences returns those in an object.
func added(occurrences func(controllers.Object) []Occurrence) func(change) []string {
	return func(c change) []string {
		if c.Action == diff.Pruned || c.after == nil {
			return nil
		}
		var before []Occurrence
		if c.before != nil {
			before = occurrences(c.before)
		}
		var found []string
		for _, now := range occurrences(c.after) {
			known := slices.ContainsFunc(before, func(was Occurrence) bool { return was.Detail == now.Detail })
			if !known && !slices.Contains(found, now.Detail) {
				found = append(found, now.Detail)
			}
		}
		return found
	}
}

func privilegedContainers(o controllers.Object) []Occurrence {
	const privileged = "securityContext.privileged"
	var found []Occurrence
	for _, pod := range controllers.PodSpecs(o) {
		for _, c := range controllers.Containers(pod) {
			if c.Text(privileged) == "true" {
				found = append(found, Occurrence{"container " + c.Text("name"), c.Field + "." + privileged, "true"})
			}
		}
	}
	return found
}

func hostPaths(o controllers.Object) []Occurrence {
	var found []Occurrence
	for _, pod := range controllers.PodSpecs(o) {
		for _, volume := range pod.Elements("volumes") {
			if path := volume.Text("hostPath.path"); path != "" {
				found = append(found, Occurrence{path, volume.Field + ".hostPath.path", path})
			}
		}
	}
	return found
}

func hostNamespaces(o controllers.Object) []Occurrence {
	var found []Occurrence
	for _, pod := range controllers.PodSpecs(o) {
		for _, name := range []string{"hostNetwork", "hostPID", "hostIPC"} {
			if pod.Text(name) == "true" {
				found = append(found, Occurrence{name, strings.TrimPrefix(pod.Field+"."+name, "."), "true"})
			}
		}
	}
	return found
}

const rbac = "rbac.authorization.k8s.io"

// of limits a search to objects of some kinds.
func of(group string, find func(controllers.Object) []Occurrence, kinds ...string) func(controllers.Object) []Occurrence {
	return func(o controllers.Object) []Occurrence {
		if groupOf(o) != group || !slices.Contains(kinds, field(o, "kind")) {
			return nil
		}
		return find(o)
	}
}

// adminSubjects returns the subjects of a binding to cluster-admin.
func adminSubjects(o controllers.Object) []Occurrence {
	if field(o, "roleRef.kind") != "ClusterRole" || field(o, "roleRef.name") != "cluster-admin" {
		return nil
	}
	var subjects []Occurrence
	for _, s := range (controllers.Part{Object: o}).Elements("subjects") {
		name := s.Text("name")
		if namespace := s.Text("namespace"); namespace != "" {
			name = namespace + "/" + name
		}
		subjects = append(subjects, Occurrence{"to " + s.Text("kind") + " " + name, s.Field, ""})
	}
	return subjects
}

// wildcardRules returns an occurrence for each rule of a role with all verbs on all resources.
func wildcardRules(o controllers.Object) []Occurrence {
	var found []Occurrence
	for _, rule := range (controllers.Part{Object: o}).Elements("rules") {
		if hasWildcard(rule, "verbs") && hasWildcard(rule, "resources") && hasWildcard(rule, "apiGroups") {
			found = append(found, Occurrence{Field: rule.Field})
		}
	}
	return found
}

func hasWildcard(rule controllers.Part, key string) bool {
	return slices.ContainsFunc(controllers.Path{key}.Strings(rule.Object), func(s string) bool { return strings.TrimSpace(s) == "*" })
}

func field(o controllers.Object, path string) string { return controllers.Path{path}.String(o) }

func groupOf(o controllers.Object) string {
	u := unstructured.Unstructured{Object: o}
	return u.GroupVersionKind().Group
}
