package revision

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/internal/budget"
	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diff"
)

// side is a revision with the graph of the Kustomizations that the cluster
// applies at it.
type side struct {
	Revision
	w *walker
	// own are the sources of the cluster's folder: they are this repository.
	own map[controllers.ID]bool
	// rootRef is the Kustomization of the cluster's folder.
	rootRef controllers.ID
	// nodes are the known Kustomizations, parents first; byRef has them by
	// reference.
	nodes []*node
	byRef map[controllers.ID]*node
	// objects are the objects of all Kustomizations that were built.
	objects map[controllers.ID]applied
	// rendered is the number of objects of all builds.
	rendered int
	// cycles counts the searches that needed what was being rendered at the time. Results that
	// depend on such a search are rendered again.
	cycles int
	// absent are the objects that were searched and not found.
	absent   map[controllers.ID]bool
	contents map[controllers.ID]content
	// attempts is how often a source was rendered.
	attempts map[controllers.ID]int
	// ownObject is the source of the cluster's folder, or nil if the folder does not define it.
	ownObject *unstructured.Unstructured
}

// applied is an object and the Kustomization that applies it.
type applied struct {
	build.Object
	by *node
}

// node is a Kustomization on one side.
type node struct {
	ks    *unstructured.Unstructured
	state state
	// attempts is the number of builds.
	attempts int
	built    *diff.Side
	err      error
	// leaf is set if nothing that the Kustomization applies has to be
	// followed. It is known once inputs is set.
	leaf   bool
	inputs *inputs
}

// maxAttempts is how often a Kustomization or a source is rendered at most: cycles could make it
// endless.
const maxAttempts = 3

// maxObjects bounds the objects of all Kustomizations of a revision: those that apply each other
// render every object many times.
const maxObjects = 100_000

type state int

const (
	pending state = iota
	// building is the state during a build, which may search objects itself.
	building
	done
)

func newSide(w *walker, r Revision) *side {
	return &side{
		Revision: r, w: w, own: map[controllers.ID]bool{}, byRef: map[controllers.ID]*node{},
		objects: map[controllers.ID]applied{}, absent: map[controllers.ID]bool{}, contents: map[controllers.ID]content{}, attempts: map[controllers.ID]int{},
	}
}

func folderOf(ks *unstructured.Unstructured) string { return clean(text(ks, "spec", "path")) }

func clean(folder string) string {
	if folder = strings.TrimPrefix(path.Clean("/"+folder), "/"); folder == "" {
		return "."
	}
	return folder
}

// root returns the Kustomization whose path is the cluster's folder, or nil if there is no such
// folder.
func (s *side) root(ctx context.Context, folder, namespace string) (*unstructured.Unstructured, error) {
	info, err := fs.Stat(s.Tree, folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return nil, &build.PathError{Path: folder, Problem: "not a directory"}
	}
	below, err := fs.Sub(s.Tree, folder)
	if err != nil {
		return nil, err
	}
	// Every spelling of the path contains its last element.
	found, err := build.Search(ctx, below, []string{"kustomize.toolkit.fluxcd.io", path.Base(folder)}, func(o *unstructured.Unstructured) bool {
		return build.IsKustomization(o) && folderOf(o) == folder
	})
	if err != nil {
		return nil, err
	}
	root := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization",
		"metadata": map[string]any{"name": "flux-system", "namespace": namespace},
		"spec":     map[string]any{"path": folder, "prune": true, "sourceRef": map[string]any{"kind": "GitRepository", "name": "flux-system"}},
	}}
	if len(found) > 0 {
		if root = found[0].Unstructured; root.GetNamespace() == "" {
			root.SetNamespace(namespace)
		}
	}
	s.rootRef = controllers.IDOf(root.Object)
	s.add(root)
	return root, nil
}

// selectOwn finds the source of the cluster's folder among the objects that the folder defines. If
// its spec selects files of the repository, the graph starts again with these files.
func (s *side) selectOwn(root *unstructured.Unstructured) {
	if _, err := s.build(s.add(root)); err != nil {
		return // it is reported when it is compared
	}
	o := s.objects[build.SourceOf(root)].Unstructured
	if s.ownObject = o; o == nil {
		return
	}
	for _, field := range []string{"ignore", "include", "sparseCheckout", "recurseSubmodules"} {
		if _, set, _ := unstructured.NestedFieldNoCopy(o.Object, "spec", field); set {
			fresh := newSide(s.w, s.Revision)
			fresh.own, fresh.rootRef, fresh.ownObject = s.own, s.rootRef, o
			*s = *fresh
			s.add(root)
			return
		}
	}
}

