package review

import (
	"maps"
	"slices"
	"strings"

	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diff"
)

// added finds what the new object has and the present one does not. names returns the occurrences
// in an object.
func added(names func(controllers.Object) []string) func(change) []string {
	return func(c change) []string {
		if c.Action == diff.Pruned || c.after == nil {
			return nil
		}
		var before []string
		if c.before != nil {
			before = names(c.before)
		}
		var found []string
		for _, name := range names(c.after) {
			if !slices.Contains(before, name) && !slices.Contains(found, name) {
				found = append(found, name)
			}
		}
		return found
	}
}

// podSpecs returns the pod specs in an object: maps with a list of containers, at any depth, as
// custom resources have them too.
func podSpecs(v any) []map[string]any {
	var found []map[string]any
	switch v := v.(type) {
	case map[string]any:
		if _, ok := v["containers"].([]any); ok {
			found = append(found, v)
		}
		for _, key := range slices.Sorted(maps.Keys(v)) {
			found = append(found, podSpecs(v[key])...)
		}
	case []any:
		for _, below := range v {
			found = append(found, podSpecs(below)...)
		}
	}
	return found
}

// elements returns the maps in a list of a map.
func elements(m map[string]any, key string) []map[string]any {
	list, _ := m[key].([]any)
	var found []map[string]any
	for _, item := range list {
		if element, ok := item.(map[string]any); ok {
			found = append(found, element)
		}
	}
	return found
}

func privilegedContainers(o controllers.Object) []string {
	var found []string
	for _, pod := range podSpecs(o) {
		for _, list := range []string{"containers", "initContainers", "ephemeralContainers"} {
			for _, c := range elements(pod, list) {
				if field(c, "securityContext.privileged") == "true" {
					found = append(found, "container "+field(c, "name"))
				}
			}
		}
	}
	return found
}

func hostPaths(o controllers.Object) []string {
	var found []string
	for _, pod := range podSpecs(o) {
		for _, volume := range elements(pod, "volumes") {
			if path := field(volume, "hostPath.path"); path != "" {
				found = append(found, path)
			}
		}
	}
	return found
}

func hostNamespaces(o controllers.Object) []string {
	var found []string
	for _, pod := range podSpecs(o) {
		for _, name := range []string{"hostNetwork", "hostPID", "hostIPC"} {
			if pod[name] == true {
				found = append(found, name)
			}
		}
	}
	return found
}

const rbac = "rbac.authorization.k8s.io"

// of limits a search to objects of some kinds.
func of(group string, find func(change) []string, kinds ...string) func(change) []string {
	return func(c change) []string {
		if c.Object.Group != group || !slices.Contains(kinds, c.Object.Kind) {
			return nil
		}
		return find(c)
	}
}

// adminSubjects returns the subjects of a binding to cluster-admin.
func adminSubjects(o controllers.Object) []string {
	if field(o, "roleRef.kind") != "ClusterRole" || field(o, "roleRef.name") != "cluster-admin" {
		return nil
	}
	var subjects []string
	for _, s := range elements(o, "subjects") {
		name := field(s, "name")
		if namespace := field(s, "namespace"); namespace != "" {
			name = namespace + "/" + name
		}
		subjects = append(subjects, "to "+field(s, "kind")+" "+name)
	}
	return subjects
}

// wildcardRules returns an occurrence for each rule of a role with all verbs on all resources.
func wildcardRules(o controllers.Object) []string {
	var found []string
	for _, rule := range elements(o, "rules") {
		if hasWildcard(rule, "verbs") && hasWildcard(rule, "resources") && hasWildcard(rule, "apiGroups") {
			found = append(found, "")
		}
	}
	return found
}

func hasWildcard(rule map[string]any, key string) bool {
	list, _ := rule[key].([]any)
	return slices.ContainsFunc(list, func(v any) bool { s, _ := v.(string); return strings.TrimSpace(s) == "*" })
}
