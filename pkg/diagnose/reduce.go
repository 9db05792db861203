package diagnose

import (
	"strings"

	"github.com/fluxkit/flux/pkg/controllers"
)

// sharedReady are the conditions of every healthy object of a whole cluster:
// what these say is not read again.
var sharedReady = []any{map[string]any{"type": "Ready", "status": "True"}}

// reduced returns what others need to know of an object that is healthy: its
// name, its references, and the revisions that it has and has worked on. Of
// tens of thousands of objects most are healthy, and whole they take ten times
// the memory.
func reduced(k controllers.Kind, o controllers.Object) controllers.Object {
	if !fine(k, o) || k.Suspension.Is(o) || (controllers.Path{"metadata.deletionTimestamp"}).String(o) != "" {
		return o
	}
	small := controllers.Object{"apiVersion": o["apiVersion"], "kind": o["kind"]}
	for _, path := range fieldsOf(k) {
		for _, field := range path {
			keep(small, o, strings.Split(strings.TrimSuffix(field, "[]"), "."))
		}
	}
	status, _ := small["status"].(map[string]any)
	if _, said := controllers.FindCondition(o, "Ready"); said {
		if status == nil {
			status = map[string]any{}
			small["status"] = status
		}
		status["conditions"] = sharedReady
	}
	return small
}

// fieldsOf are the fields of a healthy object that the diagnosis of others reads.
func fieldsOf(k controllers.Kind) []controllers.Path {
	fields := []controllers.Path{
		{"metadata.name"}, {"metadata.namespace"}, {"metadata.generation"}, {"status.observedGeneration"},
		{"spec.type"}, {"spec.chart.spec.sourceRef"}, {"status.helmChart"}, {"status.artifact.revision"}, {"status.artifact.lastUpdateTime"},
	}
	for _, ref := range k.AllRefs() {
		fields = append(fields, ref.Path)
	}
	for _, attempt := range k.Attempts {
		fields = append(fields, attempt.Path)
	}
	return fields
}

// keep copies a field, where there is one. A list is copied whole.
func keep(to, from map[string]any, steps []string) {
	name, _, _ := strings.Cut(steps[0], "[")
	value, there := from[name]
	if !there {
		return
	}
	below, isObject := value.(map[string]any)
	if len(steps) == 1 || !isObject {
		to[name] = value
		return
	}
	part, _ := to[name].(map[string]any)
	if part == nil {
		part = map[string]any{}
		to[name] = part
	}
	keep(part, below, steps[1:])
}
