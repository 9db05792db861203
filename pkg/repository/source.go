package repository

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/internal/git"
	"github.com/fluxkit/flux/internal/git/filetree"
	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/build/generator"
	"github.com/fluxkit/flux/pkg/build/sourcetree"
	"github.com/fluxkit/flux/pkg/controllers"
)

// Contents returns the files of sources that are not in the tree of a graph.
type Contents interface {
	// Content returns the files of a source, or build.ErrNotFound if they are unavailable. An error that wraps
	// build.ErrNotFound contains the reason.
	Content(ctx context.Context, r Request) (Content, error)
}

// Request is a source whose files are requested.
type Request struct {
	Source controllers.ID
	// Object is the source, or nil if the graph does not contain it.
	Object *unstructured.Unstructured
	// Local is set if a GitRepository has the address of the graph's repository.
	Local bool
	// Lookup returns the Secrets that the source refers to.
	Lookup build.Lookup
}

// Content contains the files of a source.
type Content struct {
	Files fs.FS
	// Artifact is set if the files come from the artifact, so that no ignore rules apply.
	Artifact bool
	// Directory is set if one directory contains the files for all references of the source.
	Directory string
}

// Folder is a directory that is used as the content of a source.
type Folder struct {
	// Tree contains the directory, nil for the graph's tree.
	Tree fs.FS
	Path string
	// Artifact is set if the files come from an artifact, so that no ignore rules apply.
	Artifact bool
}

// UnavailableError is returned for a source whose files are not in the repository. Builds handle such a source like a
// missing one.
type UnavailableError struct {
	Reason string
	// Elsewhere is set if the source is another repository or another reference of this one, so that file changes do
	// not affect it.
	Elsewhere bool
	// Undefined is set if the repository does not contain the source.
	Undefined bool
	// Artifact is set if the content of the source may have been pushed from this repository. OtherOwner is set if the source
	// belongs to another owner than the repository.
	Artifact, OtherOwner bool
}

func (e *UnavailableError) Error() string { return e.Reason }

// Is reports whether target is build.ErrNotFound.
func (e *UnavailableError) Is(target error) bool { return target == build.ErrNotFound }

func unavailable(format string, args ...any) error {
	return &UnavailableError{Reason: fmt.Sprintf(format, args...)}
}

// SourceError is returned for a Kustomization whose source has no files.
type SourceError struct {
	Owner, Source controllers.ID
	err           error
}

func (e *SourceError) Error() string {
	return fmt.Sprintf("building %s: rendering its source %s: %s", e.Owner, e.Source, e.err)
}

// Unwrap returns the underlying error.
func (e *SourceError) Unwrap() error { return e.err }

// artifacts contains the artifacts of sources.
type artifacts struct {
	graph *Graph
	known map[controllers.ID]*content
	// own holds the root's sources, which refer to this repository. object is the object of one of them, or nil if the
	// repository does not contain it. referred is a source of another kind that refers to the repository, if the root is
	// assumed.
	own      map[controllers.ID]bool
	object   *unstructured.Unstructured
	referred controllers.ID
	// foreign caches the results of Contents for each source object.
	foreign map[foreignKey]foreignContent
}

type foreignKey struct {
	source controllers.ID
	object *unstructured.Unstructured
}

type foreignContent struct {
	Content
	err error
}

// content is the result of rendering a source.
type content struct {
	tree     Tree
	err      error
	attempts int
	// state is building while the source is rendered, and pending if it has to be rendered again.
	state state
}

// Content returns the files of a source, as in its artifact.
func (g *Graph) Content(source controllers.ID) (Tree, error) {
	c := g.artifacts.known[source]
	if c == nil {
		c = &content{}
		g.artifacts.known[source] = c
	}
	switch c.state {
	case building:
		g.cycles++
		return nil, unavailable("%s depends on itself", source)
	case done:
		return c.tree, c.err
	}
	c.state, c.attempts = building, c.attempts+1
	before := g.cycles
	c.tree, c.err = g.artifacts.render(source)
	if c.state = done; c.err != nil && g.cycles != before && c.attempts < maxAttempts {
		c.state = pending
	}
	return c.tree, c.err
}

