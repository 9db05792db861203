package examine

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/internal/secrets/redact"
	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diff/builds"
	"github.com/fluxkit/flux/pkg/repository"
	"github.com/fluxkit/flux/pkg/testrun"
)

// owners maps the objects in inventories to their Flux objects.
func (r examination) owners() map[controllers.ID][]controllers.ID {
	found := map[controllers.ID][]controllers.ID{}
	for _, t := range r.sortedFlux() {
		f := r.Flux[t]
		for _, m := range controllers.Managed(f.Object) {
			found[m] = append(found[m], t)
		}
	}
	return found
}

// listConflicts lists the objects in several inventories. It reconciles each owner again to determine
// whether they apply the same content.
func (r examination) listConflicts(ctx context.Context, report *Report) error {
	shared := map[controllers.ID][]controllers.ID{}
	again := map[controllers.ID]bool{}
	for ref, owners := range r.owners() {
		if len(owners) < 2 {
			continue
		}
		shared[ref] = owners
		for _, t := range owners {
			again[t] = true
		}
	}
	states, err := r.ownerStates(ctx, shared, again)
	if err != nil {
		return err
	}
	for _, ref := range slices.SortedFunc(maps.Keys(shared), func(a, b controllers.ID) int { return strings.Compare(a.String(), b.String()) }) {
		c := Conflict{Object: ref, File: r.fileOf(ctx, ref), Owners: shared[ref]}
		r.compareOwners(&c, shared[ref], states)
		report.Conflicts = append(report.Conflicts, c)
	}
	return nil
}

// ownerStates returns the shared objects as each owner applies them. They are unknown for a failed owner,
// and for the second of two HelmReleases that manage one release.
func (r examination) ownerStates(ctx context.Context, shared map[controllers.ID][]controllers.ID, again map[controllers.ID]bool) (map[controllers.ID]map[controllers.ID]*unstructured.Unstructured, error) {
	states := map[controllers.ID]map[controllers.ID]*unstructured.Unstructured{}
	var releases []controllers.ID
	for _, t := range r.sortedFlux() {
		if f := r.Flux[t]; !again[t] || !f.Kind.IsReady(f.Object) {
			continue
		} else if f.Kind.Release {
			releases = append(releases, t)
			continue
		}
		applied, err := r.reapply(ctx, t, shared)
		if err != nil {
			return nil, err
		}
		states[t] = applied
	}
	known := map[stored]bool{}
	for _, t := range releases {
		at, err := storedOf(r.Flux[t])
		if err != nil {
			return nil, err
		}
		if known[at] {
			continue
		}
		known[at] = true
		if states[t], err = r.released(ctx, r.Flux[t], at, shared); err != nil {
			return nil, err
		}
	}
	return states, nil
}

// compareOwners compares the objects that the owners apply. An unknown object counts as different.
func (r examination) compareOwners(c *Conflict, owners []controllers.ID, states map[controllers.ID]map[controllers.ID]*unstructured.Unstructured) {
	var first *unstructured.Unstructured
	for _, t := range owners {
		o := states[t][c.Object]
		switch {
		case o == nil:
			c.Differs = true
		case first == nil:
			first = o
		default:
			for _, field := range differing(first, o) {
				c.Differs = true
				if !slices.Contains(c.Fields, field) {
					c.Fields = append(c.Fields, field)
				}
			}
		}
	}
}

// differing returns the paths of the fields that differ.
func differing(a, b *unstructured.Unstructured) []string {
	side := func(o *unstructured.Unstructured) *repository.Rendering {
		return &repository.Rendering{Owner: &unstructured.Unstructured{Object: map[string]any{}}, Build: &build.Result{Objects: []build.Object{{Unstructured: o}}}}
	}
	var fields []string
	for _, result := range builds.Compare([]builds.Pair{{Before: side(a), After: side(b)}}) {
		for _, change := range result.Changes {
			for _, f := range change.Fields {
				fields = append(fields, f.Path)
			}
		}
	}
	return fields
}

// reapply reconciles an owner, and returns the selected objects without owner-specific fields.
func (r examination) reapply(ctx context.Context, t controllers.ID, selected map[controllers.ID][]controllers.ID) (map[controllers.ID]*unstructured.Unstructured, error) {
	if err := r.Reconcile(ctx, t); err != nil {
		return nil, err
	}
	found, err := r.ReadAll(ctx, managed(r.Flux[t], selected))
	for _, o := range found {
		withoutOwner(o)
	}
	return found, err
}

