// Package orphans finds the objects that Flux has applied and no longer manages: their owner labels refer to a Flux object that
// does not exist, or whose inventory does not contain them.
package orphans

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/internal/terminal/output"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/tree"
)

// Options select the objects to check.
type Options struct {
	// Namespace is "" for all namespaces and cluster-scoped objects.
	Namespace string
	// Labels is a label selector in addition to the owner labels, "" for all.
	Labels string
	// Progress is called for each list that was read.
	Progress func(done, total int)
}

// Reason states why an object is an orphan.
type Reason string

// The reasons.
const (
	OwnerMissing   Reason = "owner-missing"
	NotInInventory Reason = "not-in-inventory"
)

// String returns the reason as text.
func (r Reason) String() string {
	if r == OwnerMissing {
		return "the owner does not exist"
	}
	return "not in the inventory of the owner"
}

// Orphan is an object that Flux has applied and no longer manages.
type Orphan struct {
	Object controllers.VersionedID `json:"object"`
	Owner  controllers.ID          `json:"owner"`
	Reason Reason                  `json:"reason"`
	// Kept is the annotation that prevented the deletion, or "".
	Kept string `json:"kept,omitempty"`
	// Details describe why Flux did not delete the object, and which other objects its deletion would delete.
	Details []string  `json:"details,omitempty"`
	Created time.Time `json:"createdAt"`
	// Remove is the command to delete the object.
	Remove string `json:"remove"`

	uid      string
	resource kube.Resource
}

// Result contains the orphans, and the objects that could not be checked.
type Result struct {
	Orphans []Orphan
	// Checked is the number of objects that Flux has applied.
	Checked int
	// Gaps lists the kinds that could not be listed.
	Gaps []tree.Gap
	// Undetermined describes objects whose owner does not have a complete inventory, a line for each owner.
	Undetermined []string
}

// Find finds the orphans of a cluster. It lists the metadata of the objects with owner labels of all kinds, then their owners, and
// then the kinds of the orphans again: an owner may have pruned an object in the meantime.
func Find(ctx context.Context, client *kube.Client, options Options) (*Result, error) {
	resources, stale, err := client.Discovery().AllApplicable(ctx)
	if err != nil {
		return nil, err
	}
	if err := kube.CheckInstalled(resources); err != nil {
		return nil, err
	}
	l := &lister{client: client, options: options, labels: ownerLabels(resources)}
	for _, version := range stale {
		l.gaps = append(l.gaps, tree.Gap{Resource: version, Err: errors.New("the extension API server does not respond")})
	}
	objects, err := l.list(ctx, resources)
	if err != nil {
		return nil, err
	}
	o, gaps, err := ownersOf(ctx, client, objects)
	if err != nil {
		return nil, err
	}
	result := o.find(objects)
	if result.Orphans, err = l.confirm(ctx, result.Orphans); err != nil {
		return nil, err
	}
	result.Gaps = slices.Concat(l.gaps, gaps)
	return result, nil
}

// owners holds the Flux objects that owner labels refer to.
type owners struct {
	appliers map[controllers.ID]*tree.Applier
	gaps     []tree.Gap
	// held contains the objects of all inventories. stored contains the objects in the Helm release storage, without
	// namespaces, because manifests do not show whether a kind is namespaced.
	held, stored map[controllers.ID]bool
}

// ownersOf reads the owners of objects.
func ownersOf(ctx context.Context, client *kube.Client, objects []object) (*owners, []tree.Gap, error) {
	var named []controllers.ID
	seen := map[controllers.ID]bool{}
	for _, o := range objects {
		for _, owner := range o.owners {
			if !seen[owner] {
				seen[owner], named = true, append(named, owner)
			}
		}
	}
	if len(named) == 0 {
		return &owners{}, nil, nil
	}
	appliers, gaps, err := tree.Appliers(ctx, client, named)
	if err != nil {
		return nil, nil, err
	}
	found := &owners{appliers: appliers, gaps: gaps, held: map[controllers.ID]bool{}, stored: map[controllers.ID]bool{}}
	for _, a := range appliers {
		if controllers.IsRemote(a.Live) {
			continue
		}
		for _, id := range a.Objects {
			found.held[id.ID] = true
			found.stored[id.WithoutNamespace()] = found.stored[id.WithoutNamespace()] || a.Released
		}
		if a.Kind.Release { // helm-controller creates the chart
			for _, id := range a.Kind.Upstream(a.Live) {
				found.held[id] = true
			}
		}
	}
	return found, gaps, nil
}

