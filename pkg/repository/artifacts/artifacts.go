// Package artifacts renders the ExternalArtifacts of an ArtifactGenerator from a work tree, directories and what a cluster has.
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
	sources := func(source controllers.ID) (fs.FS, error) { return contents(ctx, source) }
	names, err := g.Names(sources)
	if err != nil {
		return nil, err
	}
	var all []Artifact
	for _, artifact := range names {
		if problems := validation.IsDNS1123Subdomain(artifact); len(problems) > 0 { // the API server refuses it, and it becomes a directory
			return nil, fmt.Errorf("%s has an artifact with the invalid name %q: %s", controllers.IDOf(object.Object), artifact, problems[0])
		}
		tree, err := g.Artifact(ctx, artifact, sources)
		if err != nil {
			return nil, err
		}
		all = append(all, Artifact{controllers.FluxID(generator.Artifact, object.GetNamespace(), artifact), tree})
	}
	return all, nil
}

// sourcesOf returns the files of the sources of ArtifactGenerators: directories, the work tree, the artifacts of other
// generators in it, and what the cluster or a registry has.
func sourcesOf(b *desired.Builder, work git.Workspace) (build.Sources, error) {
	fetcher := &desired.Fetcher{Builder: b, Work: work}
	local, err := b.SourcesWithRemotes(work, nil)
	if err != nil {
		return nil, err
	}
	stored := fetcher.WithFetched(local)
	var contents build.Sources
	beneath := map[controllers.ID]bool{}
	contents = func(ctx context.Context, source controllers.ID) (fs.FS, error) {
		if source.Kind != generator.Artifact || !b.DryRun {
			return found(source)(stored(ctx, source))
		}
		if beneath[source] {
			return nil, fmt.Errorf("%s is produced from itself", source)
		}
		beneath[source] = true
		defer delete(beneath, source)
		generators, err := generatorsIn(ctx, work, source.Namespace)
		if err != nil {
			return nil, err
		}
		tree, err := generator.Find(ctx, source, generators, func(of controllers.ID) (fs.FS, error) { return contents(ctx, of) })
		return found(source)(tree, err)
	}
	return contents, nil
}

// found names the source in the error that it was not found.
func found(source controllers.ID) func(fs.FS, error) (fs.FS, error) {
	return func(tree fs.FS, err error) (fs.FS, error) {
		if errors.Is(err, build.ErrNotFound) {
			return nil, desired.FetchError(source, err)
		}
		return tree, err
	}
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