// listOrphans lists the objects that an owner has applied but that are missing in its inventory.
func (r examination) listOrphans(ctx context.Context, report *Report) error {
	owners := r.owners()
	upstream := map[controllers.ID]bool{} // created by helm-controller, such as a HelmChart
	existing := map[controllers.ID]bool{}
	for _, f := range r.Flux {
		existing[f.ID()] = true
		for _, t := range f.Kind.Upstream(f.Object) {
			upstream[t] = true
		}
	}
	var mu sync.Mutex
	found := map[controllers.ID]Orphan{}
	err := r.eachLabelled(ctx, func(o *unstructured.Unstructured) {
		ref := controllers.IDOf(o.Object)
		if len(o.GetOwnerReferences()) > 0 || o.GetDeletionTimestamp() != nil || upstream[ref] || len(owners[ref]) > 0 || !applied(o) {
			return
		}
		labelled := controllers.Owners(o.Object)
		if len(labelled) == 0 || labelled[0] == ref {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		owner := labelled[0]
		if f := r.Flux[owner]; existing[owner] && f.Failed() && !f.Stuck() {
			return // the object is still being applied, and is added to the inventory afterwards
		}
		found[ref] = Orphan{ref, owner, !existing[owner]}
	})
	for _, o := range found {
		report.Orphans = append(report.Orphans, o)
	}
	slices.SortFunc(report.Orphans, func(a, b Orphan) int { return strings.Compare(a.Object.String(), b.Object.String()) })
	return err
}

// applied reports whether a Flux controller has applied an object. Other controllers copy labels.
func applied(o *unstructured.Unstructured) bool {
	return slices.ContainsFunc(o.GetManagedFields(), func(e metav1.ManagedFieldsEntry) bool {
		return e.Operation == "Apply" && slices.ContainsFunc(controllers.Kinds, func(k controllers.Kind) bool { return k.Applies() && k.Manager == e.Manager })
	})
}

// eachLabelled calls each with all objects that have the labels of an owner, possibly concurrently.
func (r examination) eachLabelled(ctx context.Context, each func(*unstructured.Unstructured)) error {
	apis, err := r.Sandbox.Client.Discovery().APIs(ctx)
	if err != nil {
		return err
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(testrun.MaxRequests)
	for _, api := range apis {
		gv, err := schema.ParseGroupVersion(api)
		if err != nil {
			continue // an entry with a kind
		}
		kinds, err := r.Sandbox.Client.Discovery().Kinds(ctx, gv)
		if kube.NotServed(err) || apierrors.IsNotFound(err) {
			continue // an entry with a kind of the core group, or a CRD that was deleted
		}
		if err != nil {
			return err
		}
		for kind, resource := range kinds {
			for _, k := range controllers.Kinds {
				if !k.Applies() {
					continue
				}
				g.Go(func() error {
					_, err := r.Sandbox.Client.List(ctx, resource, kube.Selection{Labels: k.Group + "/name"}, func(o controllers.Object) error {
						object := &unstructured.Unstructured{Object: o}
						object.SetGroupVersionKind(gv.WithKind(kind))
						each(object)
						return nil
					})
					if apierrors.IsMethodNotSupported(err) || apierrors.IsNotFound(err) || kube.NotServed(err) {
						return nil // such as SubjectAccessReview
					}
					return err
				})
			}
		}
	}
	return g.Wait()
}

// listDeprecated lists the API server warnings about the manifests.
func (r examination) listDeprecated(ctx context.Context, report *Report) error {
	var mu sync.Mutex
	g, running := errgroup.WithContext(ctx)
	g.SetLimit(testrun.MaxRequests)
	for ref, o := range r.Objects {
		m, ok := testrun.Applied(o)
		if !ok {
			continue
		}
		g.Go(func() error {
			a, err := r.Try(running, m)
			if err != nil {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			for _, warning := range a.Warnings {
				report.Deprecated = append(report.Deprecated, Deprecation{Object: ref, Message: redact.Text(warning)})
			}
			return nil
		})
	}
	err := g.Wait()
	slices.SortFunc(report.Deprecated, func(a, b Deprecation) int {
		return strings.Compare(a.Object.String()+a.Message, b.Object.String()+b.Message)
	})
	for i := range report.Deprecated {
		report.Deprecated[i].File = r.fileOf(ctx, report.Deprecated[i].Object)
	}
	return err
}
