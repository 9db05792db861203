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
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/repository"
)

// LocalSources returns the sources with a local directory: those of
// Options.Sources, and the source of ks in the work tree.
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
// reference as the source of ks.
func (b *Builder) SourcesWithRemotes(work git.Workspace, ks *unstructured.Unstructured) (build.Sources, error) {
	local, err := b.LocalSources(work, ks)
	if err != nil {
		return nil, err
	}
	return build.Once(func(ctx context.Context, source controllers.ID) (fs.FS, error) {
		tree, err := local(ctx, source)
		if errors.Is(err, build.ErrNotFound) {
			return b.treeByAddress(ctx, work, source, ks)
		}
		return tree, err
	}), nil
}

// treeByAddress returns the files of the work tree if it is a clone of the
// source.
func (b *Builder) treeByAddress(ctx context.Context, work git.Workspace, source controllers.ID, ks *unstructured.Unstructured) (fs.FS, error) {
	if !work.Git || source.Kind != controllers.GitRepository {
		return nil, build.ErrNotFound
	}
	identity := repository.Identity{Remotes: work.Remotes()}
	if len(identity.Remotes) == 0 {
		return nil, build.ErrNotFound
	}
	o, err := b.findSource(ctx, work, source)
	if err != nil {
		return nil, err
	}
	if !identity.Local(Text(o, "spec", "url")) {
		return nil, build.ErrNotFound
	}
	if ks != nil {
		if own, err := b.findSource(ctx, work, build.SourceOf(ks)); err == nil {
			identity.Own = own
		}
	}
	if !identity.Is(o) {
		return nil, build.ErrNotFound // another branch or tag of the same repository
	}
	tree, _, err := b.Artifact(ctx, work, source)
	return tree, err
}
