package recall

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/fluxkit/flux/internal/lazy"
	"github.com/fluxkit/flux/pkg/build/inspect"
)

// maxTraces is the maximum number of traces that are kept for a kustomization.
const maxTraces = 8

// Traces finds cached kustomize output for a directory. The cache key contains all FileSystem calls and their results.
// The calls are unknown before kustomize runs, so those of earlier runs are cached, too.
type Traces struct {
	cache Cache
	key   string
	list  [][]call
}

// call is a call of a method of FileSystem.
type call struct {
	Method string `json:"m"`
	Name   string `json:"n"`
}

// Open returns the traces for a directory. parts are the inputs of kustomize other than the results of its calls.
func Open(cache Cache, parts ...any) *Traces {
	key, err := Key("kustomize", parts)
	t := &Traces{cache: cache, key: key}
	if text, ok := cache.Get(key); err != nil || !ok || json.Unmarshal(text, &t.list) != nil {
		t.list = nil
	}
	return t
}

// Find returns the objects that kustomize has returned for the same files. It calls read for each file.
func (t *Traces) Find(from FileSystem, read func(name string, data []byte) error) (objects [][]byte, ok bool) {
	again := &Recorder{from: from, read: map[string][]byte{}}
	known := map[call]string{}
	for _, calls := range t.list {
		results := make([]string, len(calls))
		for i, c := range calls {
			if _, ok := known[c]; !ok {
				known[c] = again.repeat(c)
			}
			results[i] = known[c]
		}
		key, err := t.keyOf(calls, results)
		if text, ok := t.cache.Get(key); err != nil || !ok || json.Unmarshal(text, &objects) != nil {
			continue
		}
		for _, c := range calls {
			if data, ok := again.read[c.Name]; ok && c.Method == "ReadFile" && read(c.Name, data) != nil {
				break
			}
		}
		return objects, true
	}
	return nil, false
}

// Keep keeps the objects that kustomize has returned after the recorded calls, unless it has printed warnings.
func (t *Traces) Keep(r *Recorder, objects [][]byte) {
	key, err := t.keyOf(r.calls, r.results)
	text, textErr := json.Marshal(objects)
	if err != nil || textErr != nil || r.deprecated {
		return
	}
	t.cache.Put(key, text)
	if slices.ContainsFunc(t.list, func(calls []call) bool { return slices.Equal(calls, r.calls) }) {
		return
	}
	list := append([][]call{r.calls}, t.list...)
	if text, err = json.Marshal(list[:min(len(list), maxTraces)]); err == nil {
		t.cache.Put(t.key, text)
	}
}

func (t *Traces) keyOf(calls []call, results []string) (string, error) {
	return Key("kustomized", t.key, calls, results)
}

// deprecatedFields matches a kustomization with fields for which kustomize prints warnings.
var deprecatedFields = lazy.Regexp(`(?im)(^|[{,\s"'])(bases|commonLabels|imageTags|patchesJson6902|patchesStrategicMerge|vars)["']?\s*:`)

// Recorder is a FileSystem that records the calls of another one.
type Recorder struct {
	from       FileSystem
	seen       map[call]bool
	calls      []call
	results    []string
	deprecated bool
	// read holds the contents of files that Find has read.
	read map[string][]byte
}

var _ FileSystem = (*Recorder)(nil)

// NewRecorder returns a Recorder for a FileSystem.
func NewRecorder(from FileSystem) *Recorder { return &Recorder{from: from, seen: map[call]bool{}} }

func (r *Recorder) record(method, name string, value any, err error) {
	if c := (call{method, name}); !r.seen[c] {
		r.seen[c] = true
		r.calls, r.results = append(r.calls, c), append(r.results, resultOf(value, err))
	}
}

// resultOf returns a text for the result of a call: a bool, names, or a content.
func resultOf(value any, err error) string {
	if err != nil {
		return "error " + err.Error()
	}
	if data, ok := value.([]byte); ok {
		return fmt.Sprintf("%x", sha256.Sum256(data))
	}
	return fmt.Sprintf("%#v", value)
}

// repeat repeats a call, and returns its result.
func (r *Recorder) repeat(c call) string {
	switch c.Method {
	case "IsDir":
		return resultOf(r.from.IsDir(c.Name), nil)
	case "Exists":
		return resultOf(r.from.Exists(c.Name), nil)
	case "ReadDir":
		return resultOf(r.from.ReadDir(c.Name))
	case "Glob":
		return resultOf(r.from.Glob(c.Name))
	}
	data, err := r.from.ReadFile(c.Name)
	r.read[c.Name] = data
	return resultOf(data, err)
}

// IsDir implements FileSystem.
func (r *Recorder) IsDir(name string) bool {
	is := r.from.IsDir(name)
	r.record("IsDir", name, is, nil)
	return is
}

// Exists implements FileSystem.
func (r *Recorder) Exists(name string) bool {
	exists := r.from.Exists(name)
	r.record("Exists", name, exists, nil)
	return exists
}

// ReadFile implements FileSystem.
func (r *Recorder) ReadFile(name string) ([]byte, error) {
	data, err := r.from.ReadFile(name)
	r.record("ReadFile", name, data, err)
	r.deprecated = r.deprecated || inspect.IsKustomizationFile(name) && deprecatedFields().Match(data)
	return data, err
}

// ReadDir implements FileSystem.
func (r *Recorder) ReadDir(name string) ([]string, error) {
	names, err := r.from.ReadDir(name)
	r.record("ReadDir", name, names, err)
	return names, err
}

// Glob implements FileSystem.
func (r *Recorder) Glob(pattern string) ([]string, error) {
	names, err := r.from.Glob(pattern)
	r.record("Glob", pattern, names, err)
	return names, err
}
