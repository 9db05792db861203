package observe

import (
	"encoding/json"
	"strings"
	"sync"

	"github.com/fluxkit/flux/pkg/controllers"
)

// sharedReady holds the conditions of all reduced objects.
var sharedReady = []any{map[string]any{"type": "Ready", "status": "True"}}

// isHealthy reports whether an object is ready, not suspended and not being deleted.
func isHealthy(k controllers.Kind, o controllers.Object) bool {
	return k.IsReady(o) && !k.Suspension.Is(o) && (controllers.Path{"metadata.deletionTimestamp"}).String(o) == ""
}

// reduced returns a healthy object with only the fields that the diagnosis of other objects reads: name, references, and
// revisions. Most objects of a large cluster are healthy, and would take ten times the memory with all fields.
func reduced(k controllers.Kind, o controllers.Object) controllers.Object {
	if isHealthy(k, o) {
		return summary(k, o)
	}
	return o
}

func summary(k controllers.Kind, o controllers.Object) controllers.Object {
	small := controllers.Object{"apiVersion": o["apiVersion"], "kind": o["kind"]}
	for _, path := range fieldsOf(k) {
		for _, field := range path {
			keep(small, o, strings.Split(strings.TrimSuffix(field, "[]"), "."))
		}
	}
	if _, has := controllers.FindCondition(o, "Ready"); has {
		makeReady(small)
	}
	return small
}

// makeReady sets the conditions of a reduced object.
func makeReady(o controllers.Object) {
	status, _ := o["status"].(map[string]any)
	if status == nil {
		status = map[string]any{}
		o["status"] = status
	}
	status["conditions"] = sharedReady
}

// fieldsOf returns the fields of a healthy object that the diagnosis of other objects reads.
func fieldsOf(k controllers.Kind) []controllers.Path {
	fields := []controllers.Path{
		{"metadata.name"}, {"metadata.namespace"}, {"spec.type"}, {"spec.chart.spec.sourceRef"}, {"status.helmChart"}, {"status.artifact.revision"}, {"status.artifact.lastUpdateTime"},
	}
	for _, ref := range k.AllRefs() {
		fields = append(fields, ref.Path)
	}
	for _, attempt := range k.Attempts {
		fields = append(fields, attempt.Path)
	}
	return fields
}

// keep copies a field if it exists. A list is copied as a whole.
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

// store holds the healthy objects of a survey as JSON, which takes a fifth of the memory of decoded objects. Few of them are
// read again.
type store struct {
	mu   sync.Mutex
	text map[controllers.ID][]byte
}

// keep stores a healthy object and returns nil, or returns the object to be kept decoded.
func (s *store) keep(k controllers.Kind, o controllers.Object) controllers.Object {
	if !isHealthy(k, o) {
		return o
	}
	o = summary(k, o)
	if len(k.Attempts) == 0 && k.Family != "source" {
		return o
	}
	if status, ok := o["status"].(map[string]any); ok {
		delete(status, "conditions")
	}
	text, err := json.Marshal(o)
	if err != nil {
		return o
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.text[k.IDOf(o)] = text
	return nil
}

// get returns a stored object, or nil.
func (s *store) get(t controllers.ID) controllers.Object {
	text, kept := s.text[t]
	if !kept {
		return nil
	}
	var o controllers.Object
	if err := json.Unmarshal(text, &o); err != nil {
		return nil
	}
	makeReady(o)
	return o
}
