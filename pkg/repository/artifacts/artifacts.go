// Package artifacts renders the ExternalArtifacts of an ArtifactGenerator from local copies of its sources, and compares them with
// those on a cluster.
package artifacts

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/fluxkit/flux/internal/git"
	"github.com/fluxkit/flux/internal/git/filetree"
	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/build/generator"
	"github.com/fluxkit/flux/pkg/build/sourcetree"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/repository/desired"
)

// Artifact is an ExternalArtifact that an ArtifactGenerator produces.
type Artifact struct {
	ID    controllers.ID
	Files *filetree.Tree
}

// Of renders the ExternalArtifacts of an ArtifactGenerator, in the order of its spec, from local copies of its sources.
func Of(ctx context.Context, b *desired.Builder, namespace, name string) ([]Artifact, error) {
	work, err := git.Around(".")
	if err != nil {
		return nil, err
	}
	object, err := b.Object(ctx, generator.Kind, "--generator-file", generator.Is, work, namespace, name)
	if err != nil {
		return nil, err
	}
	g, err := generator.New(object)
	if err != nil {
		return nil, err
	}
	contents, err := sourcesOf(b, work)
	if err != nil {
		return nil, err
	}
	produced, err := g.Artifacts(ctx, func(source controllers.ID) (fs.FS, error) { return contents(ctx, source) })
	if err != nil {
		return nil, err
	}
	var all []Artifact
	for _, p := range produced {
		// The API server rejects other names, and the name is used as a directory name.
		if problems := validation.IsDNS1123Subdomain(p.Name); len(problems) > 0 {
			return nil, fmt.Errorf("%s has an artifact with the invalid name %q: %s", controllers.IDOf(object.Object), p.Name, problems[0])
		}
		all = append(all, Artifact{controllers.FluxID(generator.Artifact, namespace, p.Name), p.Files})
	}
	return all, nil
}

// sourcesOf returns the files of sources: from directories, from the work tree, in a dry run from the generators in the
// work tree, and otherwise from the cluster or a registry.
func sourcesOf(b *desired.Builder, work git.Workspace) (build.Sources, error) {
	local, err := b.SourcesWithRemotes(work, nil)
	if err != nil {
		return nil, err
	}
	var contents build.Sources
	generated := func(ctx context.Context, source controllers.ID) (fs.FS, error) {
		tree, err := local(ctx, source)
		if !errors.Is(err, build.ErrNotFound) || source.Kind != generator.Artifact || !b.DryRun {
			return tree, err
		}
		generators, err := generatorsIn(ctx, work, source.Namespace)
		if err != nil {
			return nil, err
		}
		return generator.Find(ctx, source, generators, func(of controllers.ID) (fs.FS, error) { return contents(ctx, of) })
	}
	otherwise := (&desired.Fetcher{Builder: b, Work: work}).WithFetched(generated)
	beneath := map[controllers.ID]bool{}
	contents = func(ctx context.Context, source controllers.ID) (fs.FS, error) {
		if beneath[source] {
			return nil, fmt.Errorf("%s depends on itself", source)
		}
		beneath[source] = true
		defer delete(beneath, source)
		tree, err := otherwise(ctx, source)
		if errors.Is(err, build.ErrNotFound) {
			return nil, desired.FetchError(source, err)
		}
		return tree, err
	}
	return contents, nil
}

// generatorsIn returns the ArtifactGenerators of a namespace in the work tree.
func generatorsIn(ctx context.Context, work git.Workspace, namespace string) ([]*unstructured.Unstructured, error) {
	if !work.Git {
		return nil, nil
	}
	manifests, err := sourcetree.Search(ctx, work.Tree(), []string{generator.Kind}, generator.Is)
	var all []*unstructured.Unstructured
	for _, m := range manifests {
		if m.GetNamespace() == "" {
			m.SetNamespace(namespace)
		}
		all = append(all, m.Unstructured)
	}
	return all, err
}
