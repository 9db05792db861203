package repository

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/build/operator"
	"github.com/fluxkit/flux/pkg/build/sourcetree"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/repository/inputs"
	"github.com/fluxkit/flux/pkg/repository/layout"
)

// findRoot finds the Kustomization that applies the cluster's directory: one in the directory whose path is the directory,
// or the one that flux-operator creates for a FluxInstance in the directory, or else the one that bootstrap creates, which
// is assumed. It finds none if there is no such directory.
func findRoot(g *Graph) error {
	folder := g.Path
	info, err := fs.Stat(g.Tree, folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return &sourcetree.PathError{Path: folder, Problem: "not a directory"}
	}
	below, err := fs.Sub(g.Tree, folder)
	if err != nil {
		return err
	}
	// Every spelling of the path contains its last element.
	found, err := sourcetree.Search(g.ctx, below, []string{"kustomize.toolkit.fluxcd.io", path.Base(folder)}, func(o *unstructured.Unstructured) bool {
		return build.IsKustomization(o) && layout.Path(o) == folder
	})
	if err != nil {
		return err
	}
	if len(found) > 0 {
		g.root = found[0].Unstructured
		if g.root.GetNamespace() == "" {
			g.root.SetNamespace(g.Namespace)
		}
		return nil
	}
	if found, err = sourcetree.Search(g.ctx, below, []string{controllers.FluxInstance, path.Base(folder)}, func(o *unstructured.Unstructured) bool {
		return controllers.IDOf(o.Object).IsFluxInstance() && layout.Syncs(o) == folder
	}); err != nil {
		return err
	}
	if len(found) > 0 {
		return setInstance(g, found[0].Unstructured)
	}
	_, g.root = layout.DefaultSync(g.Namespace, folder, "main")
	g.assumed = true
	return nil
}

// setInstance sets the FluxInstance of the cluster, with the Kustomization and the source that flux-operator creates for it.
func setInstance(g *Graph, instance *unstructured.Unstructured) error {
	instance = instance.DeepCopy()
	if instance.GetNamespace() == "" {
		instance.SetNamespace(g.Namespace)
	}
	synced, err := operator.Render(g.ctx, instance, operator.Options{Kustomizer: g.Build.Kustomizer})
	if err != nil {
		return err
	}
	g.instance = instance
	for _, o := range synced.Objects {
		if build.IsKustomization(o.Unstructured) {
			g.root = o.Unstructured
		} else {
			g.synced = o.Unstructured
		}
	}
	return nil
}

// findInstance replaces an assumed root with the Kustomization of a FluxInstance that the cluster applies, from
// any directory. A FluxInstance that is only in a file has no effect: it could exclude files or objects. If twin is the
// graph of another revision that has found it, the owners on the path to it are rendered first.
func findInstance(g, twin *Graph) error {
	if !g.assumed {
		return nil
	}
	written, err := writtenInstances(g, twin)
	if err != nil || len(written) == 0 {
		return err
	}
	var instance *unstructured.Unstructured
	found := func(n *node) bool {
		if n.built == nil || controllers.IsRemote(n.owner.Object) {
			return false
		}
		for _, o := range n.built.Build.Objects {
			if layout.Syncs(o.Unstructured) == g.Path {
				instance, g.toInstance = layout.InstanceOf(o.Unstructured), ancestors(g, n)
			}
		}
		return instance != nil
	}
	if twin != nil && len(written) == 1 {
		for _, owner := range twin.toInstance {
			n := g.found.byID[owner]
			if n == nil {
				break
			}
			_, _ = g.build(n) // following it reports the error
			if found(n) {
				break
			}
		}
	}
	if instance == nil {
		_, err = g.expand([]string{written[0].GetName()}, found)
	}
	if err != nil || instance == nil {
		return err
	}
	assumed := g.root
	if err := setInstance(g, instance); err != nil {
		return err
	}
	g.assumed = false
	g.artifacts.own, g.artifacts.referred = map[controllers.ID]bool{}, controllers.ID{}
	was, _, _ := unstructured.NestedMap(assumed.Object, "spec")
	is, _, _ := unstructured.NestedMap(g.root.Object, "spec")
	if controllers.IDOf(assumed.Object) != controllers.IDOf(g.root.Object) || build.SourceOf(assumed) != build.SourceOf(g.root) || len(was) != len(is) {
		g.reset()
	}
	g.artifacts.own[build.SourceOf(g.root)] = true
	g.found.add(g.root)
	return nil
}

// ancestors returns the owners on the path from the root to a node, with both.
func ancestors(g *Graph, n *node) []controllers.ID {
	path := []controllers.ID{controllers.IDOf(n.owner.Object)}
	for by := g.found.objects[path[0]].by; by != nil && !slices.Contains(path, controllers.IDOf(by.owner.Object)); by = g.found.objects[path[0]].by {
		path = slices.Insert(path, 0, controllers.IDOf(by.owner.Object))
	}
	return path
}

