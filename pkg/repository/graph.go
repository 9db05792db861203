// Package repository follows what a repository deploys to a cluster: from the Kustomization of the cluster's directory to
// the Kustomizations, HelmReleases, sources and generators that it and they apply, to any depth.
//
// A Graph is lazy. It renders a Kustomization when its objects are used, or when it may contain an object that is searched
// for. Files of other repositories and registries come from Contents, the only place with I/O.
package repository

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/internal/budget"
	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/controllers"
)

// Tree is the content of a repository at one revision.
type Tree interface {
	fs.FS
	// Hash returns the same value for files and directories with the same content, and fs.ErrNotExist for a missing name.
	Hash(name string) (string, error)
}

// Options configure a graph.
type Options struct {
	// Path is the directory from which the cluster is bootstrapped, and Namespace the namespace of Flux.
	Path, Namespace string
	// Root is the Kustomization to begin with. If it is nil, the graph begins with that of Path.
	Root *unstructured.Unstructured
	// Remotes and Branches are as in Identity.
	Remotes, Branches []string
	// Folders contain the files of sources, in place of what their objects select.
	Folders map[controllers.ID]Folder
	// Contents returns the files of sources that are not in the tree. Nil returns none.
	Contents Contents
	// Submodules returns a tree of the repository with the files of its submodules. It may be nil.
	Submodules func(Tree) (Tree, error)
	// Find returns objects that the repository does not contain, such as those of the cluster. It may be nil.
	Find func(ctx context.Context, object controllers.ID) (*unstructured.Unstructured, error)

	// Build configures the builds of Kustomizations. Its Path, Ignore and Filter apply to the root only, and its Lookup
	// is used for ConfigMaps and Secrets that the repository does not contain.
	Build build.Options
	// Charts configures the rendering of HelmReleases, except for how objects and files are found. Without a Renderer,
	// HelmReleases are not rendered.
	Charts build.HelmOptions
	// Missing is called for a ConfigMap or Secret that an owner refers to and that is not found. The owner is rendered
	// without it if Missing returns true. Nil returns false.
	Missing func(owner *unstructured.Unstructured, object controllers.ID, err error) bool
	// Rendered is called for each rendering. It may be nil.
	Rendered func(*build.Result)

	// Memo contains what graphs have in common. It may be nil.
	Memo *Memo
	// Reviewed is the graph of a revision whose registries are trusted: charts are fetched from the addresses that it
	// contains and from public ones. Nil trusts all addresses, unless Untrusted is set: then it trusts none.
	Reviewed  *Graph
	Untrusted bool
}

// Graph contains what a cluster applies at one revision of a repository. It must not be used concurrently.
type Graph struct {
	Options
	Revision

	ctx context.Context // of everything that the graph renders
	err error
	// root is the Kustomization of the cluster's directory, or nil if there is no such directory. assumed is set if the
	// repository does not contain it.
	root      *unstructured.Unstructured
	assumed   bool
	artifacts artifacts
	found     index
	// rendered is the number of objects of all renderings.
	rendered int
	// cycles counts the searches that needed what was being rendered at the time. Results that depend on such a search
	// are rendered again.
	cycles int
}

// index contains what a graph has found.
type index struct {
	// nodes are the known Kustomizations, parents first, and byID contains them by their ID.
	nodes []*node
	byID  map[controllers.ID]*node
	// objects are the objects of all Kustomizations that were rendered, and the Flux objects of HelmReleases.
	objects map[controllers.ID]applied
	// absent are the objects that were searched and not found.
	absent map[controllers.ID]bool
	// lacking are the ConfigMaps and Secrets without which owners were rendered.
	lacking map[controllers.ID][]Lack
}

func newIndex() index {
	return index{byID: map[controllers.ID]*node{}, objects: map[controllers.ID]applied{}, absent: map[controllers.ID]bool{}, lacking: map[controllers.ID][]Lack{}}
}

// Rendering contains the objects that a Kustomization or HelmRelease applies.
type Rendering struct {
	// Owner is the Kustomization or HelmRelease.
	Owner *unstructured.Unstructured
	Build *build.Result
	// Namespace is the namespace of objects without one, as in charts.
	Namespace string
}

// ID returns the identity of an object of the rendering.
func (r *Rendering) ID(o build.Object) controllers.ID {
	id := controllers.IDOf(o.Unstructured.Object)
	if id.Namespace == "" {
		id.Namespace = r.Namespace
	}
	return id
}

