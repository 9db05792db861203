package revision

import (
	"errors"
	"fmt"
	"io/fs"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/build/generator"
	"github.com/fluxkit/flux/pkg/controllers"
)

// content is the result of rendering a source.
type content struct {
	tree Tree
	err  error
	// rendering is set while the source is rendered.
	rendering bool
}

// unavailableError is returned for a source whose files are not in this
// repository.
type unavailableError struct {
	reason string
	// elsewhere is set if the source is defined at an address that is not this
	// repository: changes of files do not affect it.
	elsewhere bool
}

func (e *unavailableError) Error() string { return e.reason }

// Is makes builds treat the source like a missing one.
func (e *unavailableError) Is(target error) bool { return target == build.ErrNotFound }

func unavailable(format string, args ...any) error {
	return &unavailableError{reason: fmt.Sprintf(format, args...)}
}

// content returns the files of a source, as in its artifact.
func (s *side) content(source controllers.ID) (Tree, error) {
	if known, ok := s.contents[source]; ok {
		if known.rendering {
			s.cycles++
		}
		return known.tree, known.err
	}
	s.contents[source] = content{err: unavailable("%s depends on itself", source), rendering: true}
	before := s.cycles
	tree, err := s.render(source)
	s.contents[source] = content{tree: tree, err: err}
	if s.attempts[source]++; err != nil && s.cycles != before && s.attempts[source] < maxAttempts {
		delete(s.contents, source)
	}
	return tree, err
}

func (s *side) render(source controllers.ID) (Tree, error) {
	if folder, ok := s.w.Folders[source]; ok {
		ignore := ""
		if o, err := s.source(source); err == nil {
			ignore = text(o, "spec", "ignore")
		}
		return s.selected([]build.Part{{Tree: s.Tree, From: clean(folder)}}, ignore)
	}
	switch source.Kind {
	case "GitRepository":
		return s.repository(source)
	case "ExternalArtifact":
		return s.generated(source)
	}
	o, err := s.source(source)
	if errors.Is(err, build.ErrNotFound) {
		if s.own[source] {
			return s.selected([]build.Part{{Tree: s.Tree}}, "")
		}
		return nil, s.unknown(source)
	}
	if err != nil {
		return nil, err
	}
	if s.own[source] {
		return s.selected([]build.Part{{Tree: s.Tree}}, text(o, "spec", "ignore"))
	}
	return nil, &unavailableError{reason: fmt.Sprintf("the content of %s is not in Git: if it is published from this repository, set its directory with --local-sources %s=PATH", source, hint.Quote(source.String())), elsewhere: true}
}

// unknown is the error for a source that no Kustomization applies.
func (s *side) unknown(source controllers.ID) error {
	return unavailable("%s not found in what %s applies", source, s.rootRef)
}

func text(o *unstructured.Unstructured, fields ...string) string {
	value, _, _ := unstructured.NestedString(o.Object, fields...)
	return value
}

func (s *side) selected(parts []build.Part, ignore string) (Tree, error) {
	return s.w.shared.selected(parts, ignore, func() (Tree, error) {
		tree, err := build.Select(s.w.ctx, parts, ignore)
		if err != nil {
			return nil, err // a typed nil is not nil
		}
		return tree, nil
	})
}

// repository returns the files of a GitRepository: of this tree if it is the
// source of the cluster or follows the same reference, else of the revision
// that the clone has for its reference.
func (s *side) repository(source controllers.ID) (Tree, error) {
	o, err := s.source(source)
	if errors.Is(err, build.ErrNotFound) && s.own[source] {
		return s.selected([]build.Part{{Tree: s.Tree}}, "")
	}
	if errors.Is(err, build.ErrNotFound) {
		return nil, s.unknown(source)
	}
	if err != nil {
		return nil, err
	}
	tree, err := s.checkout(o, source)
	if err != nil {
		return nil, err
	}
	parts, err := s.parts(o, tree)
	if err != nil {
		return nil, err
	}
	return s.selected(parts, text(o, "spec", "ignore"))
}

// checkout returns the tree of the repository that a GitRepository follows.
func (s *side) checkout(o *unstructured.Unstructured, source controllers.ID) (Tree, error) {
	if s.own[source] {
		return s.Tree, nil
	}
	if address := text(o, "spec", "url"); s.w.Local == nil || !s.w.Local(address) {
		return nil, &unavailableError{reason: fmt.Sprintf("%s is another repository: its URL is not a remote of this clone", source), elsewhere: true}
	}
	reference := build.GitReferenceOf(o)
	if s.follows(reference) {
		return s.Tree, nil
	}
	if s.w.At == nil {
		return nil, unavailable("%s follows %s", source, reference)
	}
	tree, err := s.w.At(reference)
	if err != nil {
		return nil, unavailable("%s follows %s: %s", source, reference, err)
	}
	return tree, nil
}

// follows reports whether a reference is the one that the compared revisions
// are of.
func (s *side) follows(reference build.GitReference) bool {
	if s.ownObject != nil && s.ownObject.GetKind() == "GitRepository" {
		return build.GitReferenceOf(s.ownObject) == reference
	}
	for _, branch := range s.w.Branches {
		if reference == (build.GitReference{Branch: branch}) {
			return true
		}
	}
	return false
}

// parts returns the parts of the artifact of a GitRepository: its own files, which are in tree, those of
// its submodules, and those of spec.include.
func (s *side) parts(o *unstructured.Unstructured, tree Tree) ([]build.Part, error) {
	if submodules, _, _ := unstructured.NestedBool(o.Object, "spec", "recurseSubmodules"); submodules {
		if _, err := fs.Stat(tree, ".gitmodules"); err == nil {
			if s.w.Submodules == nil {
				return nil, unavailable("%s has submodules, which are not in this clone's history", controllers.IDOf(o.Object))
			}
			if tree, err = s.w.Submodules(tree); err != nil {
				return nil, unavailable("%s has submodules: %s", controllers.IDOf(o.Object), err)
			}
		}
	}
	included, err := build.Included(o, func(other controllers.ID) (fs.FS, error) { return s.content(other) })
	return append([]build.Part{{Tree: tree, Only: build.SparseCheckout(o)}}, included...), err
}

// generated returns the files of an ExternalArtifact, which an
// ArtifactGenerator in its namespace produces.
func (s *side) generated(source controllers.ID) (Tree, error) {
	var generators []*unstructured.Unstructured
	err := s.each([]string{"ArtifactGenerator"}, func(o *unstructured.Unstructured) bool {
		if generator.Is(o) {
			generators = append(generators, o)
		}
		return false
	})
	if err != nil {
		return nil, err
	}
	tree, err := generator.Find(s.w.ctx, source, generators, func(source controllers.ID) (fs.FS, error) { return s.content(source) })
	var inner *unavailableError
	switch {
	case err == nil:
		return s.w.shared.canonical(tree), nil
	case errors.As(err, &inner):
		return nil, &unavailableError{reason: err.Error(), elsewhere: inner.elsewhere}
	case errors.Is(err, build.ErrNotFound):
		return nil, unavailable("no ArtifactGenerator in what %s applies produces %s", s.rootRef, source)
	}
	return nil, err
}