// writtenInstances returns the objects in the repository that sync the directory of the cluster. If twin is the graph of another
// revision, only files that differ there are searched.
func writtenInstances(g, twin *Graph) ([]sourcetree.Manifest, error) {
	words := []string{"sync", "url", path.Base(g.Path)}
	matches := func(o *unstructured.Unstructured) bool { return layout.Syncs(o) == g.Path }
	search := func() (err error) {
		if twin == nil || !twin.searched {
			g.written, err = sourcetree.Search(g.ctx, g.Tree, words, matches)
			return err
		}
		changed, err := inputs.Differing(g.Tree, twin.Tree, ".")
		if err != nil {
			return err
		}
		for _, m := range twin.written {
			if !slices.Contains(changed, m.File) {
				g.written = append(g.written, m)
			}
		}
		for _, name := range changed {
			g.written = append(g.written, sourcetree.SearchFile(g.Tree, name, words, matches)...)
		}
		return nil
	}
	optional := g.Optional
	if optional == nil {
		optional = func(read func() error) error { return read() }
	}
	err := optional(search)
	g.searched = err == nil
	return g.written, err
}

// Revision is a revision of a repository.
type Revision struct {
	Tree Tree
	// Name is the name of the revision in messages.
	Name string
}

// OpenBoth returns the graphs of two revisions. The source of the cluster's directory in either revision refers
// to the repository in both. Only the addresses in the base are trusted.
func OpenBoth(ctx context.Context, base, head Revision, o Options) (was, is *Graph, err error) {
	if was, err = open(ctx, base, o); err != nil {
		return nil, nil, err
	}
	o.Reviewed = was
	if is, err = open(ctx, head, o); err != nil {
		return nil, nil, err
	}
	if was.root == nil && is.root == nil {
		return nil, nil, &sourcetree.PathError{Path: was.Path, Problem: "not found in either revision"}
	}
	if err := findInstance(is, nil); err != nil {
		return nil, nil, err
	}
	if err := findInstance(was, is); err != nil {
		return nil, nil, err
	}
	for _, g := range []*Graph{is, was} { // the work tree first: the commit reuses its renderings
		for _, other := range []*Graph{is, was} {
			if other.root != nil {
				g.artifacts.own[build.SourceOf(other.root)] = true
			}
		}
		g.begin()
	}
	return was, is, nil
}

// begin finds the source of the cluster's directory among the objects that the directory contains. If its spec selects
// files of the repository, the graph begins again with these files.
func (g *Graph) begin() {
	if g.root == nil {
		return
	}
	if _, err := g.build(g.found.add(g.root)); err != nil {
		return // following the root reports it
	}
	for _, n := range slices.Clone(g.found.nodes) { // a flux-operator object may create the source
		if controllers.IDOf(n.owner.Object).IsFluxInstance() {
			_, _ = g.build(n)
		}
	}
	g.artifacts.object = g.found.objects[build.SourceOf(g.root)].Unstructured
	if g.artifacts.object == nil {
		g.artifacts.object = g.synced
	}
	if g.artifacts.object == nil {
		return
	}
	for _, field := range []string{"ignore", "include", "sparseCheckout", "recurseSubmodules"} {
		if _, set, _ := unstructured.NestedFieldNoCopy(g.artifacts.object.Object, "spec", field); set {
			g.reset()
			g.found.add(g.root)
			return
		}
	}
}

// reset discards everything that was rendered.
func (g *Graph) reset() {
	g.found, g.rendered, g.cycles = newIndex(), 0, 0
	g.artifacts.known = map[controllers.ID]*content{}
}

// OwnSource returns the source object of the cluster's directory, or nil if the repository does not contain it. It returns
// an error if the root cannot be built.
func (g *Graph) OwnSource() (*unstructured.Unstructured, error) {
	if g.artifacts.object != nil && controllers.IDOf(g.artifacts.object.Object) == build.SourceOf(g.root) {
		return g.artifacts.object, nil
	}
	return nil, g.found.add(g.root).err
}

// Assumptions lists the assumption that the source of the cluster's directory refers to this repository at the revision
// of the graph.
func (g *Graph) Assumptions() []string {
	o, err := g.OwnSource()
	source := build.SourceOf(g.root)
	if g.artifacts.referred != (controllers.ID{}) {
		source = g.artifacts.referred
	}
	switch {
	case err != nil: // following the root reports it
	case o == nil:
		return []string{source.String() + " is not in the repository: assuming that it refers to this repository"}
	case source.Kind == controllers.GitRepository && !(Identity{Remotes: g.Remotes}).Local(text(o, "spec", "url")):
		return []string{source.String() + ": assuming that it refers to this repository, although no remote of the clone has its URL"}
	}
	return nil
}