func (a *artifacts) render(source controllers.ID) (Tree, error) {
	if folder, ok := a.graph.Folders[source]; ok {
		return a.folder(source, folder)
	}
	if source.Kind == generator.Artifact {
		tree, err := a.generated(source)
		if errors.Is(err, build.ErrNotFound) && a.graph.Contents != nil {
			return a.elsewhere(Request{Source: source}, err)
		}
		return tree, err
	}
	o, err := a.source(source)
	switch {
	case a.isOwn(source, err):
		return a.artifact(o, a.graph.Tree)
	case errors.Is(err, build.ErrNotFound):
		return a.elsewhere(Request{Source: source}, &UnavailableError{Reason: fmt.Sprintf("%s not found among the objects that %s applies", source, controllers.IDOf(a.graph.root.Object)), Undefined: true, Artifact: true})
	case err != nil:
		return nil, err
	}
	identity := Identity{a.graph.Remotes, a.object, a.graph.Branches}
	local := source.Kind == controllers.GitRepository && identity.Local(text(o, "spec", "url"))
	if local && identity.Follows(controllers.GitReferenceOf(o.Object)) {
		return a.artifact(o, a.graph.Tree)
	}
	return a.elsewhere(Request{Source: source, Object: o, Local: local}, notInTree(o, identity, local))
}

// notInTree returns the error for a source whose files are not in the tree.
func notInTree(o *unstructured.Unstructured, identity Identity, local bool) error {
	source := controllers.IDOf(o.Object)
	switch {
	case local:
		return &UnavailableError{Reason: fmt.Sprintf("%s follows %s", source, controllers.GitReferenceOf(o.Object)), Elsewhere: true}
	case source.Kind == controllers.GitRepository:
		return &UnavailableError{Reason: fmt.Sprintf("%s is another repository: its URL is not a remote of this clone", source), Elsewhere: true}
	}
	remedy := "set its directory in this repository with --local-sources " + hint.Quote(source.String()) + "=PATH"
	url := text(o, "spec", "url")
	if url != "" {
		remedy += ", or another directory with --map " + hint.Quote(url+"=DIR")
	}
	return &UnavailableError{Reason: fmt.Sprintf("the content of %s is not in Git: %s", source, remedy), Elsewhere: true, Artifact: true, OtherOwner: git.OtherOwner(url, identity.Remotes)}
}

// elsewhere returns the files of a source that the tree does not contain. otherwise is the error if Contents does not
// have them either.
func (a *artifacts) elsewhere(r Request, otherwise error) (Tree, error) {
	if a.graph.Contents == nil {
		return nil, otherwise
	}
	key := foreignKey{r.Source, r.Object}
	found, known := a.foreign[key]
	if !known {
		r.Lookup = a.graph.lookup(nil)
		found.Content, found.err = a.graph.Contents.Content(a.graph.ctx, r)
		a.foreign[key] = found
	}
	switch {
	case found.err == build.ErrNotFound: //nolint:errorlint // other errors contain the reason
		return nil, otherwise
	case found.err != nil:
		return nil, found.err
	case found.Artifact:
		return filetree.From(found.Files), nil
	}
	return a.artifact(r.Object, found.Files)
}

// source returns the object of a source.
func (a *artifacts) source(source controllers.ID) (*unstructured.Unstructured, error) {
	if a.object != nil && controllers.IDOf(a.object.Object) == source {
		return a.object, nil
	}
	if a.own[source] {
		return nil, build.ErrNotFound
	}
	return a.graph.Object(source)
}

// isOwn reports whether a source is the source of the cluster's directory. If the repository does not contain the
// cluster's Kustomization, the source is installed by other means. It is then identified by the assumed name,
// under which other Kustomizations refer to it.
func (a *artifacts) isOwn(source controllers.ID, err error) bool {
	assumed := build.SourceOf(a.graph.root)
	if a.graph.assumed && !a.own[source] && errors.Is(err, build.ErrNotFound) && source.Name == assumed.Name && source.Namespace == assumed.Namespace {
		a.own[source], a.referred = true, source
	}
	return a.own[source]
}

