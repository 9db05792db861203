// Package revision compares the objects that a repository deploys to a cluster at two of its
// revisions, without the cluster. It follows Kustomizations and HelmReleases from the cluster's
// folder, and renders only those that the changed files can affect.
package revision

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/diff"
)

// Tree is the content of a repository at one revision.
type Tree interface {
	fs.FS
	// Hash returns the same value for files and folders with the same content, and fs.ErrNotExist
	// for a missing name.
	Hash(name string) (string, error)
}

// Revision is one side of the comparison.
type Revision struct {
	Tree Tree
	// Name is the name of the revision in messages.
	Name string
}

// Options configure a comparison.
type Options struct {
	// Path is the folder from which the cluster is bootstrapped.
	Path string
	// Namespace is the namespace of Flux.
	Namespace string
	// Local reports whether an address is that of the repository.
	Local func(address string) bool
	// Folders are the folders of sources whose address does not identify the repository.
	Folders map[build.Reference]string
	// Vars, SecretVars and Strict are as in build.Options.
	Vars       map[string]string
	SecretVars []string
	Strict     bool
	// Decrypter returns the decrypter of a Kustomization. It may be nil.
	Decrypter func(ks *unstructured.Unstructured) build.Decrypter
	// Renderer renders charts. If it is nil, HelmReleases are ignored.
	Renderer build.Renderer
	// Kustomizer runs kustomize, see build.Options.
	Kustomizer build.Kustomizer
	// KubeVersion and APIVersions are the capabilities that charts see.
	KubeVersion string
	APIVersions []string
	// Warn is called once for each omission. It may be nil.
	Warn func(text string)
	// All renders everything, including what cannot have changed.
	All bool
}

// Outcome is the result of a comparison.
type Outcome struct {
	// Results are the results with differences, parents first.
	Results []*diff.Result
	// Root is the Kustomization of the cluster's folder.
	Root diff.Ref
	// Followed is the number of Kustomizations and HelmReleases, Rendered the number of those that
	// were rendered on both sides.
	Followed, Rendered int
}

// Compare compares two revisions. Objects that cannot be built are omitted and named in the error,
// which is then returned together with an outcome.
func Compare(ctx context.Context, base, head Revision, o Options) (*Outcome, error) {
	o.Path = strings.TrimPrefix(path.Clean("/"+o.Path), "/")
	if o.Path == "" {
		o.Path = "."
	}
	w := &walker{ctx: ctx, Options: o, base: newSide(base), head: newSide(head), seen: map[build.Reference]bool{}, warned: map[string]bool{}}
	roots, err := w.roots()
	if err != nil {
		return nil, err
	}
	for _, o := range []*unstructured.Unstructured{roots.base, roots.head} {
		if o != nil {
			w.seen[build.ReferenceTo(o)] = true
		}
	}
	w.kustomization(roots, ancestors{}, ancestors{}, false)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	outcome := &Outcome{Root: diff.RefOf(roots.either()), Followed: w.followed, Rendered: len(w.found)}
	for _, r := range diff.Builds(w.found) {
		r.Revision = head.Name
		if r.Different() || len(r.Warnings) > 0 {
			outcome.Results = append(outcome.Results, r)
		}
	}
	return outcome, errors.Join(w.failed...)
}

// BuildError is returned when an object cannot be built at one of the revisions.
type BuildError struct {
	Revision string
	err      error
}

func (e *BuildError) Error() string { return "at " + e.Revision + ": " + e.err.Error() }

// Unwrap returns the cause.
func (e *BuildError) Unwrap() error { return e.err }

// pair is an object on both sides, or on one of them.
type pair struct{ base, head *unstructured.Unstructured }

func (p pair) either() *unstructured.Unstructured {
	if p.head != nil {
		return p.head
	}
	return p.base
}

type walker struct {
	Options
	ctx        context.Context
	base, head *side
	seen       map[build.Reference]bool
	found      []diff.Desired
	followed   int
	failed     []error
	warned     map[string]bool
}

// roots returns the Kustomization of the cluster's folder: the one in the folder whose path is the
// folder, or else one as bootstrap creates it.
func (w *walker) roots() (pair, error) {
	var p pair
	for _, s := range []struct {
		*side
		to **unstructured.Unstructured
	}{{w.base, &p.base}, {w.head, &p.head}} {
		found, err := s.root(w.ctx, w.Path, w.Namespace)
		if err != nil {
			return p, err
		}
		*s.to = found
	}
	if p.base == nil && p.head == nil {
		return p, &build.PathError{Path: w.Path, Problem: "not found in either revision"}
	}
	for _, o := range []*unstructured.Unstructured{p.base, p.head} {
		if o != nil {
			source := build.SourceOf(o)
			w.base.own[source], w.head.own[source] = ".", "."
		}
	}
	return p, nil
}

