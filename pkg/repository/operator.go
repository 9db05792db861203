package repository

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/fluxkit/flux/internal/budget"
	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/build/operator"
	"github.com/fluxkit/flux/pkg/build/sourcetree"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/repository/layout"
)

// operate renders the objects of a ResourceSet or FluxInstance. It limits the depth, because ResourceSets could create
// each other endlessly.
func operate(g *Graph, owner *unstructured.Unstructured, reads *reader) (*build.Result, error) {
	if g.found.byID[controllers.IDOf(owner.Object)].depth > budget.TreeDepth {
		g.err = &budget.ExceededError{Name: controllers.IDOf(owner.Object).String(), Fact: fmt.Sprintf("ResourceSets are nested more than %d levels deep", budget.TreeDepth)}
		return nil, g.err
	}
	o := operator.Options{
		Kustomizer: g.Build.Kustomizer, Inputs: g.Inputs, Twin: g.found.objects[controllers.IDOf(owner.Object)].Twin,
		Lookup: reads, Missing: reads.missing(owner),
		Find: func(ctx context.Context, wanted controllers.ID) (*unstructured.Unstructured, error) {
			if g.Provider != nil && wanted.Kind == controllers.InputProvider {
				if live, err := g.Provider(ctx, wanted); !errors.Is(err, build.ErrNotFound) {
					return reads.exporting(ctx, wanted, live), err
				}
			}
			o, err := reads.find(ctx, wanted)
			if err == nil && o.Object["status"] != nil { // a status in a file is not the status of the live object
				o = o.DeepCopy()
				delete(o.Object, "status")
			}
			return o, err
		},
		Select: func(_ context.Context, namespace string, selector *metav1.LabelSelector) ([]controllers.ID, error) {
			return inputProviders(g, namespace, selector)
		},
	}
	return operator.Render(g.ctx, owner, o)
}

// exporting returns the provider whose inputs the operator will use: the live one, except for a static provider of the
// repository, whose inputs may change.
func (r *reader) exporting(ctx context.Context, id controllers.ID, live *unstructured.Unstructured) *unstructured.Unstructured {
	if live == nil {
		return nil
	}
	own, err := r.find(ctx, id)
	if err != nil || (controllers.Path{"spec.type"}).String(own.Object) != controllers.StaticProvider {
		return live
	}
	own = own.DeepCopy()
	delete(own.Object, "status")
	own.SetUID(live.GetUID())
	return own
}

// RenderAgain renders a ResourceSet or FluxInstance without adding its objects to the graph, to find values that differ on
// every rendering.
func RenderAgain(g *Graph, owner *unstructured.Unstructured) (*Rendering, error) {
	result, err := operate(g, owner, &reader{graph: g, lookup: g.lookup(nil)})
	return &Rendering{Owner: owner, Build: result}, err
}

// Instance returns the FluxInstance of the cluster, or nil if the repository contains none. It ignores a FluxInstance
// that is applied to another cluster.
func Instance(g *Graph) *unstructured.Unstructured {
	for _, n := range g.found.nodes {
		id := controllers.IDOf(n.owner.Object)
		if by := g.found.objects[id].by; id.IsFluxInstance() && (by == nil || !controllers.IsRemote(by.owner.Object)) {
			return n.owner
		}
	}
	return g.instance
}

// inputProviders returns the input providers in a namespace that a selector selects, sorted by name.
func inputProviders(g *Graph, namespace string, selector *metav1.LabelSelector) ([]controllers.ID, error) {
	selects, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		return nil, err
	}
	if _, err := g.expand([]string{controllers.InputProvider}, func(*node) bool { return false }); err != nil {
		return nil, err
	}
	var all []controllers.ID
	for id, o := range g.found.objects {
		if id.Group == controllers.OperatorGroup && id.Kind == controllers.InputProvider && id.Namespace == namespace && selects.Matches(labels.Set(o.GetLabels())) {
			all = append(all, id)
		}
	}
	slices.SortFunc(all, controllers.ID.Compare)
	return all, nil
}

// Synced returns the Kustomizations with a namespace and a name that the FluxInstances in the files of a directory create.
func Synced(ctx context.Context, kustomizer build.Kustomizer, tree fs.FS, namespace, name string) ([]sourcetree.Manifest, error) {
	instances, err := sourcetree.Search(ctx, tree, []string{"sync"}, func(o *unstructured.Unstructured) bool {
		return layout.InstanceOf(o) != nil && (o.GetNamespace() == namespace || o.GetNamespace() == "")
	})
	if err != nil {
		return nil, err
	}
	var found []sourcetree.Manifest
	for _, m := range instances {
		m.SetNamespace(namespace)
		result, err := operator.Render(ctx, layout.InstanceOf(m.Unstructured), operator.Options{Kustomizer: kustomizer})
		if err != nil {
			return nil, err
		}
		for _, o := range result.Objects {
			if build.IsKustomization(o.Unstructured) && o.GetName() == name {
				found = append(found, sourcetree.Manifest{Unstructured: o.Unstructured, File: m.File})
			}
		}
	}
	return found, nil
}