// Lack is a ConfigMap or Secret that was not found, or that cannot be read.
type Lack struct {
	Object controllers.ID
	Err    error
}

// applied is an object and the node that applies it.
type applied struct {
	build.Object
	by *node
}

// node is a Kustomization, or a HelmRelease that applies Flux objects.
type node struct {
	owner *unstructured.Unstructured
	state state
	// attempts is the number of builds.
	attempts int
	built    *Rendering
	err      error
	// leaf is set if nothing that the Kustomization applies has to be followed. It is known once inputs is set.
	leaf   bool
	inputs *inputs
}

type state int

const (
	pending state = iota
	// building is the state during a build, which may search objects itself.
	building
	done
)

const (
	// maxAttempts is how often a Kustomization or a source is rendered at most: cycles could make it endless.
	maxAttempts = 3
	// maxObjects bounds the objects of all Kustomizations of a revision: those that apply each other render every
	// object many times.
	maxObjects = 100_000
)

// Open returns the graph of a revision. Without a directory of the cluster, it has no root.
func Open(ctx context.Context, at Revision, o Options) (*Graph, error) {
	g, err := open(ctx, at, o)
	if err == nil {
		g.begin()
	}
	return g, err
}

func open(ctx context.Context, at Revision, o Options) (*Graph, error) {
	o.Path = Clean(o.Path)
	g := &Graph{Options: o, Revision: at, ctx: ctx, root: o.Root}
	g.artifacts = artifacts{graph: g, own: map[controllers.ID]bool{}, foreign: map[foreignKey]foreignContent{}}
	g.reset()
	if g.root == nil {
		var err error
		if g.root, g.assumed, err = rootOf(ctx, at.Tree, o.Path, o.Namespace); g.root == nil || err != nil {
			return g, err
		}
	}
	g.artifacts.own[build.SourceOf(g.root)] = true
	g.found.add(g.root)
	return g, nil
}

// Root returns the Kustomization of the cluster's directory, or nil if there is no such directory.
func (g *Graph) Root() *unstructured.Unstructured { return g.root }

// Err returns why the graph cannot be followed any further, or nil: a limit is exceeded, or the context is done.
func (g *Graph) Err() error {
	if g.err != nil {
		return g.err
	}
	return context.Cause(g.ctx)
}

// lack records that an owner is rendered without a ConfigMap or Secret.
func (i *index) lack(owner *unstructured.Unstructured, object controllers.ID, err error) {
	id := controllers.IDOf(owner.Object)
	if !slices.ContainsFunc(i.lacking[id], func(known Lack) bool { return known.Object == object }) {
		i.lacking[id] = append(i.lacking[id], Lack{object, err})
	}
}

// Lacking returns the ConfigMaps and Secrets without which an owner was rendered.
func (g *Graph) Lacking(owner controllers.ID) []Lack { return g.found.lacking[owner] }

// Clean returns the path of a directory in a repository, "." for its root.
func Clean(folder string) string {
	if folder = strings.TrimPrefix(path.Clean("/"+folder), "/"); folder == "" {
		return "."
	}
	return folder
}

// isRoot reports whether a Kustomization is that of the cluster's directory.
func isRoot(g *Graph, ks *unstructured.Unstructured) bool {
	return g.root != nil && controllers.IDOf(ks.Object) == controllers.IDOf(g.root.Object)
}

// folderOf returns the directory that a Kustomization builds.
func folderOf(g *Graph, ks *unstructured.Unstructured) string {
	if isRoot(g, ks) && g.Build.Path != "" {
		return Clean(g.Build.Path)
	}
	return pathOf(ks)
}

// add adds a Kustomization unless it is known.
func (i *index) add(ks *unstructured.Unstructured) *node {
	id := controllers.IDOf(ks.Object)
	if known := i.byID[id]; known != nil {
		return known
	}
	n := &node{owner: ks}
	i.byID[id] = n
	i.nodes = append(i.nodes, n)
	return n
}

// take adds the objects of a node. The first node that applies an object is its owner.
func (i *index) take(n *node) {
	for _, o := range n.built.Build.Objects {
		id := controllers.IDOf(o.Unstructured.Object)
		if known := i.objects[id]; known.by == nil || known.by == n {
			i.objects[id] = applied{o, n}
		}
		if build.IsKustomization(o.Unstructured) {
			i.add(o.Unstructured)
		}
	}
}

