package diagnose

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/controllers"
)

// applier is an object of Flux with some objects in its inventory.
type applier struct {
	kind controllers.Kind
	// object is without the inventory, and has is what of that was asked for.
	object controllers.Object
	has    []controllers.Target
}

// appliersOf returns the objects of some kinds of Flux whose inventories have one
// of some objects, in the order of their names. The inventories of a cluster are
// read one by one and not kept.
func (d Doctor) appliersOf(ctx context.Context, kinds []controllers.Kind, wanted ...controllers.Target) []applier {
	asked := map[controllers.Target]bool{}
	for _, t := range wanted {
		asked[t] = true
	}
	var mu sync.Mutex
	var found []applier
	var g errgroup.Group
	for _, k := range kinds {
		if k.Inventory == nil || k.Family != "" {
			continue
		}
		g.Go(func() error {
			return d.eachApplier(ctx, k, wanted[0].Namespace, func(o controllers.Object) error {
				a := applier{kind: k, object: o}
				for _, t := range k.Managed(o) {
					if asked[key(t)] {
						a.has = append(a.has, key(t))
					}
				}
				if len(a.has) > 0 {
					delete(o["status"].(map[string]any), "inventory")
					mu.Lock()
					found = append(found, a)
					mu.Unlock()
				}
				return nil
			})
		})
	}
	_ = g.Wait() // what may not be listed has nothing to say
	slices.SortFunc(found, func(a, b applier) int {
		return strings.Compare(targetOf(a.kind, a.object).String(), targetOf(b.kind, b.object).String())
	})
	return found
}

// eachApplier reads the objects of a kind in all namespaces or, where that is
// forbidden, in one.
func (d Doctor) eachApplier(ctx context.Context, k controllers.Kind, namespace string, each func(controllers.Object) error) error {
	list := func(namespace string) error {
		return d.Client.With(ctx, k, func(r kube.Resource) error {
			without := []string{"metadata.managedFields", "spec.values", "spec.postRenderers", "spec.patches", "spec.postBuild", "status.history"}
			_, err := d.Client.List(ctx, r, kube.Selection{Namespace: namespace, Without: without}, each)
			return err
		})
	}
	err := list("")
	if apierrors.IsForbidden(err) && namespace != "" {
		err = list(namespace)
	}
	var kindMissing *kube.MissingKindError
	if errors.As(err, &kindMissing) {
		return nil
	}
	return err
}