// source returns the object of a source.
func (s *side) source(source controllers.ID) (*unstructured.Unstructured, error) {
	switch {
	case !s.own[source]:
		return s.find(source)
	case s.ownObject != nil && controllers.IDOf(s.ownObject.Object) == source:
		return s.ownObject, nil
	}
	return nil, build.ErrNotFound
}

// add adds a Kustomization to the graph unless it is known.
func (s *side) add(ks *unstructured.Unstructured) *node {
	ref := controllers.IDOf(ks.Object)
	if known := s.byRef[ref]; known != nil {
		return known
	}
	n := &node{ks: ks}
	s.byRef[ref] = n
	s.nodes = append(s.nodes, n)
	return n
}

// build renders a Kustomization and adds its objects to the graph.
func (s *side) build(n *node) (*diff.Side, error) {
	if n.state == building {
		s.cycles++
		return nil, unavailable("%s depends on what it applies itself", controllers.IDOf(n.ks.Object))
	}
	if n.state == done {
		return n.built, n.err
	}
	n.state, n.attempts = building, n.attempts+1
	before := s.cycles
	result, err := s.kustomize(n.ks, s.lookup(n))
	n.state, n.err = done, err
	if s.cycles != before && n.attempts < maxAttempts {
		n.state = pending
	}
	if err != nil {
		return nil, err
	}
	if err := count(s, n.ks, result); err != nil {
		return nil, err
	}
	n.built = &diff.Side{Owner: n.ks, Build: result}
	s.index(n)
	return n.built, nil
}

// count counts the objects of an owner on a side. It ends the comparison if a revision has too many.
func count(s *side, owner *unstructured.Unstructured, result *build.Result) error {
	if s.rendered += len(result.Objects); s.rendered <= maxObjects {
		return nil
	}
	err := &budget.ExceededError{Name: controllers.IDOf(owner.Object).String(), Fact: fmt.Sprintf("the Kustomizations of one revision have more than %d objects", maxObjects)}
	s.w.stop(err)
	return err
}

// index adds the objects of a Kustomization to the graph.
func (s *side) index(n *node) {
	for _, o := range n.built.Build.Objects {
		ref := controllers.IDOf(o.Unstructured.Object)
		if known := s.objects[ref]; known.by == nil || known.by == n {
			s.objects[ref] = applied{o, n}
		}
		if build.IsKustomization(o.Unstructured) {
			s.add(o.Unstructured)
		}
	}
	s.w.concealed.Add(n.built.Build)
}

// adopt takes over the build of a Kustomization with the same inputs at the other revision.
func (s *side) adopt(n *node, built *diff.Side) {
	if n.state == pending {
		n.state, n.built = done, built
		s.index(n)
	}
}

// kustomize renders the objects of a Kustomization.
func (s *side) kustomize(ks *unstructured.Unstructured, lookup build.Lookup) (*build.Result, error) {
	w := s.w
	source := build.SourceOf(ks)
	tree, err := s.content(source)
	twin := s.objects[controllers.IDOf(ks.Object)].Twin
	if err != nil && twin != nil {
		return nil, build.Hide(err)
	}
	if err != nil {
		return nil, fmt.Errorf("building %s: rendering its source %s: %w", controllers.IDOf(ks.Object), source, err)
	}
	reads := &reader{shared: w.shared, side: s, lookup: lookup}
	options := build.Options{
		Kustomizer: w.Kustomizer, Vars: w.Vars, SecretVars: w.SecretVars, Strict: w.Strict,
		Missing: reads.missing(w.missing(ks, "variables", ": set them with --vars-file")), KeepUnset: true,
		Unset: w.Unset, Twin: twin,
	}
	if lookup != nil {
		options.Lookup = reads
	}
	if controllers.IDOf(ks.Object) == s.rootRef {
		options.Path = w.Path
	}
	if w.Decrypter != nil {
		options.Decrypt = func(*unstructured.Unstructured, build.Lookup) build.Decrypter { return w.Decrypter }
	}
	rendered, err := reads.render(ks, options.Twin, reads.keyOf(tree, options), func() (*rendering, error) {
		result, err := build.Kustomization(w.ctx, tree, ks, options)
		return &rendering{Result: result}, err
	})
	var folder *build.PathError
	if errors.As(err, &folder) {
		err = fmt.Errorf("building %s: %w", controllers.IDOf(ks.Object), err)
	}
	if err != nil {
		return nil, err
	}
	return rendered.Result, nil
}