func (w *walker) warn(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if w.Warn != nil && !w.warned[text] {
		w.Warn(text)
	}
	w.warned[text] = true
}

func (w *walker) fail(s *side, err error) {
	w.failed = append(w.failed, &BuildError{s.Name, err})
}

// kustomization compares the objects of a Kustomization and follows the Kustomizations and
// HelmReleases among them. They hold the objects of all its ancestors.
func (w *walker) kustomization(p pair, base, head ancestors, kept bool) {
	if p.base != nil && p.head != nil && !w.All {
		same, leaf := w.sameInputs(p, base, head)
		if same && leaf {
			w.followed++
			return
		}
		if same {
			w.followed++
			w.unchanged(p, base, head)
			return
		}
	}
	w.followed++
	before, beforeOK := w.buildSide(w.base, p.base, base)
	after, afterOK := w.buildSide(w.head, p.head, head)
	if !beforeOK || !afterOK {
		return
	}
	w.found = append(w.found, diff.Desired{Before: before, After: after, Kept: kept})
	w.children(before, after, base, head, kept)
}

// unchanged renders one side of a Kustomization that is the same on both, to find its
// Kustomizations and HelmReleases.
func (w *walker) unchanged(p pair, base, head ancestors) {
	built, ok := w.buildSide(w.head, p.head, head)
	if ok && built != nil {
		w.children(built, built, base, head, false)
	}
}

// buildSide builds one side. The side is nil, with true, if the Kustomization does not exist
// there.
func (w *walker) buildSide(s *side, ks *unstructured.Unstructured, above ancestors) (*diff.Side, bool) {
	if ks == nil || w.ctx.Err() != nil {
		return nil, w.ctx.Err() == nil
	}
	tree, err := s.source(w, build.SourceOf(ks), above)
	if err != nil {
		w.warn("%s is not compared: its source %s is not this repository", build.ReferenceTo(ks), build.SourceOf(ks))
		return nil, false
	}
	options := build.Options{
		Filter: true, Kustomizer: w.Kustomizer, Vars: w.Vars, SecretVars: w.SecretVars, Strict: w.Strict, Lookup: s.lookup(above), Missing: w.missing("variables", ": set them with --vars-file"),
	}
	if build.ReferenceTo(ks) == s.rootRef {
		options.Path = w.Path
	}
	if w.Decrypter != nil {
		options.Decrypt = func(ks *unstructured.Unstructured, _ build.Lookup) build.Decrypter { return w.Decrypter(ks) }
	}
	result, err := build.Kustomization(w.ctx, tree, ks, options)
	if err != nil {
		w.fail(s, err)
		return nil, false
	}
	return &diff.Side{Owner: ks, Build: result}, true
}

// missing returns a callback that lets a build continue without data that may exist only on the
// cluster.
func (w *walker) missing(what, way string) func(build.Reference, error) bool {
	return func(object build.Reference, err error) bool {
		if w.ctx.Err() != nil {
			return false
		}
		w.warn("%s of %s omitted: %s%s", what, object, err, way)
		return true
	}
}

// children follows the Kustomizations and HelmReleases among the objects of both sides: those of
// the new side in its order, then those that are removed.
func (w *walker) children(before, after *diff.Side, base, head ancestors, kept bool) {
	base, head = base.with(before), head.with(after)
	for _, p := range pairs(before, after) {
		ref := build.ReferenceTo(p.either())
		if w.seen[ref] || w.ctx.Err() != nil {
			continue
		}
		w.seen[ref] = true
		stays := kept || p.head == nil && after != nil && !prunes(after.Owner, p.base)
		if build.IsKustomization(p.either()) {
			w.kustomization(p, base, head, stays)
		} else if w.Renderer != nil {
			w.release(p, base, head, stays)
		}
	}
}

// prunes reports whether an object that its owner no longer has is pruned.
func prunes(owner, o *unstructured.Unstructured) bool {
	prune, _, _ := unstructured.NestedBool(owner.Object, "spec", "prune")
	return prune && o.GetAnnotations()["kustomize.toolkit.fluxcd.io/prune"] != "disabled"
}

func pairs(before, after *diff.Side) []pair {
	var all []pair
	at := map[build.Reference]int{}
	for i, s := range []*diff.Side{after, before} {
		if s == nil {
			continue
		}
		for _, o := range s.Build.Objects {
			if !build.IsKustomization(o.Unstructured) && !build.IsHelmRelease(o.Unstructured) {
				continue
			}
			ref := build.ReferenceTo(o.Unstructured)
			if _, known := at[ref]; !known {
				at[ref] = len(all)
				all = append(all, pair{})
			}
			if i == 0 {
				all[at[ref]].head = o.Unstructured
			} else {
				all[at[ref]].base = o.Unstructured
			}
		}
	}
	return all
}