// find returns the orphans among objects, grouped by owner.
func (w *owners) find(objects []object) *Result {
	result := &Result{Checked: len(objects)}
	type reasonOf struct {
		owner  controllers.ID
		reason string
	}
	counts := map[reasonOf]int{}
	var order []reasonOf
	for _, o := range objects {
		if w.manages(o) {
			continue
		}
		undetermined := false
		for _, owner := range o.owners {
			if reason := w.undetermined(owner); reason != "" {
				d := reasonOf{owner, reason}
				if counts[d]++; counts[d] == 1 {
					order = append(order, d)
				}
				undetermined = true
				break
			}
		}
		if !undetermined {
			result.Orphans = append(result.Orphans, w.orphan(o))
		}
	}
	slices.SortFunc(order, func(a, b reasonOf) int { return a.owner.Compare(b.owner) })
	for _, d := range order {
		result.Undetermined = append(result.Undetermined, fmt.Sprintf("%s of %s: %s", output.Amount(counts[d], "object"), d.owner, d.reason))
	}
	slices.SortStableFunc(result.Orphans, func(a, b Orphan) int {
		if a.Owner != b.Owner {
			return a.Owner.Compare(b.Owner)
		}
		return a.Object.Compare(b.Object.ID)
	})
	return result
}

// manages reports whether an owner manages an object. The inventory of a release does not contain hook objects. In the Helm
// release storage, it does not contain the CustomResourceDefinitions from crds/ either.
func (w *owners) manages(o object) bool {
	if w.held[o.id.ID] || o.resource.ClusterScoped && w.stored[o.id.ID] {
		return true
	}
	return slices.ContainsFunc(o.owners, func(owner controllers.ID) bool {
		a := w.appliers[owner]
		return a != nil && a.Kind.Release && (o.hook || o.id.IsCRD() && a.Released)
	})
}

// undetermined returns why it cannot be determined which objects of an owner are orphans, or "".
func (w *owners) undetermined(owner controllers.ID) string {
	a := w.appliers[owner]
	k, _ := owner.Flux()
	switch {
	case a == nil && slices.ContainsFunc(w.gaps, func(g tree.Gap) bool { return g.Covers(k.CRD(), owner.Namespace) }):
		return "the owner could not be read"
	case a == nil:
		return ""
	case controllers.IsRemote(a.Live):
		return "the owner applies objects to another cluster (spec.kubeConfig)"
	case a.Err != nil:
		return a.Err.Error()
	case controllers.Path{"metadata.deletionTimestamp"}.String(a.Live) != "":
		return "the owner is being deleted"
	case !a.Recorded && !a.Released:
		return "the owner has no inventory"
	case !isSettled(k, a.Live):
		return "the owner is not ready, so its inventory may be incomplete"
	}
	return ""
}

// isSettled reports whether the last reconciliation of an owner has succeeded and its inventory is complete. Otherwise, objects may
// have been applied that are not in the inventory yet.
func isSettled(k controllers.Kind, o controllers.Object) bool {
	reconciling, _ := controllers.FindCondition(o, "Reconciling")
	observed := controllers.Observed(o) || k.Suspension.Is(o) && controllers.Reconciled(o)
	return k.Ready(o).Status == "True" && reconciling.Status != "True" && observed
}

// orphan describes an orphan of its first owner.
func (w *owners) orphan(o object) Orphan {
	owner := o.owners[0]
	k, _ := owner.Flux()
	orphan := Orphan{Object: o.id, Owner: owner, Reason: NotInInventory, Kept: o.kept, Created: o.created, uid: o.uid, resource: o.resource}
	add := func(applies bool, detail string) {
		if applies {
			orphan.Details = append(orphan.Details, detail)
		}
	}
	if a := w.appliers[owner]; a == nil {
		orphan.Reason = OwnerMissing
	} else {
		add(!k.Prunes && controllers.Path{"spec.prune"}.String(a.Live) != "true", "the owner's spec.prune is not true")
		add(k.Suspension.Is(a.Live), "the owner is suspended")
	}
	add(o.hook, "created by Helm hooks")
	add(k.Release && o.id.IsCRD(), "Helm never deletes CRDs from crds/")
	add(o.id.IsCRD(), "deleting the CRD deletes all objects of its kind")
	add(o.id.IsNamespace(), "deleting the namespace deletes all objects in it")
	orphan.Remove = hint.Command("kubectl delete %s %s", o.resource.GroupResource().String(), o.id.Name)
	if o.id.Namespace != "" {
		orphan.Remove += hint.Command(" --namespace %s", o.id.Namespace)
	}
	return orphan
}
