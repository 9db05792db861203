package observe

import (
	"context"
	"slices"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/controllers"
)

// Lookups is the maximum number of requests for single objects, or for single namespaces, that one query sends.
const Lookups = 5

// Applier is a Flux object whose inventory contains some of the requested objects.
type Applier struct {
	Kind controllers.Kind
	// Object is the Flux object without its inventory. Has lists the requested objects in the inventory.
	Object controllers.Object
	Has    []controllers.ID
}

// ID returns the ID of the Flux object.
func (a Applier) ID() controllers.ID { return a.Kind.IDOf(a.Object) }

// Appliers returns the Flux objects of some kinds whose inventories contain one of the objects, sorted by name, and a description
// of what could not be read. Inventories are read one by one and not kept. If listing all namespaces is forbidden, only the
// namespaces of objects and beside are listed.
func (c *Cluster) Appliers(ctx context.Context, kinds []controllers.Kind, beside []controllers.ID, objects ...controllers.ID) (found []Applier, unknown []string) {
	var namespaces []string
	for _, t := range slices.Concat(beside, objects) {
		if t.Namespace != "" && !slices.Contains(namespaces, t.Namespace) {
			namespaces = append(namespaces, t.Namespace)
		}
	}
	requested := map[controllers.ID]bool{}
	for _, t := range objects {
		requested[t] = true
	}
	var mu sync.Mutex
	var reading sync.WaitGroup
	for _, k := range kinds {
		if !k.Applies() {
			continue
		}
		reading.Go(func() {
			gaps := c.eachApplier(ctx, k, namespaces, func(o controllers.Object) error {
				has := slices.DeleteFunc(controllers.Managed(o), func(t controllers.ID) bool { return !requested[t] })
				if len(has) > 0 {
					delete(o["status"].(map[string]any), "inventory")
					mu.Lock()
					defer mu.Unlock()
					found = append(found, Applier{k, o, has})
				}
				return nil
			})
			mu.Lock()
			defer mu.Unlock()
			unknown = append(unknown, gaps...)
		})
	}
	reading.Wait()
	slices.SortFunc(found, func(a, b Applier) int { return strings.Compare(a.ID().String(), b.ID().String()) })
	slices.Sort(unknown)
	return found, unknown
}

// eachApplier lists the objects of a kind in all namespaces or, if that is forbidden, in the given ones. It returns a
// description of what could not be read.
func (c *Cluster) eachApplier(ctx context.Context, k controllers.Kind, namespaces []string, each func(controllers.Object) error) []string {
	list := func(namespace string) error {
		without := []string{"metadata.managedFields", "spec.values", "spec.postRenderers", "spec.patches", "spec.postBuild", "status.history"}
		return c.eachOf(ctx, k, kube.Selection{Namespace: namespace, Without: without}, each)
	}
	switch err := list(""); {
	case err == nil, isAbsent(err):
		return nil
	case !apierrors.IsForbidden(err):
		return []string{Unread("inventories of kind "+k.Kind, err)}
	}
	gaps := []string{"no permission to read: inventories in other namespaces, of kind " + k.Kind}
	for _, namespace := range namespaces[:min(len(namespaces), Lookups)] {
		if err := list(namespace); err != nil {
			gaps = append(gaps, Unread("inventories in namespace "+namespace+", of kind "+k.Kind, err))
		}
	}
	return gaps
}
