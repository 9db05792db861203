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
)

// Sources finds the tree of a source by its reference. The error of a source
// that nobody has is ErrNotFound.
type Sources func(ctx context.Context, source Reference) (fs.FS, error)

// ChildError says that a Kustomization among the objects could not be built.
type ChildError struct {
	Child Reference
	// Source is its source, if that is what is missing.
	Source Reference
	err    error
}

func (e *ChildError) Error() string {
	if errors.Is(e.err, ErrNotFound) {
		return fmt.Sprintf("building %s: its source %s is not at hand", e.Child, e.Source)
	}
	if prefix := fmt.Sprintf("building %s: ", e.Child); !strings.HasPrefix(e.err.Error(), prefix) {
		return prefix + e.err.Error()
	}
	return e.err.Error()
}

// Unwrap returns why.
func (e *ChildError) Unwrap() error { return e.err }

// Recursive builds a Kustomization, and those that are among its objects, and
// so on; the objects of each follow those of the one that brings it. What
// cannot be built is left out and named by a ChildError in the error, which
// then comes together with a result.
func Recursive(ctx context.Context, tree fs.FS, ks *unstructured.Unstructured, o Options, sources Sources) (*Result, error) {
	if o.Budget == nil {
		o.Budget = budget.New(budget.Default())
	}
	r := &recursion{ctx: ctx, options: o, sources: sources, seen: map[Reference]bool{}}
	result, err := Kustomization(ctx, tree, ks, o)
	if err != nil {
		return nil, err
	}
	r.seen[ReferenceTo(ks)] = true
	r.result = &Result{}
	r.options.Path, r.options.Ignore = "", nil // those were about the first folder
	r.take(result)
	return r.result, errors.Join(r.failed...)
}

type recursion struct {
	ctx     context.Context
	options Options
	sources Sources
	seen    map[Reference]bool
	result  *Result
	failed  []error
}

// take keeps the objects of one Kustomization and goes on to those among them.
func (r *recursion) take(built *Result) {
	r.result.Objects = append(r.result.Objects, built.Objects...)
	r.result.SecretValues = append(r.result.SecretValues, built.SecretValues...)
	slices.Sort(r.result.SecretValues)
	r.result.SecretValues = slices.Compact(r.result.SecretValues)
	for _, o := range built.Objects {
		if !IsKustomization(o.Unstructured) || r.seen[ReferenceTo(o.Unstructured)] {
			continue
		}
		r.seen[ReferenceTo(o.Unstructured)] = true
		if err := r.child(o.Unstructured); err != nil {
			r.failed = append(r.failed, err)
		}
	}
}

func (r *recursion) child(ks *unstructured.Unstructured) error {
	source := SourceOf(ks)
	tree, err := r.sources(r.ctx, source)
	if err != nil {
		return &ChildError{ReferenceTo(ks), source, err}
	}
	o := r.options
	if o.Lookup != nil {
		o.Lookup = Lookups(FromObjects(r.readable()), o.Lookup)
	}
	built, err := Kustomization(r.ctx, tree, ks, o)
	if err != nil {
		return &ChildError{ReferenceTo(ks), source, err}
	}
	r.take(built)
	return nil
}

// readable are the objects that nobody has to decrypt first: of the others,
// only the cluster knows what they hold.
func (r *recursion) readable() []*unstructured.Unstructured {
	var objects []*unstructured.Unstructured
	for _, o := range r.result.Objects {
		if !encrypted(o.Object) && len(encryptedKeys(o.Unstructured)) == 0 {
			objects = append(objects, o.Unstructured)
		}
	}
	return objects
}

// IsKustomization tells whether an object is a Kustomization of Flux.
func IsKustomization(o *unstructured.Unstructured) bool {
	return o.GetKind() == kustomizationKind && strings.HasPrefix(o.GetAPIVersion(), toolkit+"/")
}

// SourceOf is what a Kustomization's sourceRef refers to.
func SourceOf(ks *unstructured.Unstructured) Reference {
	reference, _, _ := unstructured.NestedStringMap(ks.Object, "spec", "sourceRef")
	source := Reference{reference["kind"], reference["namespace"], reference["name"]}
	if source.Namespace == "" {
		source.Namespace = ks.GetNamespace()
	}
	return source
}

// ReferenceTo names an object that is at hand.
func ReferenceTo(o *unstructured.Unstructured) Reference {
	return Reference{o.GetKind(), o.GetNamespace(), o.GetName()}
}
