package diagnose

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/tree"
)

// sharedReady holds the conditions of all reduced objects.
var sharedReady = []any{map[string]any{"type": "Ready", "status": "True"}}

// reduced returns a healthy object with only the fields that the diagnosis of
// other objects reads: name, references, and revisions. Most objects of a large
// cluster are healthy, and take ten times the memory in full.
func reduced(k controllers.Kind, o controllers.Object) controllers.Object {
	if !isHealthy(k, o) {
		return o
	}
	return summary(k, o)
}

// summary returns a healthy object in its reduced form.
func summary(k controllers.Kind, o controllers.Object) controllers.Object {
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

// fieldsOf returns the fields of a healthy object that the diagnosis of other
// objects reads.
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

// isHealthy reports whether an object is ready, not suspended and not being
// deleted.
func isHealthy(k controllers.Kind, o controllers.Object) bool {
	return k.IsReady(o) && !k.Suspension.Is(o) && (controllers.Path{"metadata.deletionTimestamp"}).String(o) == ""
}

// store holds the healthy objects of a survey as JSON, which takes a fifth of
// the memory of decoded objects. Few of them are read again.
type store struct {
	mu   sync.Mutex
	text map[controllers.ID][]byte
}

// keep stores a healthy object and returns nil, or returns the object to be
// kept decoded.
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
	status, _ := o["status"].(map[string]any)
	if status == nil {
		status = map[string]any{}
		o["status"] = status
	}
	status["conditions"] = sharedReady
	return o
}

// suspects returns the objects of a survey that may have a problem, with their
// dependencies. The graph does not need the others.
func (s *snapshot) suspects(down map[string]Finding) []controllers.Object {
	var objects []controllers.Object
	taken := map[controllers.ID]bool{}
	var take func(t controllers.ID, o controllers.Object)
	take = func(t controllers.ID, o controllers.Object) {
		if o == nil || taken[t] {
			return
		}
		taken[t] = true
		s.objects[t] = o
		objects = append(objects, o)
		for _, up := range tree.Awaited(kindOf(t), o) {
			take(up, s.object(up))
		}
	}
	for _, t := range slices.Collect(maps.Keys(s.objects)) {
		if o := s.objects[t]; s.suspect(t, o, down) {
			take(t, o)
		}
	}
	for t := range s.well.text {
		k := kindOf(t)
		if _, broken := down[k.Controller]; len(k.Attempts) == 0 && !broken {
			continue // sources have no attempted revision
		}
		if o := s.object(t); s.suspect(t, o, down) {
			take(t, o)
		}
	}
	return objects
}

// object returns an object of a survey, or nil.
func (s *snapshot) object(t controllers.ID) controllers.Object {
	if o := s.objects[t]; o != nil {
		return o
	}
	return s.well.get(t)
}

// revision returns the revision of a source, and false if the source was not read. A source is
// decoded once, since many objects reference it.
func (s *snapshot) revision(t controllers.ID) (string, bool) {
	r, known := s.revisions[t]
	if !known {
		o := s.object(t)
		if o == nil {
			return "", false
		}
		r = kindOf(t).Result.String(o)
		s.revisions[t] = r
	}
	return r, true
}

// suspect reports whether an object may have a problem, even if it is healthy:
// its controller is down, or it has not attempted the current revision of its
// source.
func (s *snapshot) suspect(t controllers.ID, o controllers.Object, down map[string]Finding) bool {
	k := kindOf(t)
	if _, broken := down[k.Controller]; broken || !isHealthy(k, o) {
		return true
	}
	if len(k.Attempts) == 0 {
		return len(k.AllRefs()) > 0
	}
	for _, up := range tree.Awaited(k, o) {
		source := kindOf(up)
		if source.Family != "source" {
			continue
		}
		if revision, there := s.revision(up); there && !k.Tried(o, source, revision) {
			return true
		}
	}
	return false
}
