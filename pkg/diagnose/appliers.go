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

// applier is a Flux object whose inventory contains some of the requested objects.
type applier struct {
	kind controllers.Kind
	// object is the Flux object without its inventory. has lists the requested objects in the
	// inventory.
	object controllers.Object
	has    []controllers.ID
}

// appliersOf returns the Flux objects whose inventories contain one of the
// wanted objects, sorted by name, and a description of what could not be read.
// Inventories are read one by one and not kept. If a cluster-wide list is
// forbidden, it lists the given namespaces.
func (d Doctor) appliersOf(ctx context.Context, kinds []controllers.Kind, namespaces []string, wanted ...controllers.ID) (found []applier, unknown []string) {
	asked := map[controllers.ID]bool{}
	for _, t := range wanted {
		asked[t] = true
	}
	var mu sync.Mutex
	var g errgroup.Group
	for _, k := range kinds {
		if !k.Applies() {
			continue
		}
		g.Go(func() error {
			gaps := d.eachApplier(ctx, k, namespaces, func(o controllers.Object) error {
				a := applier{kind: k, object: o}
				for _, t := range controllers.Managed(o) {
					if asked[t] {
						a.has = append(a.has, t)
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
			mu.Lock()
			defer mu.Unlock()
			unknown = append(unknown, gaps...)
			return nil
		})
	}
	_ = g.Wait() // all errors are in unknown
	slices.SortFunc(found, func(a, b applier) int {
		return strings.Compare(a.kind.IDOf(a.object).String(), b.kind.IDOf(b.object).String())
	})
	slices.Sort(unknown)
	return found, unknown
}

// eachApplier lists the objects of a kind in all namespaces or, if that is
// forbidden, in the given ones. It returns a description of what could not be
// read.
func (d Doctor) eachApplier(ctx context.Context, k controllers.Kind, namespaces []string, each func(controllers.Object) error) []string {
	list := func(namespace string) error {
		return d.Client.WithServedVersion(ctx, k, func(r kube.Resource) error {
			without := []string{"metadata.managedFields", "spec.values", "spec.postRenderers", "spec.patches", "spec.postBuild", "status.history"}
			_, err := d.Client.List(ctx, r, kube.Selection{Namespace: namespace, Without: without}, each)
			return err
		})
	}
	err := list("")
	var kindMissing *kube.MissingKindError
	switch {
	case err == nil, errors.As(err, &kindMissing):
		return nil
	case !apierrors.IsForbidden(err):
		return []string{unseen(err) + ": inventories of kind " + k.Kind}
	}
	gaps := []string{"no permission to read: inventories in other namespaces, of kind " + k.Kind}
	for _, namespace := range namespaces[:min(len(namespaces), inventoryLookups)] {
		if err := list(namespace); err != nil {
			gaps = append(gaps, unseen(err)+": inventories in namespace "+namespace+", of kind "+k.Kind)
		}
	}
	return gaps
}

// namespacesOf returns the namespaces of the objects without duplicates.
func namespacesOf(targets ...controllers.ID) []string {
	var namespaces []string
	for _, t := range targets {
		if t.Namespace != "" && !slices.Contains(namespaces, t.Namespace) {
			namespaces = append(namespaces, t.Namespace)
		}
	}
	return namespaces
}
