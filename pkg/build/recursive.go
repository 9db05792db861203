package build

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/internal/budget"
	"github.com/fluxkit/flux/pkg/controllers"
)

// Sources returns the tree of a source, or ErrNotFound.
type Sources func(ctx context.Context, source controllers.ID) (fs.FS, error)

// Generate renders a source from the objects that are built so far. It returns ErrNotFound if they
// do not define the source.
type Generate func(ctx context.Context, source controllers.ID, objects []*unstructured.Unstructured, sources Sources) (fs.FS, error)

// ChildError is returned for a child Kustomization that cannot be built.
type ChildError struct {
	Child controllers.ID
	// Source is the source of the Kustomization, if the source is missing.
	Source controllers.ID
	err    error
}

func (e *ChildError) Error() string {
	if errors.Is(e.err, ErrNotFound) {
		return fmt.Sprintf("building %s: its source %s is not available", e.Child, e.Source)
	}
	if prefix := fmt.Sprintf("building %s: ", e.Child); !strings.HasPrefix(e.err.Error(), prefix) {
		return prefix + e.err.Error()
	}
	return e.err.Error()
}

// Unwrap returns the underlying error.
func (e *ChildError) Unwrap() error { return e.err }

// Recursive builds a Kustomization, then the Kustomizations among its objects, and so on. The
// objects of each follow those of its parent. A child that cannot be built is skipped and reported
// by a ChildError in the error, which is then returned together with a result.
//
// ConfigMaps and Secrets of spec.postBuild.substituteFrom are first looked up among the built
// objects. With Options.Missing, which lets builds continue without them, the build is repeated
// while another Kustomization turns out to contain one.
func Recursive(ctx context.Context, tree fs.FS, ks *unstructured.Unstructured, o Options, sources Sources) (*Result, error) {
	if o.Budget == nil {
		o.Budget = budget.New(budget.Default())
	}
	if o.Missing == nil {
		return newRecursion(ctx, o, sources, nil).run(tree, ks)
	}
	missing := o.Missing
	var known *Result
	for pass := 0; ; pass++ {
		var absent []absence
		o.Missing = func(object controllers.ID, err error) bool {
			absent = append(absent, absence{object, err})
			return true
		}
		result, err := newRecursion(ctx, o, sources, known).run(tree, ks)
		if result == nil {
			return nil, err
		}
		known = result
		if pass < maxPasses && slices.ContainsFunc(absent, func(a absence) bool { return errors.Is(a.err, ErrNotFound) && known.has(a.object) }) {
			continue
		}
		for _, a := range absent {
			if !missing(a.object, a.err) {
				return nil, fmt.Errorf("reading %s: %w", a.object, a.err)
			}
		}
		return result, err
	}
}

// maxPasses limits the builds for ConfigMaps and Secrets that are found after they are needed. Each
// of them may itself be built with values of the previous pass.
const maxPasses = 4

// absence is a ConfigMap or Secret that could not be read.
type absence struct {
	object controllers.ID
	err    error
}

func newRecursion(ctx context.Context, o Options, sources Sources, known *Result) *recursion {
	if known == nil {
		known = &Result{}
	}
	return &recursion{ctx: ctx, options: o, sources: sources, seen: map[controllers.ID]bool{}, known: known, result: &Result{}}
}

func (r *recursion) run(tree fs.FS, ks *unstructured.Unstructured) (*Result, error) {
	result, err := Kustomization(r.ctx, tree, ks, r.withLookup())
	if err != nil {
		return nil, err
	}
	r.seen[controllers.IDOf(ks.Object)] = true
	r.options.Path, r.options.Ignore = "", nil // these options apply to the first folder only
	r.take(result)
	r.retry()
	return r.result, errors.Join(r.failed...)
}

type recursion struct {
	ctx     context.Context
	options Options
	sources Sources
	seen    map[controllers.ID]bool
	// known holds the objects of the previous pass.
	known  *Result
	result *Result
	failed []error
	// waiting holds the children whose source no object defines yet.
	waiting []Object
}

