package rehearse

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilversion "k8s.io/apimachinery/pkg/version"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/internal/kube/event"
	"github.com/fluxkit/flux/internal/lazy"
	"github.com/fluxkit/flux/internal/secrets/redact"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diagnose"
	"github.com/fluxkit/flux/pkg/testrun"
	"github.com/fluxkit/flux/pkg/testrun/settle"
)

// compareManifests tries the manifest of each Flux object with both versions.
func (c *comparison) compareManifests(ctx context.Context) error {
	var mu examined
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(testrun.MaxRequests)
	for _, m := range c.fluxManifests() {
		k, _ := controllers.KindOf(m.GroupVersionKind().Group, m.GetKind())
		ref := controllers.IDOf(m.Object)
		c.manifests[ref] = m
		g.Go(func() error {
			e, err := examine(ctx, c.from, c.to, k, m)
			mu.add(e)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	for _, e := range mu.sorted() {
		c.addFindings(e)
	}
	return nil
}

// fluxManifests returns the manifests of all Flux objects: as the exported cluster has them, or as
// they were applied in the sandbox.
func (c *comparison) fluxManifests() []*unstructured.Unstructured {
	found := map[controllers.ID]*unstructured.Unstructured{}
	for _, s := range []*testrun.Run{c.to, c.from} {
		for _, o := range s.Objects {
			if m, ok := testrun.Applied(o); ok && kube.IsFluxGroup(o.GroupVersionKind().Group) {
				found[controllers.IDOf(o.Object)] = m
			}
		}
	}
	for _, o := range c.from.Exported {
		if kube.IsFluxGroup(o.GroupVersionKind().Group) {
			found[controllers.IDOf(o.Object)] = o
		}
	}
	var all []*unstructured.Unstructured
	for _, m := range found {
		if _, ok := controllers.KindOf(m.GroupVersionKind().Group, m.GetKind()); ok {
			all = append(all, m)
		}
	}
	return all
}

// addFindings adds the problems that a manifest has with the next version but not with the current one.
func (c *comparison) addFindings(e *examination) {
	f := Finding{Object: controllers.VersionedIDOf(e.manifest.Object)}
	version := e.manifest.GetAPIVersion()
	newest, _ := schema.ParseGroupVersion(e.newest)
	migrate := c.migration(e, newest.Version)
	with := func(level Level, rule, message string, remedies ...string) {
		f := f
		f.Level, f.Rule, f.Message, f.Remedies = level, rule, message, remedies
		c.find(f)
	}
	switch {
	case e.before.NotServed:
		return
	case e.after.NotServed:
		with(Breaks, "not-served", fmt.Sprintf("%s is not served by Flux %s", version, c.to.Distribution.Version), migrate...)
	case e.after.Err != nil && e.before.Err == nil:
		with(Breaks, "rejected", "rejected by the API server: "+e.after.Err.Error())
	}
	removed := slices.Clone(e.after.Removed)
	for _, field := range e.next.Removed {
		if !slices.Contains(removed, field) {
			removed = append(removed, field)
		}
	}
	for _, field := range removed {
		if slices.Contains(e.before.Removed, field) {
			continue
		}
		where := version
		if slices.Contains(e.next.Removed, field) {
			where = e.newest
		}
		with(Breaks, "field-removed", fmt.Sprintf("%s does not exist in %s: its value is dropped", field, where),
			append([]string{conversion(e.kind, field)}, migrate...)...)
	}
	for _, warning := range e.after.Warnings {
		if !slices.Contains(e.before.Warnings, warning) {
			with(Migrate, "deprecated", warning, migrate...)
		}
	}
	if e.next.Err != nil && e.after.Err == nil {
		with(Migrate, "rejected", fmt.Sprintf("not valid in %s: %v", newest.Version, e.next.Err))
	}
}

// migration describes when and how to migrate the files to the newest API version. It returns nil for an older version.
func (c *comparison) migration(e *examination, newest string) []string {
	if utilversion.CompareKubeAwareVersionStrings(newest, e.manifest.GroupVersionKind().Version) <= 0 {
		return nil
	}
	when := "before the upgrade"
	if !e.early {
		when = fmt.Sprintf("with or after the upgrade, because Flux %s does not serve %s", c.from.Distribution.Version, newest)
	}
	return []string{fmt.Sprintf("migrate the files %s: flux migrate -f . --version %s", when, c.to.Distribution.Minor())}
}

// conversion describes how to convert a field that no longer exists.
func conversion(k controllers.Kind, field string) string {
	for _, r := range k.Removed {
		if "spec."+r.Field == field {
			return r.ByHand()
		}
	}
	return "remove " + field
}

// volatile matches the parts of messages that differ between any two clusters: digests, times and addresses.
var volatile = lazy.Regexp(`(sha1|sha256):[0-9a-f]{7,64}|[0-9a-f]{40}|\b[0-9.]+(ms|s|m)\b|127\.\d+\.\d+\.\d+(:\d+)?|\b\d{1,2}:\d{2}:\d{2}\S*`)

func stable(message string) string { return volatile().ReplaceAllString(message, "…") }

// compareStates compares the conditions and inventories of the Flux objects.
func (c *comparison) compareStates(ctx context.Context) error {
	var failed []diagnose.Failed
	for _, t := range sorted(c.from.Flux) {
		was := c.from.Flux[t]
		is, there := c.to.Flux[t]
		if !there {
			continue // compareObjects reports the difference
		}
		if c.omitted(t, is) {
			continue
		}
		ready, stays := was.Kind.IsReady(was.Object), is.Kind.IsReady(is.Object)
		before, after := was.Kind.Ready(was.Object), is.Kind.Ready(is.Object)
		f := Finding{Level: Changes, Object: unversioned(t), Message: after.Message}
		switch {
		case ready && stays:
			c.compareInventory(was, is)
		case ready:
			failed = append(failed, diagnose.Failed{ID: t, Last: is.Object})
		case stays:
			f.Rule, f.Message = "ready", "becomes ready; before: "+before.Message
			c.find(f)
		case stable(before.Message) == stable(after.Message):
			c.omit(t, "not ready with either version: "+after.Message, false)
		default:
			f.Rule, f.Message = "not-ready", "not ready with either version, but the message changes: "+after.Message
			c.find(f)
		}
	}
	c.diagnose(ctx, failed)
	return nil
}

func (c *comparison) omit(t controllers.ID, reason string, intended bool) {
	c.report.NotRehearsed = append(c.report.NotRehearsed, settle.Omission{Object: t, Reason: redact.Text(reason), Intended: intended})
}

// omitted reports whether an object was suspended, and lists it if so.
func (c *comparison) omitted(t controllers.ID, f settle.Flux) bool {
	suspended := f.Suspended()
	if suspended == nil {
		return false
	}
	if suspended.Reason != "" {
		c.omit(t, suspended.Reason, suspended.Intended)
	}
	return true
}

// diagnose adds a finding for each root cause of objects that are no longer ready.
func (c *comparison) diagnose(ctx context.Context, failed []diagnose.Failed) {
	diagnoser := diagnose.Diagnoser{Client: c.to.Sandbox.Client, Home: c.to.Set.Namespace, Now: c.to.Now()}
	result := diagnoser.Failed(ctx, failed)
	explained := map[controllers.ID]bool{}
	for _, found := range result.Causes {
		if found.Root().Code == "recovered" {
			c.report.Unsettled = append(c.report.Unsettled, found.Object.String()+" with Flux "+c.report.To+" became ready during the comparison")
			explained[found.Object] = true
			continue
		}
		f := Finding{Level: Breaks, Rule: "not-ready", Object: unversioned(found.Root().Object), Message: found.Root().Message}
		for _, remedy := range found.Root().Remedies() {
			// The user's cluster does not have the problem yet.
			if !strings.HasPrefix(remedy, "flux reconcile") {
				f.Remedies = append(f.Remedies, remedy)
			}
		}
		for _, t := range append([]controllers.ID{found.Object}, found.Also...) {
			explained[t] = true
			if t != found.Root().Object {
				f.Also = append(f.Also, t)
			}
		}
		c.find(f)
	}
	for _, f := range failed {
		if !explained[f.ID] {
			c.find(Finding{Level: Breaks, Rule: "not-ready", Object: unversioned(f.ID), Message: c.to.Flux[f.ID].Kind.Ready(f.Last).Message})
		}
	}
}

// compareInventory compares the API versions in the inventories of two ready objects.
// compareObjects compares the objects themselves.
func (c *comparison) compareInventory(was, is settle.Flux) {
	before := map[controllers.ID]controllers.VersionedID{}
	for _, e := range controllers.Inventory(was.Object) {
		before[e.ID] = e
	}
	for _, e := range controllers.Inventory(is.Object) {
		if old, ok := before[e.ID]; ok && old != e {
			c.find(Finding{
				Level: Changes, Rule: "inventory", Object: unversioned(is.ID()),
				Message: fmt.Sprintf("the inventory has %s in %s instead of %s", e.ID, e.GroupVersionKind().GroupVersion(), old.GroupVersionKind().GroupVersion()),
			})
		}
	}
}

// compareEvents adds the warning events of the next version about objects that are not ready or have
// no conditions. The problems of objects that became ready were temporary.
func (c *comparison) compareEvents(ctx context.Context) error {
	before, err := warningEvents(ctx, c.from)
	if err != nil {
		return err
	}
	after, err := warningEvents(ctx, c.to)
	if err != nil {
		return err
	}
	for key, e := range after {
		t := e.About
		f, ok := c.to.Flux[t]
		_, known := before[key]
		reported := slices.ContainsFunc(c.report.Findings, func(f Finding) bool {
			return f.Object.ID == t || slices.Contains(f.Also, t)
		})
		if !ok || known || reported || f.Kind.HasConditions() && f.Kind.IsReady(f.Object) {
			continue
		}
		c.find(Finding{Level: Changes, Rule: "event", Object: unversioned(t), Message: e.Reason + ": " + e.Message})
	}
	return nil
}

// warningEvents returns the last warning of each object and reason.
func warningEvents(ctx context.Context, s *testrun.Run) (map[string]event.Event, error) {
	found := map[string]event.Event{}
	_, err := s.Sandbox.Client.List(ctx, event.Resource(), kube.Selection{}, func(o controllers.Object) error {
		if e := event.Of(o); e.Type == "Warning" {
			found[strings.Join([]string{e.About.String(), e.Reason, stable(e.Message)}, " ")] = e
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("listing the events with Flux %s: %w", s.Distribution.Version, err)
	}
	return found, nil
}

// unversioned returns the ID of a live object without a version, because the API server returns the object in each
// version of its kind.
func unversioned(i controllers.ID) controllers.VersionedID { return controllers.VersionedID{ID: i} }
