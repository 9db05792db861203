// Package inventory finds the problems that the status of an applier does not report: objects of its inventory that are missing,
// being deleted, also applied by others, changed outside Flux, or applied with encrypted values.
package inventory

import (
	"context"
	"time"

	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diagnose/observe"
	"github.com/fluxkit/flux/pkg/diagnose/rules"
	"github.com/fluxkit/flux/pkg/tree"
)

// Checker checks the objects in the inventories of appliers that are ready.
type Checker struct {
	Cluster *observe.Cluster
	// Flux holds the Flux objects that were read before: appliers and their sources.
	Flux map[controllers.ID]controllers.Object
	// Kustomizer runs kustomize, see build.Options.
	Kustomizer build.Kustomizer
	Now        time.Time
	// Deletion returns the finding for an object that is being deleted.
	Deletion func(controllers.ID, controllers.Object) (rules.Finding, bool)
}

// Check checks all objects in the inventory of an applier. It lists the metadata of the objects and other inventories, renders
// the desired state, and sends dry runs.
func (c *Checker) Check(ctx context.Context, s rules.Subject) Result {
	if s.Kind.Suspension.Is(s.Object) || s.Kind.Manager == "" || len(controllers.Managed(s.Object)) == 0 {
		return Result{}
	}
	if controllers.IsRemote(s.Object) {
		return inAnotherCluster(s)
	}
	k := &check{checker: c, subject: s}
	unrendered := k.render(ctx)
	k.inventory = c.Cluster.Inventory(ctx, s.Kind, s.Object, k.inspect)
	k.result.Unknown = append(k.inventory.Unknown, unrendered...)
	if k.desired == nil {
		k.skipJobs()
	}
	k.findMissing(ctx)
	k.findDeleting(ctx)
	k.findContested(ctx)
	if k.desired != nil {
		k.compare(ctx, k.desired.objects)
	}
	return k.result
}

// CheckOne checks one existing object of an applier for other owners, changes and encrypted values.
func (c *Checker) CheckOne(ctx context.Context, s rules.Subject, o controllers.Object) Result {
	if s.Kind.Suspension.Is(s.Object) || isExcluded(o) {
		return Result{}
	}
	if controllers.IsRemote(s.Object) {
		return inAnotherCluster(s)
	}
	t := controllers.IDOf(o)
	k := &check{checker: c, subject: s}
	k.inventory = &observe.Inventory{Objects: []controllers.ID{t}, Live: map[controllers.ID]controllers.Object{t: o}}
	k.findContested(ctx)
	k.result.Unknown = append(k.result.Unknown, k.render(ctx)...)
	if k.desired != nil {
		k.inspect(t, o)
		k.compare(ctx, k.desired.of(t))
	}
	return k.result
}

// CheckTree finds the objects in the tree of an applier that are missing or being deleted.
func (c *Checker) CheckTree(ctx context.Context, s rules.Subject, root *tree.Node) Result {
	k := &check{checker: c, subject: s}
	k.inventory = &observe.Inventory{Live: map[controllers.ID]controllers.Object{}, Absent: map[controllers.ID]bool{}}
	for _, n := range root.Children {
		k.inventory.Objects = append(k.inventory.Objects, n.Object)
		k.inventory.Absent[n.Object] = n.Status == tree.NotFound
		k.inventory.Live[n.Object] = n.Deletion()
	}
	k.skipJobs()
	k.findMissing(ctx)
	k.findDeleting(ctx)
	return k.result
}

func inAnotherCluster(s rules.Subject) Result {
	return Result{Unknown: []string{"the objects of " + s.String() + ", which are in another cluster"}}
}

// findDeleting adds the objects that are being deleted.
func (k *check) findDeleting(ctx context.Context) {
	k.each("an object in its inventory is being deleted", "more objects in the inventory are being deleted", func(t controllers.ID) (rules.Finding, bool) {
		f, ok := k.checker.Deletion(t, k.inventory.Live[t])
		if ok && t.IsNamespace() {
			ExplainNamespace(ctx, k.checker.Cluster, &f, t.Name)
		}
		return f, ok
	})
}

// compare adds the objects that have drifted, and the desired objects with encrypted values.
func (k *check) compare(ctx context.Context, desired []build.Object) {
	for _, f := range k.drift(ctx) {
		k.result.Problems = append(k.result.Problems, Problem{"an object in its inventory has drifted", f})
	}
	if f, ok := undecrypted(k.subject, desired); ok {
		k.result.Problems = append(k.result.Problems, Problem{"an object in its inventory contains encrypted values", f})
	}
}