// folder returns the files of a directory as the artifact of a source.
func (a *artifacts) folder(source controllers.ID, folder Folder) (Tree, error) {
	part := sourcetree.Part{Tree: a.graph.Tree, From: sourcetree.Clean(folder.Path)}
	if folder.Tree != nil {
		part.Tree = folder.Tree
	}
	o, err := a.source(source)
	if err != nil {
		o = nil
	}
	return a.selected([]sourcetree.Part{part}, sourcetree.IgnoreOf(o), folder.Artifact)
}

// artifact returns the artifact of a source with the files of a tree, including submodules and spec.include of a
// GitRepository.
func (a *artifacts) artifact(o *unstructured.Unstructured, files fs.FS) (Tree, error) {
	if o == nil {
		return a.selected([]sourcetree.Part{{Tree: files}}, sourcetree.Ignore{}, false)
	}
	if submodules, _, _ := unstructured.NestedBool(o.Object, "spec", "recurseSubmodules"); submodules {
		if _, err := fs.Stat(files, ".gitmodules"); err == nil {
			own, ok := files.(Tree)
			if a.graph.Submodules == nil || !ok {
				return nil, unavailable("%s has submodules, which are not in this clone's history", controllers.IDOf(o.Object))
			}
			if files, err = a.graph.Submodules(own); err != nil {
				return nil, unavailable("%s has submodules: %s", controllers.IDOf(o.Object), err)
			}
		}
	}
	included, err := sourcetree.Included(o, func(other controllers.ID) (fs.FS, error) { return a.graph.Content(other) })
	if err != nil {
		return nil, err
	}
	parts := append([]sourcetree.Part{{Tree: files, Only: sourcetree.SparseCheckout(o)}}, included...)
	return a.selected(parts, sourcetree.IgnoreOf(o), text(o, "spec", "layerSelector", "operation") == "copy")
}

// selected returns the files of parts. An artifact, which is a single part, is not filtered again.
func (a *artifacts) selected(parts []sourcetree.Part, ignore sourcetree.Ignore, artifact bool) (Tree, error) {
	return a.graph.Memo.selected(parts, ignore, artifact, func() (Tree, error) {
		if artifact {
			below, err := fs.Sub(parts[0].Tree, sourcetree.Clean(parts[0].From))
			return filetree.From(below), err
		}
		tree, err := sourcetree.Select(a.graph.ctx, parts, ignore)
		if err != nil {
			return nil, err // a typed nil is not nil
		}
		return tree, nil
	})
}

// generators returns the ArtifactGenerators that the cluster applies.
func (a *artifacts) generators() ([]*unstructured.Unstructured, error) {
	var all []*unstructured.Unstructured
	_, err := a.graph.expand([]string{generator.Kind}, func(n *node) bool {
		if n.built != nil {
			all = append(all, slices.DeleteFunc(n.built.Build.Unstructured(), func(o *unstructured.Unstructured) bool { return !generator.Is(o) })...)
		}
		return false
	})
	return all, err
}

// generated returns the files of an ExternalArtifact, which an ArtifactGenerator in its namespace produces.
func (a *artifacts) generated(source controllers.ID) (Tree, error) {
	generators, err := a.generators()
	if err != nil {
		return nil, err
	}
	tree, err := generator.Find(a.graph.ctx, source, generators, func(source controllers.ID) (fs.FS, error) { return a.graph.Content(source) })
	var inner *UnavailableError
	switch {
	case err == nil:
		return a.graph.Memo.canonical(tree), nil
	case errors.As(err, &inner):
		return nil, &UnavailableError{Reason: err.Error(), Elsewhere: inner.Elsewhere, Artifact: inner.Artifact, OtherOwner: inner.OtherOwner}
	case errors.Is(err, build.ErrNotFound):
		return nil, unavailable("no ArtifactGenerator that %s applies produces %s", controllers.IDOf(a.graph.root.Object), source)
	}
	return nil, err
}
