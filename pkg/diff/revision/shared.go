package revision

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io/fs"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/controllers"
)

// shared holds what the comparisons of several clusters have in common: trees, and renderings with
// everything that they have read. A rendering is taken over by a cluster in which its reads have
// the same results. The methods of a nil shared share nothing.
type shared struct {
	checkout   func(build.GitReference) (Tree, error)
	checkouts  map[build.GitReference]selection
	selections map[string]selection
	byHash     map[string]Tree
	numbers    map[fs.FS]int
	renderings map[string][]*rendering
	// reused is the number of renderings that were taken over.
	reused int
}

type selection struct {
	tree Tree
	err  error
}

func newShared(checkout func(build.GitReference) (Tree, error)) *shared {
	return &shared{
		checkout: checkout, checkouts: map[build.GitReference]selection{}, selections: map[string]selection{},
		byHash: map[string]Tree{}, numbers: map[fs.FS]int{}, renderings: map[string][]*rendering{},
	}
}

// at returns the tree of the repository at another reference.
func (s *shared) at(reference build.GitReference) (Tree, error) {
	if s.checkout == nil {
		return nil, unavailable("it is not in this clone")
	}
	known, ok := s.checkouts[reference]
	if !ok {
		known.tree, known.err = s.checkout(reference)
		s.checkouts[reference] = known
	}
	return known.tree, known.err
}

// selected returns the tree that is selected from parts of others.
func (s *shared) selected(parts []build.Part, ignore string, from func() (Tree, error)) (Tree, error) {
	if s == nil {
		return from()
	}
	key := fmt.Sprintf("%q", ignore)
	for _, p := range parts {
		key += fmt.Sprintf(" %d %q %q %q", s.number(p.Tree), p.From, p.At, p.Only)
	}
	known, ok := s.selections[key]
	if !ok {
		known.tree, known.err = from()
		s.selections[key] = known
	}
	return known.tree, known.err
}

// count returns the number of renderings that were taken over so far.
func (s *shared) count() int {
	if s == nil {
		return 0
	}
	return s.reused
}

// canonical returns the first tree with the same content.
func (s *shared) canonical(tree Tree) Tree {
	if s == nil {
		return tree
	}
	hash, err := tree.Hash(".")
	if err != nil {
		return tree
	}
	if s.byHash[hash] == nil {
		s.byHash[hash] = tree
	}
	return s.byHash[hash]
}

// number identifies a tree.
func (s *shared) number(tree fs.FS) int {
	if s.numbers[tree] == 0 {
		s.numbers[tree] = len(s.numbers) + 1
	}
	return s.numbers[tree]
}

// rendering is what a Kustomization or HelmRelease renders to.
type rendering struct {
	*build.Result
	// namespace is the namespace of objects without one.
	namespace string
	reads     []read
}

// read is something that was read for a rendering, with a digest of the result.
type read struct {
	again  func(*reader) string
	result string
}

// reader reads for a rendering, and records what it reads.
type reader struct {
	*shared
	*side
	lookup build.Lookup
	reads  []read
	// unknown is set if the rendering does without something that could not be read.
	unknown bool
}

// render returns the rendering of an object. Renderings with another key have nothing in common.
func (r *reader) render(object, twin *unstructured.Unstructured, key string, render func() (*rendering, error)) (*rendering, error) {
	if r.shared == nil {
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
	for _, known := range r.renderings[key] {
		if r.repeats(known) {
			r.reused++
			return known.copied(), nil
		}
	}
	before := r.cycles
	rendered, err := render()
	if err == nil && !r.unknown && r.cycles == before {
		kept := rendered.copied()
		kept.reads = r.reads
		r.renderings[key] = append(r.renderings[key], kept)
	}
	return rendered, err
}

// keyOf returns what the rendering of a Kustomization depends on besides its spec and its reads.
func (r *reader) keyOf(tree Tree, o build.Options) string {
	if r.shared == nil {
		return ""
	}
	return fmt.Sprintf("tree %d, folder %q, with variables: %t", r.number(tree), o.Path, o.Lookup != nil)
}

// repeats reports whether all that a rendering has read is the same for this reader.
func (r *reader) repeats(known *rendering) bool {
	before := r.cycles
	for _, read := range known.reads {
		if read.again(r) != read.result || r.cycles != before {
			return false
		}
	}
	return true
}

// copied returns a copy with objects that can be changed.
func (r *rendering) copied() *rendering {
	result := *r.Result
	result.Objects = make([]build.Object, len(r.Objects))
	for i, o := range r.Objects {
		o.Unstructured = o.DeepCopy()
		result.Objects[i] = o
	}
	return &rendering{Result: &result, namespace: r.namespace}
}

// record records a read. again repeats it and returns its digest.
func (r *reader) record(result string, again func(*reader) string) {
	if r.shared != nil {
		r.reads = append(r.reads, read{again, result})
	}
}

// Data implements build.Lookup.
func (r *reader) Data(ctx context.Context, object controllers.ID) (map[string][]byte, error) {
	again := func(r *reader) (map[string][]byte, error) { return r.lookup.Data(ctx, object) }
	data, err := again(r)
	r.record(digestOf(data, err), func(r *reader) string { return digestOf(again(r)) })
	return data, err
}

// object finds an object that the cluster applies.
func (r *reader) object(ctx context.Context, wanted controllers.ID) (*unstructured.Unstructured, error) {
	again := func(r *reader) (*unstructured.Unstructured, error) { return r.find(wanted) }
	o, err := again(r)
	if err == nil {
		r.objects[wanted].Depend(ctx)
	}
	r.record(digestOf(o, err), func(r *reader) string { return digestOf(again(r)) })
	return o, err
}

// files finds the tree of a source.
func (r *reader) files(_ context.Context, source controllers.ID) (fs.FS, error) {
	again := func(r *reader) string {
		tree, err := r.content(source)
		if err != nil {
			return digestOf(nil, err)
		}
		return digest("tree %d", r.number(tree))
	}
	tree, err := r.content(source)
	if r.shared != nil {
		r.record(again(r), again)
	}
	return tree, err
}

// untrusted reports whether only the new revision names the host of a repository.
func (r *reader) untrusted(_ context.Context, repository *unstructured.Unstructured) bool {
	again := func(r *reader) bool {
		return r.side == r.w.head && (repository == nil || r.w.proposes(repository))
	}
	proposed := again(r)
	r.record(digestOf(proposed, nil), func(r *reader) string { return digestOf(again(r), nil) })
	return proposed
}

// missing wraps a callback for data that a rendering does without.
func (r *reader) missing(call func(controllers.ID, error) bool) func(controllers.ID, error) bool {
	return func(object controllers.ID, err error) bool {
		r.unknown = true
		return call(object, err)
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
