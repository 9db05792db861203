package inventory

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/pkg/build/charts"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diagnose/observe"
	"github.com/fluxkit/flux/pkg/diagnose/rules"
)

// ownersShown is the maximum number of owners to list for an object.
const ownersShown = 3

// findContested adds the objects that another Flux object also applies, according to the inventories of its kind and the owner
// labels of the objects.
func (k *check) findContested(ctx context.Context) {
	owner := k.subject.ID()
	others := map[controllers.ID][]controllers.ID{}
	appliers, unknown := k.checker.Cluster.Appliers(ctx, []controllers.Kind{k.subject.Kind}, []controllers.ID{owner}, k.inventory.Objects...)
	k.result.Unknown = append(k.result.Unknown, unknown...)
	same, active := sharing(k.subject, appliers)
	for _, a := range appliers {
		if controllers.IsRemote(a.Object) || a.ID() == owner || slices.Contains(same, a.ID()) {
			continue
		}
		for _, t := range a.Has {
			others[t] = append(others[t], a.ID())
		}
	}
	if len(active) > 0 {
		k.result.Problems = append(k.result.Problems, Problem{"another HelmRelease also manages its Helm release", shared(k.subject, active)})
	}
	labeled := &labeledOwners{checker: k.checker, read: map[controllers.ID]controllers.Object{}, releases: map[controllers.ID]*desired{}}
	k.each("another resource also applies an object in its inventory", "other resources also apply further objects in the inventory", func(t controllers.ID) (rules.Finding, bool) {
		all := append([]controllers.ID{owner}, others[t]...)
		for _, other := range controllers.Owners(k.inventory.Live[t]) {
			if !slices.Contains(all, other) && !slices.Contains(same, other) && labeled.apply(ctx, other, t) {
				all = append(all, other)
			}
		}
		return contested(t, all), len(all) > 1
	})
	k.result.Unknown = append(k.result.Unknown, labeled.unknown...)
}

// sharing returns the other HelmReleases that manage the Helm release of a HelmRelease (same), and which of them are not
// suspended (active).
func sharing(s rules.Subject, appliers []observe.Applier) (same, active []controllers.ID) {
	for _, a := range appliers {
		if !s.Kind.Release || a.ID() == s.ID() || controllers.IsRemote(a.Object) || !sameRelease(s.Object, a.Object) {
			continue
		}
		same = append(same, a.ID())
		if !s.Kind.Suspension.Is(a.Object) {
			active = append(active, a.ID())
		}
	}
	return same, active
}

// sameRelease reports whether two HelmReleases manage the same Helm release.
func sameRelease(a, b controllers.Object) bool {
	left, err := charts.TargetOf(&unstructured.Unstructured{Object: a})
	if err != nil {
		return false
	}
	right, err := charts.TargetOf(&unstructured.Unstructured{Object: b})
	return err == nil && left == right
}

// shared returns the finding for a HelmRelease whose Helm release is also managed by others.
func shared(s rules.Subject, others []controllers.ID) rules.Finding {
	var names []string
	for _, other := range others[:min(len(others), ownersShown)] {
		names = append(names, other.String())
	}
	return rules.Finding{
		Object: s.ID(), Code: "release-shared",
		Message: fmt.Sprintf("Helm release %s in namespace %s is also managed by %s: each upgrades and uninstalls what the other installed",
			controllers.ReleaseName(s.Object), s.ReleaseNamespace(), strings.Join(names, " and ")),
		Fixes: []string{
			"keep one of the HelmReleases: set spec.suspend: true on the others in Git, wait until Flux has applied the change, and then remove them from Git (a suspended HelmRelease does not uninstall its release)",
			"to install the chart twice, add them again with a different .spec.releaseName",
		},
	}
}

// contested returns the finding for an object with several appliers.
func contested(t controllers.ID, appliers []controllers.ID) rules.Finding {
	var names []string
	for _, applier := range appliers {
		names = append(names, applier.String())
	}
	f := rules.Finding{Object: t, Code: "contested"}
	f.Message = fmt.Sprintf("%s and %s apply it: they revert each other's changes, and each may prune it", names[0], strings.Join(names[1:], " and "))
	f.Fixes = []string{"remove it from the source of all but one of them"}
	for _, applier := range appliers[:min(len(appliers), ownersShown)] {
		if k, _ := applier.Flux(); k.Keep.Key != "" {
			f.Fixes = append(f.Fixes, fmt.Sprintf("before you remove it from the source of %s, add the annotation %s to it there and wait until Flux has applied the change: otherwise %s deletes it", applier, k.Keep, k.Controller))
		}
	}
	return f
}

// labeledOwners checks whether the appliers in owner labels still apply an object. It reads a limited number of appliers, each
// once.
type labeledOwners struct {
	checker  *Checker
	read     map[controllers.ID]controllers.Object
	releases map[controllers.ID]*desired
	// unknown describes what could not be read, and why.
	unknown []string
}

// apply reports whether an owner has applied an object.
func (l *labeledOwners) apply(ctx context.Context, owner, t controllers.ID) bool {
	o := l.object(ctx, owner)
	if o == nil || controllers.IsRemote(o) {
		return false
	}
	k := observe.KindOf(owner)
	managed := controllers.Managed(o)
	if len(managed) == 0 && k.Release {
		return len(l.release(ctx, k, o).of(t)) > 0 // an older helm-controller keeps no inventory
	}
	return slices.Contains(managed, t)
}

// object returns an owner, or nil if it does not exist.
func (l *labeledOwners) object(ctx context.Context, owner controllers.ID) controllers.Object {
	if o := l.checker.Flux[owner]; o != nil {
		return o
	}
	o, known := l.read[owner]
	if known {
		return o
	}
	if len(l.read) >= observe.Lookups {
		l.miss(fmt.Sprintf("more than %d owners in the labels of objects in the inventory", observe.Lookups))
		return nil
	}
	o, err := l.checker.Cluster.Flux(ctx, owner)
	if err != nil {
		l.miss(observe.Unread(owner.String()+", an owner according to labels", err))
	}
	l.read[owner] = o
	return o
}

// release returns the manifest of a release, or nil if it cannot be read.
func (l *labeledOwners) release(ctx context.Context, k controllers.Kind, o controllers.Object) *desired {
	owner := k.IDOf(o)
	manifest, known := l.releases[owner]
	if !known {
		var err error
		if manifest, err = released(ctx, l.checker.Cluster, o); err != nil {
			l.miss(observe.Unread("the release of "+owner.String()+", an owner according to labels", err))
		}
		l.releases[owner] = manifest
	}
	return manifest
}

// miss records what could not be read.
func (l *labeledOwners) miss(what string) {
	if !slices.Contains(l.unknown, what) {
		l.unknown = append(l.unknown, what)
	}
}
