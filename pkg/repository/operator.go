package repository

import (
	"context"
	"errors"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/fluxkit/flux/internal/budget"
	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/build/operator"
	"github.com/fluxkit/flux/pkg/controllers"
)

// operate renders the objects of a ResourceSet or FluxInstance. ResourceSets could create each other without an end.
func operate(g *Graph, owner *unstructured.Unstructured, reads *reader) (*build.Result, error) {
	if g.found.byID[controllers.IDOf(owner.Object)].depth > budget.TreeDepth {
		g.err = &budget.ExceededError{Name: controllers.IDOf(owner.Object).String(), Fact: fmt.Sprintf("ResourceSets create each other more than %d levels deep", budget.TreeDepth)}
		return nil, g.err
	}
	o := operator.Options{
		Kustomizer: g.Build.Kustomizer, Inputs: g.Inputs, Twin: g.found.objects[controllers.IDOf(owner.Object)].Twin,
		Lookup: reads, Missing: reads.missing(owner),
		Find: func(ctx context.Context, wanted controllers.ID) (*unstructured.Unstructured, error) {
			if g.Provider != nil && wanted.Kind == controllers.InputProvider {
				if o, err := g.Provider(ctx, wanted); !errors.Is(err, build.ErrNotFound) {
					return o, err
				}
			}
			return reads.find(ctx, wanted)
		},
		Select: func(_ context.Context, namespace string, selector *metav1.LabelSelector) ([]controllers.ID, error) {
			return inputProviders(g, namespace, selector)
		},
	}
	return operator.Render(g.ctx, owner, o)
}

// Instance returns the FluxInstance of the cluster, or nil if the graph contains none.
func Instance(g *Graph) *unstructured.Unstructured {
	for _, n := range g.found.nodes {
		if controllers.IDOf(n.owner.Object).IsFluxInstance() {
			return n.owner
		}
	}
	return nil
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