// find returns an object that the cluster applies at this revision.
func (s *side) find(wanted controllers.ID) (*unstructured.Unstructured, error) {
	if found := s.objects[wanted]; found.by != nil {
		return found.Unstructured, nil
	}
	if s.absent[wanted] {
		return nil, build.ErrNotFound
	}
	complete, err := s.expand([]string{wanted.Name}, func(*node) bool { return s.objects[wanted].by != nil })
	if err != nil {
		return nil, err
	}
	if found := s.objects[wanted]; found.by != nil {
		return found.Unstructured, nil
	}
	if complete {
		s.absent[wanted] = true
	}
	return nil, build.ErrNotFound
}

// each calls visit for the objects of all Kustomizations that may apply an
// object with all of the words, until visit returns true.
func (s *side) each(words []string, visit func(*unstructured.Unstructured) bool) error {
	_, err := s.expand(words, func(n *node) bool {
		if n.built == nil {
			return false
		}
		for _, o := range n.built.Build.Unstructured() {
			if visit(o) {
				return true
			}
		}
		return false
	})
	return err
}

// expand builds the Kustomizations that may apply an object with all of the
// words, parents first, and calls visit for every Kustomization until it
// returns true. It reports whether no Kustomization was being built meanwhile.
func (s *side) expand(words []string, visit func(*node) bool) (complete bool, err error) {
	busy, before := false, s.cycles
	for i := 0; i < len(s.nodes); i++ { // nodes grows in the loop
		if s.w.ctx.Err() != nil {
			return false, context.Cause(s.w.ctx)
		}
		n := s.nodes[i]
		busy = busy || n.state == building
		if n.state == pending && s.mayApply(n, words) {
			_, _ = s.build(n) // its error is reported when it is compared
		}
		if visit(n) {
			s.cycles = before
			return true, nil
		}
	}
	if busy {
		s.cycles++
	}
	return s.cycles == before, nil
}

// mayApply reports whether a Kustomization that is not built may apply an
// object with all of the words, or Kustomizations that do.
func (s *side) mayApply(n *node, words []string) bool {
	if n.inputs == nil {
		tree, err := s.content(build.SourceOf(n.ks))
		if err != nil {
			return false
		}
		n.inputs = newInputs(tree, tree)
		n.inputs.kustomization(n.ks, s.pathOf(n.ks))
		n.leaf = n.inputs.leaf
	}
	return !n.leaf || n.inputs.contains(words)
}

// pathOf returns the folder that a Kustomization builds.
func (s *side) pathOf(ks *unstructured.Unstructured) string {
	if controllers.IDOf(ks.Object) == s.rootRef {
		return s.w.Path
	}
	return folderOf(ks)
}

// lookup returns the ConfigMaps and Secrets that the cluster applies, for the build of a
// Kustomization. One that the Kustomization applies itself has the values of its last
// reconciliation: those before substitution.
func (s *side) lookup(n *node) build.Lookup {
	var own build.Lookup
	return build.LookupFunc(func(ctx context.Context, object controllers.ID) (map[string][]byte, error) {
		_, err := s.find(object)
		if err == nil {
			return s.objects[object].Data(ctx)
		}
		if n == nil || n.state != building || !errors.Is(err, build.ErrNotFound) {
			return nil, err
		}
		if own == nil {
			own = build.FromObjects(nil)
			plain := n.ks.DeepCopy()
			unstructured.RemoveNestedField(plain.Object, "spec", "postBuild")
			if result, err := s.kustomize(plain, nil); err == nil {
				own = result.Lookup(build.DataOf)
			}
		}
		return own.Data(ctx, object)
	})
}
