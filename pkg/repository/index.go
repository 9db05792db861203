package repository

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/build/operator"
	"github.com/fluxkit/flux/pkg/build/sourcetree"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/repository/inputs"
	"github.com/fluxkit/flux/pkg/repository/layout"
)

// index contains the objects that a graph has found.
type index struct {
	// nodes holds the known Kustomizations, ResourceSets and FluxInstances, parents first, and byID the same nodes by ID.
	nodes []*node
	byID  map[controllers.ID]*node
	// objects holds the objects of all rendered Kustomizations, and the Flux objects of HelmReleases.
	objects map[controllers.ID]applied
	// absent lists the objects that were searched for and not found.
	absent map[controllers.ID]bool
	// lacking lists the ConfigMaps and Secrets that were missing when owners were rendered.
	lacking map[controllers.ID][]Lack
}

func newIndex() index {
	return index{byID: map[controllers.ID]*node{}, objects: map[controllers.ID]applied{}, absent: map[controllers.ID]bool{}, lacking: map[controllers.ID][]Lack{}}
}

// Rendering contains the objects that an owner applies.
type Rendering struct {
	// Owner is the Kustomization, HelmRelease, ResourceSet or FluxInstance.
	Owner *unstructured.Unstructured
	Build *build.Result
	// Hooks holds the objects that Helm creates only while it installs or upgrades a HelmRelease.
	Hooks build.Result
	// Unserved lists the API versions that the templates of a HelmRelease check for, and that the capabilities do not contain.
	Unserved []string
	// Namespace is the default namespace of the objects, as in charts.
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

// node is a Kustomization, a ResourceSet, a FluxInstance, or a HelmRelease that applies Flux objects.
type node struct {
	owner *unstructured.Unstructured
	state state
	// attempts is the number of builds, and depth the number of owners on the path from the root.
	attempts, depth int
	built           *Rendering
	err             error
	inputs          *inputs.Files
}

type state int

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

// Lacking returns the ConfigMaps and Secrets that were missing when an owner was rendered.
func (g *Graph) Lacking(owner controllers.ID) []Lack { return g.found.lacking[owner] }

// isRoot reports whether a Kustomization applies the cluster's directory.
func isRoot(g *Graph, ks *unstructured.Unstructured) bool {
	return g.root != nil && controllers.IDOf(ks.Object) == controllers.IDOf(g.root.Object)
}

// folderOf returns the directory that a Kustomization builds.
func folderOf(g *Graph, ks *unstructured.Unstructured) string {
	if isRoot(g, ks) && g.Build.Path != "" {
		return sourcetree.Clean(g.Build.Path)
	}
	return layout.Path(ks)
}

// add adds an owner unless it was already added.
func (i *index) add(owner *unstructured.Unstructured) *node {
	id := controllers.IDOf(owner.Object)
	if known := i.byID[id]; known != nil {
		return known
	}
	n := &node{owner: owner}
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
		if build.IsKustomization(o.Unstructured) || operator.Renders(o.Unstructured) {
			if i.byID[id] == nil {
				i.add(o.Unstructured).depth = n.depth + 1
			}
		}
	}
}

const (
	pending state = iota
	// building is the state during a build, which may itself search for objects.
	building
	done
)