// retry builds the children whose source a later Kustomization defines.
func (r *recursion) retry() {
	for len(r.waiting) > 0 {
		waiting, before := r.waiting, len(r.result.Objects)
		r.waiting = nil
		for _, ks := range waiting {
			r.build(ks)
		}
		if len(r.result.Objects) == before {
			break
		}
	}
	for _, ks := range r.waiting {
		r.failed = append(r.failed, &ChildError{controllers.IDOf(ks.Unstructured.Object), SourceOf(ks.Unstructured), ErrNotFound})
	}
}

func (r *recursion) build(ks Object) {
	err := r.child(ks)
	var variables *VariablesError
	if r.options.Generate != nil && errors.Is(err, ErrNotFound) && !errors.As(err, &variables) {
		r.waiting = append(r.waiting, ks)
	} else if err != nil {
		r.failed = append(r.failed, err)
	}
}

// tree returns the files of a source.
func (r *recursion) tree(source controllers.ID) (fs.FS, error) {
	if r.options.Generate != nil {
		tree, err := r.options.Generate(r.ctx, source, r.result.Unstructured(), r.sources)
		if !errors.Is(err, ErrNotFound) {
			return tree, err
		}
	}
	return r.sources(r.ctx, source)
}

// take adds the objects of a Kustomization to the result and builds the Kustomizations among them.
func (r *recursion) take(built *Result) {
	r.result.Objects = append(r.result.Objects, built.Objects...)
	r.result.SecretValues = append(r.result.SecretValues, built.SecretValues...)
	slices.Sort(r.result.SecretValues)
	r.result.SecretValues = slices.Compact(r.result.SecretValues)
	for _, o := range built.Objects {
		if !IsKustomization(o.Unstructured) || r.seen[controllers.IDOf(o.Unstructured.Object)] {
			continue
		}
		r.seen[controllers.IDOf(o.Unstructured.Object)] = true
		r.build(o)
	}
}

func (r *recursion) child(o Object) error {
	ks := o.Unstructured
	source := SourceOf(ks)
	child := o.Alias()
	tree, err := r.tree(source)
	if err != nil {
		if o.Twin != nil && SourceOf(o.Twin) != source {
			source.Name = Alias(source.Name)
		}
		return &ChildError{child, source, err}
	}
	options := r.withLookup()
	options.Twin = o.Twin
	built, err := Kustomization(r.ctx, tree, ks, options)
	if err != nil {
		return &ChildError{child, source, err}
	}
	r.take(built)
	return nil
}

// withLookup returns the options with a lookup that searches the built objects first.
func (r *recursion) withLookup() Options {
	o := r.options
	if o.Lookup == nil {
		return o
	}
	o.Lookup = Lookups(r.result.Lookup(ReadData), r.known.Lookup(ReadData), o.Lookup)
	return o
}

// has reports whether a build has a ConfigMap or a Secret.
func (r *Result) has(object controllers.ID) bool {
	return slices.ContainsFunc(r.Objects, func(o Object) bool {
		return o.GetAPIVersion() == "v1" && controllers.IDOf(o.Unstructured.Object) == object
	})
}

// IsKustomization reports whether an object is a Kustomization of Flux.
func IsKustomization(o *unstructured.Unstructured) bool {
	return o.GetKind() == kustomizationKind && strings.HasPrefix(o.GetAPIVersion(), toolkit+"/")
}

// SourceOf returns the source that the sourceRef of a Kustomization references.
func SourceOf(ks *unstructured.Unstructured) controllers.ID {
	reference, _, _ := unstructured.NestedStringMap(ks.Object, "spec", "sourceRef")
	source := controllers.FluxID(reference["kind"], reference["namespace"], reference["name"])
	if source.Namespace == "" {
		source.Namespace = ks.GetNamespace()
	}
	return source
}
