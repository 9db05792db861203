package desired

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/internal/cli/app"
	"github.com/fluxkit/flux/internal/workspace"
	"github.com/fluxkit/flux/pkg/build"
)

// ArtifactOf returns the files of a directory that source-controller packs into
// the artifact of a source: those that neither .sourceignore files nor
// spec.ignore of the source nor the defaults exclude.
func (o *BuildOptions) ArtifactOf(ctx context.Context, a *app.App, work workspace.WorkTree, source build.Reference, folder string) (fs.FS, error) {
	ignore, err := o.ignoreOf(ctx, a, work, source)
	if err != nil {
		a.UI.Warning("spec.ignore of %s is not known: %s", source, err)
	}
	tree, err := build.Select(ctx, []build.Part{{Tree: workspace.Folder(folder)}}, ignore)
	if err != nil {
		return nil, err
	}
	return tree, nil
}

// Artifact returns the files of the work tree as in the artifact of a source.
// Outside of Git, it returns all files, because the directory may be any part of
// the source; build.Options.Filter then excludes files of the built directory.
func (o *BuildOptions) Artifact(ctx context.Context, a *app.App, work workspace.WorkTree, source build.Reference) (tree fs.FS, filter bool, err error) {
	if !work.Git {
		return work.Tree(), true, nil
	}
	tree, err = o.ArtifactOf(ctx, a, work, source, work.Root)
	return tree, false, err
}

// ignoreOf returns spec.ignore of a source: of its manifest in the work tree, or
// of the live object if the work tree has none or several that differ.
func (o *BuildOptions) ignoreOf(ctx context.Context, a *app.App, work workspace.WorkTree, source build.Reference) (string, error) {
	if source.Name == "" {
		return "", nil
	}
	found, err := manifestsOf(ctx, work, source)
	if err != nil {
		return "", err
	}
	var best build.Manifest
	same := true
	for i, m := range found {
		same = same && Text(m.Unstructured, "spec", "ignore") == Text(found[0].Unstructured, "spec", "ignore")
		if i == 0 || o.nearness(work, m.File) > o.nearness(work, best.File) {
			best = m
		}
	}
	if len(found) > 0 && (same || o.DryRun) {
		return Text(best.Unstructured, "spec", "ignore"), nil
	}
	if o.DryRun || o.File != "" {
		return "", nil
	}
	object, err := findSource(ctx, a, o, work, source)
	if errors.Is(err, build.ErrNotFound) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	return Text(object, "spec", "ignore"), nil
}

// nearness returns how many directories the path of a file has in common with
// the directory to build.
func (o *BuildOptions) nearness(work workspace.WorkTree, file string) int {
	around := o.Path
	if o.File != "" && o.File != "-" {
		around = filepath.Dir(o.File)
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
func manifestsOf(ctx context.Context, work workspace.WorkTree, source build.Reference) ([]build.Manifest, error) {
	if !work.Git {
		return nil, nil
	}
	return build.Search(ctx, work.Tree(), []string{source.Kind, source.Name}, func(o *unstructured.Unstructured) bool {
		here := o.GetNamespace() == source.Namespace || o.GetNamespace() == ""
		return o.GetKind() == source.Kind && o.GetName() == source.Name && here
	})
}
