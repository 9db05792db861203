// Package inventory finds the problems that the status of an applier does not report: objects of its inventory that are missing,
// being deleted, applied by others as well, changed since, or applied with encrypted values.
package inventory

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/internal/terminal/output"
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
	k.findMissing()
	k.findDeleting()
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

// CheckTree finds the missing objects and those that are being deleted in the tree of an applier.
func (c *Checker) CheckTree(s rules.Subject, root *tree.Node) Result {
	k := &check{checker: c, subject: s}
	k.inventory = &observe.Inventory{Live: map[controllers.ID]controllers.Object{}, Absent: map[controllers.ID]bool{}}
	for _, n := range root.Children {
		k.inventory.Objects = append(k.inventory.Objects, n.Object)
		k.inventory.Absent[n.Object] = n.Status == tree.NotFound
		k.inventory.Live[n.Object] = n.Deletion()
	}
	k.skipJobs()
	k.findMissing()
	k.findDeleting()
	return k.result
}

func inAnotherCluster(s rules.Subject) Result {
	return Result{Unknown: []string{"the objects of " + s.String() + ", which are in another cluster"}}
}

// skipJobs removes missing Jobs: without the desired state it is unknown whether they expired.
func (k *check) skipJobs() {
	for _, t := range k.inventory.Objects {
		if k.inventory.Absent[t] && t.Kind == "Job" {
			k.result.Unknown = append(k.result.Unknown, t.String()+" does not exist: it expired after it finished, or it was deleted")
			delete(k.inventory.Absent, t)
		}
	}
}

// findMissing adds the missing objects as one problem.
func (k *check) findMissing() {
	var missing []controllers.ID
	for _, t := range k.inventory.Objects {
		if k.inventory.Absent[t] && !k.desired.expires(t) && !k.isDeleting(t.Namespace) {
			missing = append(missing, t)
		}
	}
	if len(missing) == 0 {
		return
	}
	// A kind that is not served any more is the cause, also if other objects are missing.
	slices.SortStableFunc(missing, func(a, b controllers.ID) int { return cmp.Compare(k.rank(a), k.rank(b)) })
	f := Deleted(missing[0], k.subject, k.checker.Now)
	if k.inventory.Unserved[missing[0]] {
		f = k.unserved(missing[0])
	}
	for _, t := range missing[1:min(len(missing), objectsShown)] {
		f.Details = append(f.Details, t.String()+" is missing as well")
	}
	f.Details = append(f.Details, andMore(len(missing)-objectsShown)...)
	summary := fmt.Sprintf("%d of %s in its inventory missing", len(missing), output.Amount(len(k.inventory.Objects), "object"))
	k.result.Problems = append(k.result.Problems, Problem{summary, f})
}

// isDeleting reports whether a namespace of the inventory is being deleted, with all objects in it.
func (k *check) isDeleting(namespace string) bool {
	o := k.inventory.Live[controllers.ID{Kind: "Namespace", Name: namespace}]
	_, deleting := rules.DeletedAt(o)
	return namespace != "" && deleting
}

// rank returns 0 for missing objects whose kind is not served, and 1 for others. A CRD that is missing as well is applied before
// its objects.
func (k *check) rank(t controllers.ID) int {
	if k.inventory.Unserved[t] && crdOf(t, k.subject.Object) == "" {
		return 0
	}
	return 1
}

// crdOf returns the name of the CRD of an object in the inventory of an applier, or "". The name contains the plural, which is a
// guess, because the cluster does not serve the kind.
func crdOf(t controllers.ID, applier controllers.Object) string {
	guess := kube.ResourceFor(t.GroupKind().WithVersion("")).Resource
	for _, id := range controllers.Managed(applier) {
		plural, group, _ := strings.Cut(id.Name, ".")
		if id.IsCRD() && group == t.Group && (plural == guess || strings.HasPrefix(plural, strings.ToLower(t.Kind))) {
			return id.Name
		}
	}
	return ""
}

// unserved returns the finding for a missing object whose kind the cluster does not serve.
func (k *check) unserved(t controllers.ID) rules.Finding {
	f := rules.Finding{
		Object: t, Code: "api-missing", Message: fmt.Sprintf("the cluster does not serve kind %s of group %s any more: its CustomResourceDefinition was deleted, and with it all objects of the kind", t.Kind, t.Group),
		Fixes: []string{fmt.Sprintf("install the CRD of kind %s of group %s", t.Kind, t.Group)},
	}
	for _, id := range slices.SortedFunc(maps.Keys(k.checker.Flux), controllers.ID.Compare) {
		o := k.checker.Flux[id]
		if name := crdOf(t, o); name != "" {
			applier := rules.NewSubject(observe.KindOf(id), o, k.checker.Cluster.Home)
			f.Details = []string{fmt.Sprintf("%s applies CustomResourceDefinition/%s", id, name)}
			f.Fixes = []string{applier.Command("reconcile")}
		}
	}
	f.Fixes = append(f.Fixes, k.subject.Command("reconcile"))
	return f
}

// Deleted returns the finding for an object of an inventory that does not exist.
func Deleted(t controllers.ID, s rules.Subject, now time.Time) rules.Finding {
	f := rules.Finding{Object: t, Code: "deleted", Message: fmt.Sprintf("it does not exist, although %s has applied it: it was deleted outside Flux", s)}
	detail, fixes := correction(s, now)
	f.Details, f.Fixes = []string{detail}, fixes
	return f
}

// findDeleting adds the objects that are being deleted.
func (k *check) findDeleting() {
	k.each("an object in its inventory is being deleted", "more objects of the inventory are being deleted", func(t controllers.ID) (rules.Finding, bool) {
		return k.checker.Deletion(t, k.inventory.Live[t])
	})
}

// compare adds the objects that have drifted, and those of the desired objects that contain encrypted values.
func (k *check) compare(ctx context.Context, desired []build.Object) {
	for _, f := range k.drift(ctx) {
		k.result.Problems = append(k.result.Problems, Problem{"an object in its inventory has drifted", f})
	}
	if f, ok := undecrypted(k.subject, desired); ok {
		k.result.Problems = append(k.result.Problems, Problem{"an object in its inventory contains encrypted values", f})
	}
}
