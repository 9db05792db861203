// Package repository follows what a repository deploys to a cluster: from the Kustomization of the cluster's directory to
// the Kustomizations, HelmReleases, sources and generators that it applies, directly and indirectly.
//
// A Graph is lazy. It renders a Kustomization when its objects are used, or when it may contain an object that is searched
// for. Files of other repositories and registries come from Contents, the only place with I/O.
package repository

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/build/charts"
	"github.com/fluxkit/flux/pkg/build/sourcetree"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/repository/inputs"
)

// Tree is the content of a repository at one revision.
type Tree = inputs.Tree

// Options configure a graph.
type Options struct {
	// Path is the directory from which the cluster is bootstrapped, and Namespace the namespace of Flux.
	Path, Namespace string
	// Root is the Kustomization to start with. If it is nil, the graph starts with the Kustomization of Path.
	Root *unstructured.Unstructured
	// Remotes and Branches are as in Identity.
	Remotes, Branches []string
	// Folders maps sources to the directories that replace their content.
	Folders map[controllers.ID]Folder
	// Contents returns the files of sources that are not in the tree. A nil Contents returns none.
	Contents Contents
	// Submodules returns a tree of the repository with the files of its submodules. It may be nil.
	Submodules func(Tree) (Tree, error)
	// Optional calls read, which may find that files are missing in a partial clone. It may be nil.
	Optional func(read func() error) error
	// Find returns objects that are not in the repository, for example from the cluster. It may be nil.
	Find func(ctx context.Context, object controllers.ID) (*unstructured.Unstructured, error)

	// Inputs replaces the exported inputs of ResourceSetInputProviders.
	Inputs map[controllers.ID][]map[string]any
	// Provider returns a ResourceSetInputProvider of a cluster, with the inputs in its status, or build.ErrNotFound. It may be
	// nil.
	Provider func(ctx context.Context, provider controllers.ID) (*unstructured.Unstructured, error)
	// Build configures the builds of Kustomizations. Its Path, Ignore and Filter apply to the root only, and its Lookup
	// is used for ConfigMaps and Secrets that the repository does not contain.
	Build build.Options
	// Charts configures the rendering of HelmReleases, except for the lookup of objects and files. Without a Renderer,
	// HelmReleases are not rendered.
	Charts charts.Options
	// Missing is called for a ConfigMap or Secret that an owner refers to and that is not found. The owner is rendered
	// without it if Missing returns true. A nil Missing returns false.
	Missing func(owner *unstructured.Unstructured, object controllers.ID, err error) bool
	// Rendered is called for each rendering. It may be nil.
	Rendered func(*build.Result)

	// Memo shares renderings between graphs. It may be nil.
	Memo *Memo
	// Reviewed is the graph of a revision whose registries are trusted: charts are fetched from the addresses in it
	// and from public addresses. If it is nil, all addresses are trusted, or none if Untrusted is set.
	Reviewed  *Graph
	Untrusted bool
}

// Graph contains the objects that a cluster applies at one revision of a repository. It must not be used concurrently.
type Graph struct {
	Options
	Revision

	ctx context.Context // of everything that the graph renders
	err error
	// root is the Kustomization of the cluster's directory, or nil if there is no such directory. assumed is set if the
	// repository does not contain it. instance is the FluxInstance that creates it, or nil, and synced its source.
	root             *unstructured.Unstructured
	assumed          bool
	instance, synced *unstructured.Unstructured
	// written holds the objects in files that sync the cluster's directory, if searched is set.
	written  []sourcetree.Manifest
	searched bool
	// toInstance lists the owners on the path from the root to the one that applies the FluxInstance, if the root was assumed.
	toInstance []controllers.ID
	artifacts  artifacts
	found      index
	// templates caches the results of templatesOf, because many HelmReleases use the same chart.
	templates map[chartAt]templates
	// rendered is the number of objects of all renderings.
	rendered int
	// cycles counts the searches that depended on a rendering in progress. Results that depend on such a search are
	// rendered again.
	cycles int
}

const (
	// maxAttempts is the maximum number of times that a Kustomization or a source is rendered: cycles could be endless.
	maxAttempts = 3
	// maxObjects bounds the objects of all Kustomizations of a revision, because Kustomizations that apply each
	// other render every object many times.
	maxObjects = 100_000
)

// Open returns the graph of a revision. It has no root if there is no cluster directory.
func Open(ctx context.Context, at Revision, o Options) (*Graph, error) {
	g, err := open(ctx, at, o)
	if err == nil {
		err = findInstance(g, nil)
	}
	if err == nil {
		g.begin()
	}
	return g, err
}

func open(ctx context.Context, at Revision, o Options) (*Graph, error) {
	o.Path = sourcetree.Clean(o.Path)
	g := &Graph{Options: o, Revision: at, ctx: ctx, root: o.Root, templates: map[chartAt]templates{}}
	g.artifacts = artifacts{graph: g, own: map[controllers.ID]bool{}, foreign: map[foreignKey]foreignContent{}}
	g.reset()
	if g.root == nil {
		if err := findRoot(g); g.root == nil || err != nil {
			return g, err
		}
	}
	g.artifacts.own[build.SourceOf(g.root)] = true
	g.found.add(g.root)
	return g, nil
}

// Root returns the Kustomization of the cluster's directory, or nil if there is no such directory.
func (g *Graph) Root() *unstructured.Unstructured { return g.root }

// RootAssumed reports whether the repository does not contain the Kustomization of the cluster's directory.
func RootAssumed(g *Graph) bool { return g.assumed }
