package repository

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io/fs"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/build/sourcetree"
	"github.com/fluxkit/flux/pkg/controllers"
)

// Memo shares data between the graphs of several clusters: trees, and renderings with all their reads. A graph reuses a
// rendering if the reads have the same results. A nil Memo reuses nothing.
type Memo struct {
	// Reused is the number of renderings that were reused.
	Reused int

	selections map[string]selection
	byHash     map[string]Tree
	numbers    map[fs.FS]int
	renderings map[string][]memorized
}

type selection struct {
	tree Tree
	err  error
}

// NewMemo returns an empty Memo.
func NewMemo() *Memo {
	return &Memo{selections: map[string]selection{}, byHash: map[string]Tree{}, numbers: map[fs.FS]int{}, renderings: map[string][]memorized{}}
}

// selected returns the tree that is selected from parts of other trees.
func (m *Memo) selected(parts []sourcetree.Part, ignore sourcetree.Ignore, artifact bool, from func() (Tree, error)) (Tree, error) {
	if m == nil {
		return from()
	}
	if ignore.Patterns == "" {
		ignore.Source = "" // no error contains it
	}
	key := fmt.Sprintf("%q %t", ignore, artifact)
	for _, p := range parts {
		key += fmt.Sprintf(" %d %q %q %q", m.number(p.Tree), p.From, p.At, p.Only)
	}
	known, ok := m.selections[key]
	if !ok {
		known.tree, known.err = from()
		m.selections[key] = known
	}
	return known.tree, known.err
}

// canonical returns the first tree with the same content.
func (m *Memo) canonical(tree Tree) Tree {
	if m == nil {
		return tree
	}
	hash, err := tree.Hash(".")
	if err != nil {
		return tree
	}
	if m.byHash[hash] == nil {
		m.byHash[hash] = tree
	}
	return m.byHash[hash]
}

// number identifies a tree.
func (m *Memo) number(tree fs.FS) int {
	if m.numbers[tree] == 0 {
		m.numbers[tree] = len(m.numbers) + 1
	}
	return m.numbers[tree]
}

// memorized is a rendering with its reads.
type memorized struct {
	*Rendering
	reads []read
}

// read is an input that was read for a rendering, with a digest of the result.
type read struct {
	again  func(*reader) string
	result string
}

// render renders an object, or reuses the rendering of another graph. Only renderings with the same key are reused.
func (m *Memo) render(r *reader, object, twin *unstructured.Unstructured, key string, render func() (*Rendering, error)) (*Rendering, error) {
	if m == nil {
		return render()
	}
	inputs := []map[string]any{object.Object}
	if twin != nil {
		inputs = append(inputs, twin.Object)
	}
	text, err := json.Marshal(inputs)
	if err != nil {
		return nil, err
	}
	key = digest("%s %s", key, text)
	for _, known := range m.renderings[key] {
		if r.repeats(known.reads) {
			m.Reused++
			return known.copied(object), nil
		}
	}
	r.recording = true
	before := r.graph.cycles
	rendered, err := render()
	if err == nil && !r.unknown && r.graph.cycles == before {
		m.renderings[key] = append(m.renderings[key], memorized{rendered.copied(object), r.reads})
	}
	return rendered, err
}

// keyOf returns the inputs of a Kustomization rendering except its spec and its reads.
func (m *Memo) keyOf(tree Tree, o build.Options) string {
	if m == nil {
		return ""
	}
	return fmt.Sprintf("tree %d, directory %q, with variables: %t", m.number(tree), o.Path, o.Lookup != nil)
}

// copied returns a copy with objects that can be changed.
func (r *Rendering) copied(owner *unstructured.Unstructured) *Rendering {
	result, hooks := *r.Build, r.Hooks
	for _, objects := range []*[]build.Object{&result.Objects, &hooks.Objects} {
		*objects = slices.Clone(*objects)
		for i, o := range *objects {
			(*objects)[i].Unstructured = o.DeepCopy()
		}
	}
	return &Rendering{Owner: owner, Build: &result, Hooks: hooks, Unserved: r.Unserved, Namespace: r.Namespace}
}

// reader reads for a rendering, and records the reads.
type reader struct {
	graph *Graph
	// lookup is nil for a rendering without variables.
	lookup    build.Lookup
	recording bool
	reads     []read
	// unknown is set if the rendering omits data that could not be read.
	unknown bool
}

// repeats reports whether all reads of a rendering have the same results for this reader.
func (r *reader) repeats(reads []read) bool {
	before := r.graph.cycles
	for _, read := range reads {
		if read.again(r) != read.result || r.graph.cycles != before {
			return false
		}
	}
	return true
}

// record records a read. again repeats it and returns its digest.
func (r *reader) record(result func() string, again func(*reader) string) {
	if r.recording {
		r.reads = append(r.reads, read{again, result()})
	}
}

// Data implements build.Lookup.
func (r *reader) Data(ctx context.Context, object controllers.ID) (map[string][]byte, error) {
	data, err := r.lookup.Data(ctx, object)
	r.record(func() string { return digestOf(data, err) }, func(r *reader) string { return digestOf(r.lookup.Data(ctx, object)) })
	return data, err
}

// find returns an object that the cluster applies.
func (r *reader) find(ctx context.Context, wanted controllers.ID) (*unstructured.Unstructured, error) {
	o, err := r.graph.Object(wanted)
	if found := r.graph.found.objects[wanted]; err == nil && found.by != nil {
		found.Depend(ctx)
	}
	r.record(func() string { return digestOf(o, err) }, func(r *reader) string { return digestOf(r.graph.Object(wanted)) })
	return o, err
}

// files returns the files of a source.
func (r *reader) files(_ context.Context, source controllers.ID) (fs.FS, error) {
	again := func(r *reader) string {
		tree, err := r.graph.Content(source)
		if err != nil {
			return digestOf(nil, err)
		}
		return digest("tree %d", r.graph.Memo.number(tree))
	}
	tree, err := r.graph.Content(source)
	r.record(func() string { return again(r) }, again)
	return tree, err
}

// untrusted reports whether only an unreviewed revision contains the host of a repository.
func (r *reader) untrusted(_ context.Context, repository *unstructured.Unstructured) bool {
	again := func(r *reader) bool { return untrusted(r.graph, repository) }
	untrusted := again(r)
	r.record(func() string { return digestOf(untrusted, nil) }, func(r *reader) string { return digestOf(again(r), nil) })
	return untrusted
}

// missing returns a callback for ConfigMaps and Secrets that a rendering omits.
func (r *reader) missing(owner *unstructured.Unstructured) func(controllers.ID, error) bool {
	if r.graph.Missing == nil {
		return nil
	}
	return func(object controllers.ID, err error) bool {
		r.unknown = true
		if r.graph.Err() != nil || !r.graph.Missing(owner, object, err) {
			return false
		}
		r.graph.found.lack(owner, object, err)
		return true
	}
}

func digestOf(value any, err error) string {
	if err != nil {
		return digest("error %s", err)
	}
	text, err := json.Marshal(value)
	if err != nil {
		return digest("invalid %s", err)
	}
	return digest("value %s", text)
}

func digest(format string, args ...any) string {
	return fmt.Sprintf("%x", sha256.Sum256(fmt.Appendf(nil, format, args...)))
}
