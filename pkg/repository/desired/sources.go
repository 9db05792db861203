package desired

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/internal/git"
	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/build/sourcetree"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/repository"
)

// LocalSources returns the sources with a local directory: Options.Sources, and the source of ks in
// the work tree.
func (b *Builder) LocalSources(work git.Workspace, ks *unstructured.Unstructured) (build.Sources, error) {
	folders := map[controllers.ID]string{}
	for source, folder := range b.Sources {
		reference, err := ParseSource(source)
		if err != nil {
			return nil, err
		}
		if err := CheckFolder(folder); err != nil {
			return nil, err
		}
		absolute, err := filepath.Abs(folder)
		if err != nil {
			return nil, fmt.Errorf("finding %s: %w", folder, err)
		}
		folders[reference] = absolute
	}
	return build.Once(func(ctx context.Context, source controllers.ID) (fs.FS, error) {
		if folder, ok := folders[source]; ok {
			return b.ArtifactOf(ctx, work, source, folder)
		}
		if ks != nil && source == build.SourceOf(ks) {
			tree, _, err := b.Artifact(ctx, work.ForSource(b.Path, Text(ks, "spec", "path")), source)
			return tree, err
		}
		return nil, build.ErrNotFound
	}), nil
}

// ParseSource parses a source of the form KIND/NAMESPACE/NAME.
func ParseSource(text string) (controllers.ID, error) {
	parts := strings.Split(text, "/")
	if len(parts) != 3 {
		return controllers.ID{}, hint.Errorf("use the form Kind/namespace/name=path", "invalid source %q", text)
	}
	return controllers.FluxID(parts[0], parts[1], parts[2]), nil
}

// SourcesWithRemotes returns the local sources and uses the work tree for every
// GitRepository whose URL is one of its remotes and that follows the same
// reference as the source of ks. With Options.DryRun, other references are read from the clone.
func (b *Builder) SourcesWithRemotes(work git.Workspace, ks *unstructured.Unstructured) (build.Sources, error) {
	local, err := b.LocalSources(work, ks)
	if err != nil {
		return nil, err
	}
	clone := b.cloneOf(work)
	return build.Once(func(ctx context.Context, source controllers.ID) (fs.FS, error) {
		tree, err := local(ctx, source)
		if errors.Is(err, build.ErrNotFound) {
			return b.treeByAddress(ctx, work, source, ks, clone)
		}
		return tree, err
	}), nil
}

// cloneOf returns a function that opens the clone of a work tree, or nil if sources do not come from the work tree.
func (b *Builder) cloneOf(work git.Workspace) func() (Clone, error) {
	if !b.DryRun || !work.Git || b.Clone == nil {
		return nil
	}
	return b.Clone(work.Root)
}

// treeByAddress returns the files of the work tree if it is a clone of the source. It reads other
// references from clone, which may be nil.
func (b *Builder) treeByAddress(ctx context.Context, work git.Workspace, source controllers.ID, ks *unstructured.Unstructured, clone func() (Clone, error)) (fs.FS, error) {
	if !work.Git || source.Kind != controllers.GitRepository || len(work.Remotes()) == 0 {
		return nil, build.ErrNotFound
	}
	o, err := b.findSource(ctx, work, source)
	if err != nil {
		return nil, err
	}
	found, err := b.contentOf(ctx, work, o, ks, clone)
	if err != nil || found.Artifact {
		return found.Files, err
	}
	return sourcetree.Select(ctx, []sourcetree.Part{{Tree: found.Files}}, sourcetree.IgnoreOf(o))
}

// contentOf returns the files of a GitRepository that the work tree or its clone contains.
func (b *Builder) contentOf(ctx context.Context, work git.Workspace, o, ks *unstructured.Unstructured, clone func() (Clone, error)) (repository.Content, error) {
	identity := repository.Identity{Remotes: work.Remotes()}
	if !identity.Local(Text(o, "spec", "url")) {
		return repository.Content{}, build.ErrNotFound
	}
	if ks != nil {
		if own, err := b.findSource(ctx, work, build.SourceOf(ks)); err == nil {
			identity.Own = own
		}
	}
	source := controllers.IDOf(o.Object)
	switch {
	case identity.Is(o):
		tree, _, err := b.Artifact(ctx, work, source)
		return repository.Content{Files: tree, Artifact: true}, err
	case clone == nil:
		return repository.Content{}, build.ErrNotFound // another branch or tag of the same repository
	}
	opened, err := clone()
	if err != nil {
		return repository.Content{}, err
	}
	found, err := opened.Content(ctx, repository.Request{Source: source, Object: o, Local: true})
	if err != nil {
		err = &referenceError{err}
	}
	return found, err
}

// referenceError is returned for a reference that the clone does not contain.
type referenceError struct{ err error }

func (e *referenceError) Error() string { return e.err.Error() }

// Unwrap returns the underlying error.
func (e *referenceError) Unwrap() error { return e.err }

// inClone contains the sources of a plan that the clone of its work tree contains.
type inClone struct {
	clone   func() (Clone, error)
	builder *Builder
	plan    *Plan
	local   build.Sources
}

// Content implements repository.Contents. It prefers the object in the request to other manifests of the source in the
// work tree, which may belong to another cluster.
func (c *inClone) Content(ctx context.Context, r repository.Request) (repository.Content, error) {
	tree, err := c.local(ctx, r.Source)
	if errors.Is(err, build.ErrNotFound) && r.Object != nil && r.Source.Kind == controllers.GitRepository {
		found, err := c.builder.contentOf(ctx, c.plan.Work, r.Object, c.plan.Ks, c.clone)
		if err != build.ErrNotFound { //nolint:errorlint // other errors contain the reason
			return found, err
		}
	}
	if errors.Is(err, build.ErrNotFound) {
		return stored(c.plan.Sources).Content(ctx, r)
	}
	return repository.Content{Files: tree, Artifact: true}, err
}
