package desired

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/internal/git"
	"github.com/fluxkit/flux/internal/git/filetree"
	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/build/sourcetree"
	"github.com/fluxkit/flux/pkg/controllers"
)

// ArtifactOf returns the files of a directory that source-controller packs into the artifact of a
// source. It omits files that are excluded by .sourceignore files, spec.ignore of the source or the
// defaults.
func (b *Builder) ArtifactOf(ctx context.Context, work git.Workspace, source controllers.ID, folder string) (fs.FS, error) {
	ignore, err := b.ignoreOf(ctx, work, source)
	if err != nil {
		b.Warn("spec.ignore of %s is unknown: %s", source, err)
	}
	tree, err := sourcetree.Select(ctx, []sourcetree.Part{{Tree: filetree.Directory(folder)}}, sourcetree.Ignore{Patterns: ignore, Source: source.String()})
	if err != nil {
		return nil, err
	}
	return tree, nil
}

// Artifact returns the files of the work tree as in the artifact of a source.
// Outside of Git, it returns all files, because the directory may be any part of
// the source; build.Options.Filter then excludes files of the built directory.
func (b *Builder) Artifact(ctx context.Context, work git.Workspace, source controllers.ID) (tree fs.FS, filter bool, err error) {
	if !work.Git {
		return work.Tree(), true, nil
	}
	tree, err = b.ArtifactOf(ctx, work, source, work.Root)
	return tree, false, err
}

// ignoreOf returns spec.ignore of a source, from its manifest in the work tree, or from the live
// object if the work tree contains no manifest or several different ones.
func (b *Builder) ignoreOf(ctx context.Context, work git.Workspace, source controllers.ID) (string, error) {
	if source.Name == "" {
		return "", nil
	}
	found, err := manifestsOf(ctx, work, source)
	if err != nil {
		return "", err
	}
	var best sourcetree.Manifest
	same := true
	for i, m := range found {
		same = same && Text(m.Unstructured, "spec", "ignore") == Text(found[0].Unstructured, "spec", "ignore")
		if i == 0 || b.nearness(work, m.File) > b.nearness(work, best.File) {
			best = m
		}
	}
	if len(found) > 0 && (same || b.DryRun) {
		return Text(best.Unstructured, "spec", "ignore"), nil
	}
	if b.DryRun || b.File != "" {
		return "", nil
	}
	object, err := b.findSource(ctx, work, source)
	if errors.Is(err, build.ErrNotFound) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	return Text(object, "spec", "ignore"), nil
}

// nearness returns the number of leading directories that a file and the directory to build have in
// common.
func (b *Builder) nearness(work git.Workspace, file string) int {
	around := b.Path
	if b.File != "" && b.File != "-" {
		around = filepath.Dir(b.File)
	}
	folder, err := work.Inside(around)
	if err != nil {
		return 0
	}
	common := 0
	parts := strings.Split(file, "/")
	for i, part := range strings.Split(folder, "/") {
		if i >= len(parts) || parts[i] != part {
			break
		}
		common++
	}
	return common
}

// manifestsOf returns the manifests of a source in the work tree.
func manifestsOf(ctx context.Context, work git.Workspace, source controllers.ID) ([]sourcetree.Manifest, error) {
	if !work.Git {
		return nil, nil
	}
	return sourcetree.Search(ctx, work.Tree(), []string{source.Kind, source.Name}, func(o *unstructured.Unstructured) bool {
		here := o.GetNamespace() == source.Namespace || o.GetNamespace() == ""
		return o.GetKind() == source.Kind && o.GetName() == source.Name && here
	})
}