// count counts the objects of a rendering. It ends the graph if there are too many.
func (g *Graph) count(owner *unstructured.Unstructured, result *build.Result) error {
	if g.rendered += len(result.Objects); g.rendered > maxObjects {
		g.err = &budget.ExceededError{Name: controllers.IDOf(owner.Object).String(), Fact: fmt.Sprintf("the Kustomizations of one revision have more than %d objects", maxObjects)}
	}
	return g.err
}

// take adds the objects of a node to the graph.
func (g *Graph) take(n *node) {
	g.found.take(n)
	if g.Rendered != nil {
		g.Rendered(n.built.Build)
	}
}

// Kustomize renders a Kustomization and adds its objects to the graph.
func (g *Graph) Kustomize(ks *unstructured.Unstructured) (*Rendering, error) {
	return g.build(g.found.add(ks))
}

// Adopt takes over the rendering of a Kustomization with the same inputs at another revision.
func (g *Graph) Adopt(ks *unstructured.Unstructured, built *Rendering) {
	if n := g.found.add(ks); n.state == pending {
		n.state, n.built = done, built
		g.take(n)
	}
}

func (g *Graph) build(n *node) (*Rendering, error) {
	switch {
	case n.state == building:
		g.cycles++
		return nil, unavailable("%s depends on what it applies itself", controllers.IDOf(n.owner.Object))
	case n.state == done:
		return n.built, n.err
	case g.Err() != nil:
		return nil, g.Err()
	}
	n.state, n.attempts = building, n.attempts+1
	before := g.cycles
	result, err := g.kustomize(n.owner, &reader{graph: g, lookup: g.lookup(n)})
	n.state, n.err = done, err
	if g.cycles != before && n.attempts < maxAttempts {
		n.state = pending
	}
	if err != nil {
		return nil, err
	}
	if err := g.count(n.owner, result); err != nil {
		return nil, err
	}
	n.built = &Rendering{Owner: n.owner, Build: result}
	g.take(n)
	return n.built, nil
}

// kustomize renders the objects of a Kustomization. Without a lookup, variables are not substituted.
func (g *Graph) kustomize(ks *unstructured.Unstructured, reads *reader) (*build.Result, error) {
	id, source := controllers.IDOf(ks.Object), build.SourceOf(ks)
	tree, err := g.Content(source)
	options := g.Build
	options.Twin = g.found.objects[id].Twin
	if err != nil && options.Twin != nil {
		return nil, build.Hide(err)
	}
	if err != nil {
		return nil, &SourceError{Owner: id, Source: source, err: err}
	}
	options.Missing, options.Lookup = reads.missing(ks), nil
	if reads.lookup != nil {
		options.Lookup = reads
	}
	if !isRoot(g, ks) {
		options.Path, options.Ignore, options.Filter = "", nil, false
	}
	rendered, err := g.Memo.render(reads, ks, options.Twin, g.Memo.keyOf(tree, options), func() (*Rendering, error) {
		result, err := build.Kustomization(g.ctx, tree, ks, options)
		return &Rendering{Owner: ks, Build: result}, err
	})
	var folder *build.PathError
	if errors.As(err, &folder) {
		err = fmt.Errorf("building %s: %w", id, err)
	}
	if err != nil {
		return nil, err
	}
	return rendered.Build, nil
}

// lookup returns the ConfigMaps and Secrets that the cluster applies, for the build of a Kustomization. One that the
// Kustomization applies itself has the values of its last reconciliation: those before substitution.
func (g *Graph) lookup(n *node) build.Lookup {
	var own build.Lookup
	return build.LookupFunc(func(ctx context.Context, object controllers.ID) (map[string][]byte, error) {
		data, err := g.Data(ctx, object)
		if n == nil || n.state != building || !errors.Is(err, build.ErrNotFound) {
			return data, err
		}
		if own == nil {
			own = build.FromObjects(nil)
			plain := n.owner.DeepCopy()
			unstructured.RemoveNestedField(plain.Object, "spec", "postBuild")
			if result, err := g.kustomize(plain, &reader{graph: g}); err == nil {
				own = result.Lookup(build.DataOf)
			}
		}
		return own.Data(ctx, object)
	})
}

// Data returns the data of a ConfigMap or Secret.
func (g *Graph) Data(ctx context.Context, object controllers.ID) (map[string][]byte, error) {
	_, err := g.Object(object)
	switch {
	case err == nil:
		return g.found.objects[object].Data(ctx)
	case errors.Is(err, build.ErrNotFound) && g.Build.Lookup != nil:
		return g.Build.Lookup.Data(ctx, object)
	}
	return nil, err
}
