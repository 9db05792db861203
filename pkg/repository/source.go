package repository

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/build/generator"
	"github.com/fluxkit/flux/pkg/controllers"
)

// Contents returns the files of sources that are not in the tree of a graph.
type Contents interface {
	// Content returns the files of a source. It returns an UnavailableError, or build.ErrNotFound, if it has none.
	Content(ctx context.Context, r Request) (Content, error)
}

// Request is a source whose files are requested.
type Request struct {
	Source controllers.ID
	// Object is the source, or nil if the graph does not contain it.
	Object *unstructured.Unstructured
	// Local is set if the address of a GitRepository is that of the repository of the graph.
	Local bool
	// Lookup returns the Secrets that the source refers to.
	Lookup build.Lookup
}

// Content contains the files of a source.
type Content struct {
	Files fs.FS
	// Artifact is set if the files are those of the artifact, so that no ignore rules apply.
	Artifact bool
}

// Folder is a directory that is used as the content of a source.
type Folder struct {
	// Tree contains the directory. Nil is the tree of the graph.
	Tree fs.FS
	Path string
	// Artifact is set if the files are those of an artifact, so that no ignore rules apply.
	Artifact bool
}

// UnavailableError is returned for a source whose files are not in the repository. Builds handle such a source like a
// missing one.
type UnavailableError struct {
	Reason string
	// Elsewhere is set if the source is defined at an address that is not that of the repository: changes of files do
	// not affect it.
	Elsewhere bool
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
	c := g.contents[source]
	if c == nil {
		c = &content{}
		g.contents[source] = c
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
	c.tree, c.err = g.render(source)
	if c.state = done; c.err != nil && g.cycles != before && c.attempts < maxAttempts {
		c.state = pending
	}
	return c.tree, c.err
}

func (g *Graph) render(source controllers.ID) (Tree, error) {
	if folder, ok := g.Folders[source]; ok {
		return g.folder(source, folder)
	}
	if source.Kind == "ExternalArtifact" {
		tree, err := g.generated(source)
		if errors.Is(err, build.ErrNotFound) && g.Contents != nil {
			return g.foreign(Request{Source: source}, err)
		}
		return tree, err
	}
	o, err := g.source(source)
	switch {
	case g.isOwn(source, err):
		return g.artifact(o, g.Tree)
	case errors.Is(err, build.ErrNotFound):
		return g.foreign(Request{Source: source}, unavailable("%s not found in what %s applies", source, controllers.IDOf(g.root.Object)))
	case err != nil:
		return nil, err
	}
	local := source.Kind == "GitRepository" && g.Local != nil && g.Local(text(o, "spec", "url"))
	if local && g.follows(build.GitReferenceOf(o)) {
		return g.artifact(o, g.Tree)
	}
	return g.foreign(Request{Source: source, Object: o, Local: local}, elsewhere(o, local))
}

// elsewhere returns the error for a source whose files are not in the tree.
func elsewhere(o *unstructured.Unstructured, local bool) error {
	source := controllers.IDOf(o.Object)
	switch {
	case local:
		return unavailable("%s follows %s", source, build.GitReferenceOf(o))
	case source.Kind == "GitRepository":
		return &UnavailableError{fmt.Sprintf("%s is another repository: its URL is not a remote of this clone", source), true}
	}
	return &UnavailableError{fmt.Sprintf("the content of %s is not in Git: if it is published from this repository, set its directory with --local-sources %s=PATH", source, hint.Quote(source.String())), true}
}

// foreign returns the files of a source that the tree does not contain. otherwise is the error if Contents has none.
func (g *Graph) foreign(r Request, otherwise error) (Tree, error) {
	if g.Contents == nil {
		return nil, otherwise
	}
	r.Lookup = g.lookup(nil)
	found, err := g.Contents.Content(g.ctx, r)
	var unavailable *UnavailableError
	switch {
	case errors.Is(err, build.ErrNotFound) && !errors.As(err, &unavailable):
		return nil, otherwise
	case err != nil:
		return nil, err
	case found.Artifact:
		return hashed(found.Files, "")
	}
	return g.artifact(r.Object, found.Files)
}

// source returns the object of a source.
func (g *Graph) source(source controllers.ID) (*unstructured.Unstructured, error) {
	if g.ownObject != nil && controllers.IDOf(g.ownObject.Object) == source {
		return g.ownObject, nil
	}
	if g.own[source] {
		return nil, build.ErrNotFound
	}
	return g.Object(source)
}

// isOwn reports whether a source is that of the cluster's directory. If the repository contains no such Kustomization,
// something else installs the source: then it is the one that Kustomizations refer to by the name that is assumed.
func (g *Graph) isOwn(source controllers.ID, err error) bool {
	assumed := build.SourceOf(g.root)
	if g.assumed && !g.own[source] && errors.Is(err, build.ErrNotFound) && source.Name == assumed.Name && source.Namespace == assumed.Namespace {
		g.own[source], g.referred = true, source
	}
	return g.own[source]
}

// follows reports whether a reference is the one that the revision is of.
func (g *Graph) follows(reference build.GitReference) bool {
	if g.ownObject != nil && g.ownObject.GetKind() == "GitRepository" {
		return build.GitReferenceOf(g.ownObject) == reference
	}
	return slices.ContainsFunc(g.Branches, func(branch string) bool { return reference == build.GitReference{Branch: branch} })
}

// folder returns the files of a directory as the artifact of a source.
func (g *Graph) folder(source controllers.ID, folder Folder) (Tree, error) {
	part := build.Part{Tree: g.Tree, From: Clean(folder.Path)}
	if folder.Tree != nil {
		part.Tree = folder.Tree
	}
	ignore := ""
	if o, err := g.source(source); err == nil {
		ignore = text(o, "spec", "ignore")
	}
	return g.selected([]build.Part{part}, ignore, folder.Artifact)
}

// artifact returns the artifact of a source with the files of a tree: of a GitRepository also those of its submodules and
// of spec.include.
func (g *Graph) artifact(o *unstructured.Unstructured, files fs.FS) (Tree, error) {
	if o == nil {
		return g.selected([]build.Part{{Tree: files}}, "", false)
	}
	if submodules, _, _ := unstructured.NestedBool(o.Object, "spec", "recurseSubmodules"); submodules {
		if _, err := fs.Stat(files, ".gitmodules"); err == nil {
			own, ok := files.(Tree)
			if g.Submodules == nil || !ok {
				return nil, unavailable("%s has submodules, which are not in this clone's history", controllers.IDOf(o.Object))
			}
			if files, err = g.Submodules(own); err != nil {
				return nil, unavailable("%s has submodules: %s", controllers.IDOf(o.Object), err)
			}
		}
	}
	included, err := build.Included(o, func(other controllers.ID) (fs.FS, error) { return g.Content(other) })
	if err != nil {
		return nil, err
	}
	parts := append([]build.Part{{Tree: files, Only: build.SparseCheckout(o)}}, included...)
	return g.selected(parts, text(o, "spec", "ignore"), text(o, "spec", "layerSelector", "operation") == "copy")
}

// selected returns the files of parts. An artifact, which is a single part, is not filtered again.
func (g *Graph) selected(parts []build.Part, ignore string, artifact bool) (Tree, error) {
	return g.Memo.selected(parts, ignore, artifact, func() (Tree, error) {
		if artifact {
			return hashed(parts[0].Tree, parts[0].From)
		}
		tree, err := build.Select(g.ctx, parts, ignore)
		if err != nil {
			return nil, err // a typed nil is not nil
		}
		return tree, nil
	})
}

// hashed returns a directory of a tree with hashes of its files.
func hashed(files fs.FS, folder string) (Tree, error) {
	if folder != "" && folder != "." {
		var err error
		if files, err = fs.Sub(files, folder); err != nil {
			return nil, err
		}
	}
	if tree, ok := files.(Tree); ok {
		return tree, nil
	}
	return &hashedTree{files}, nil
}

// hashedTree hashes the content of files when their hash is requested.
type hashedTree struct{ fs.FS }

// Hash implements Tree.
func (t *hashedTree) Hash(name string) (string, error) {
	sum := sha256.New()
	err := fs.WalkDir(t.FS, name, func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := fs.ReadFile(t.FS, file)
		sum.Write(fmt.Appendf(nil, "%q %x\n", strings.TrimPrefix(file, name), sha256.Sum256(content)))
		return err
	})
	return hex.EncodeToString(sum.Sum(nil)), err
}

// generated returns the files of an ExternalArtifact, which an ArtifactGenerator in its namespace produces.
func (g *Graph) generated(source controllers.ID) (Tree, error) {
	var generators []*unstructured.Unstructured
	err := g.each([]string{"ArtifactGenerator"}, func(o *unstructured.Unstructured) bool {
		if generator.Is(o) {
			generators = append(generators, o)
		}
		return false
	})
	if err != nil {
		return nil, err
	}
	tree, err := generator.Find(g.ctx, source, generators, func(source controllers.ID) (fs.FS, error) { return g.Content(source) })
	var inner *UnavailableError
	switch {
	case err == nil:
		return g.Memo.canonical(tree), nil
	case errors.As(err, &inner):
		return nil, &UnavailableError{err.Error(), inner.Elsewhere}
	case errors.Is(err, build.ErrNotFound):
		return nil, unavailable("no ArtifactGenerator in what %s applies produces %s", controllers.IDOf(g.root.Object), source)
	}
	return nil, err
}

func text(o *unstructured.Unstructured, fields ...string) string {
	value, _, _ := unstructured.NestedString(o.Object, fields...)
	return value
}
