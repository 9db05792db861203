package rehearse

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilversion "k8s.io/apimachinery/pkg/version"

	"github.com/fluxkit/flux/internal/event"
	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/internal/redact"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diagnose"
	"github.com/fluxkit/flux/pkg/diff"
)

func quantity(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// compareManifests tries the manifest of each Flux object in both versions.
func (c *comparison) compareManifests(ctx context.Context) error {
	var mu examined
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(maxRequests)
	for _, m := range c.fluxManifests() {
		k, _ := controllers.KindOf(m.GroupVersionKind().Group, m.GetKind())
		ref := identity(m)
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
		c.judge(e)
	}
	return nil
}

// fluxManifests returns the manifests of all Flux objects: as the exported cluster has them, or as
// they were applied in the sandbox.
func (c *comparison) fluxManifests() []*unstructured.Unstructured {
	found := map[diff.Ref]*unstructured.Unstructured{}
	for _, s := range []*side{c.to, c.from} {
		for _, o := range s.objects {
			if m, ok := authored(o); ok && kube.IsFluxGroup(o.GroupVersionKind().Group) {
				found[identity(o)] = m
			}
		}
	}
	for _, o := range c.from.Exported {
		if kube.IsFluxGroup(o.GroupVersionKind().Group) {
			found[identity(o)] = o
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

// judge adds the findings of a manifest that concern the next version and not the present one.
func (c *comparison) judge(e *examination) {
	f := Finding{Object: diff.RefOf(e.manifest)}
	version := e.manifest.GetAPIVersion()
	newest, _ := schema.ParseGroupVersion(e.newest)
	migrate := c.migration(e, newest.Version)
	with := func(level Level, rule, message string, remedies ...string) {
		f := f
		f.Level, f.Rule, f.Message, f.Remedies = level, rule, message, remedies
		c.find(f)
	}
	switch {
	case e.before.notServed:
		return
	case e.after.notServed:
		with(Breaks, "not-served", fmt.Sprintf("%s is not served by Flux %s", version, c.to.distribution.Version), migrate...)
	case e.after.err != nil && e.before.err == nil:
		with(Breaks, "rejected", "rejected by the API server: "+e.after.err.Error())
	}
	removed := slices.Clone(e.after.removed)
	for _, field := range e.next.removed {
		if !slices.Contains(removed, field) {
			removed = append(removed, field)
		}
	}
	for _, field := range removed {
		if slices.Contains(e.before.removed, field) {
			continue
		}
		where := version
		if slices.Contains(e.next.removed, field) {
			where = e.newest
		}
		with(Breaks, "field-removed", fmt.Sprintf("%s does not exist in %s: its value is dropped", field, where),
			append([]string{"remove " + field + c.deprecation(e.kind, version, field)}, migrate...)...)
	}
	for _, warning := range e.after.warnings {
		if !slices.Contains(e.before.warnings, warning) {
			with(Migrate, "deprecated", warning, migrate...)
		}
	}
	if e.next.err != nil && e.after.err == nil {
		with(Migrate, "rejected", fmt.Sprintf("not valid in %s: %v", newest.Version, e.next.err))
	}
}

// migration returns when and how to migrate the files to the newest API version, nil for an older one.
func (c *comparison) migration(e *examination, newest string) []string {
	if utilversion.CompareKubeAwareVersionStrings(newest, e.manifest.GroupVersionKind().Version) <= 0 {
		return nil
	}
	when := "before the upgrade"
	if !e.early {
		when = fmt.Sprintf("with or after the upgrade, because Flux %s does not serve %s", c.from.distribution.Version, newest)
	}
	return []string{fmt.Sprintf("migrate the files %s: flux migrate -f . --version %s", when, c.to.distribution.Minor())}
}

// deprecation returns the note in the description of a field that says what replaces it, in
// parentheses, or "".
func (c *comparison) deprecation(k controllers.Kind, apiVersion, field string) string {
	for _, o := range c.from.set.Unstructured() {
		if o.GetName() != k.CRD() {
			continue
		}
		versions, _, _ := unstructured.NestedSlice(o.Object, "spec", "versions")
		for _, v := range versions {
			version, _ := v.(map[string]any)
			if k.Group+"/"+(controllers.Path{"name"}).String(version) != apiVersion {
				continue
			}
			at := []string{"schema", "openAPIV3Schema"}
			for _, name := range strings.Split(field, ".") {
				at = append(at, "properties", name)
			}
			text, _, _ := unstructured.NestedString(version, append(at, "description")...)
			if i := strings.Index(text, "Deprecated"); i >= 0 {
				return " (" + strings.Join(strings.Fields(text[i:]), " ") + ")"
			}
		}
	}
	return ""
}

// volatile matches what differs in the messages of any two clusters: digests, times and addresses.
var volatile = regexp.MustCompile(`(sha1|sha256):[0-9a-f]{7,64}|[0-9a-f]{40}|\b[0-9.]+(ms|s|m)\b|127\.\d+\.\d+\.\d+(:\d+)?|\b\d{1,2}:\d{2}:\d{2}\S*`)

func stable(message string) string { return volatile.ReplaceAllString(message, "…") }

// compareStates compares the conditions and inventories of the Flux objects.
func (c *comparison) compareStates(ctx context.Context) error {
	var failed []diagnose.Failed
	for _, t := range slices.SortedFunc(maps.Keys(c.from.flux), func(a, b controllers.Target) int { return strings.Compare(a.String(), b.String()) }) {
		was := c.from.flux[t]
		is, there := c.to.flux[t]
		if !there {
			continue // an object that differs
		}
		if c.omitted(t, is) {
			continue
		}
		ready, stays := was.kind.IsReady(was.object), is.kind.IsReady(is.object)
		before, after := was.kind.Ready(was.object), is.kind.Ready(is.object)
		f := Finding{Level: Changes, Object: refOf(t), Message: after.Message}
		switch {
		case ready && stays:
			c.compareInventory(was, is)
		case ready:
			failed = append(failed, diagnose.Failed{Target: t, Last: is.object})
		case stays:
			f.Rule, f.Message = "ready", "becomes ready; before: "+before.Message
			c.find(f)
		case stable(before.Message) == stable(after.Message):
			c.omit(t, "not ready with either version: "+after.Message, false)
		default:
			f.Rule, f.Message = "not-ready", "not ready with either version, for another reason: "+after.Message
			c.find(f)
		}
	}
	c.diagnose(ctx, failed)
	return nil
}

func refOf(t controllers.Target) diff.Ref {
	k, _ := controllers.FindKind(t.Kind)
	return diff.Ref{Group: k.Group, Kind: t.Kind, Namespace: t.Namespace, Name: t.Name}
}

func (c *comparison) omit(t controllers.Target, reason string, intended bool) {
	c.report.NotRehearsed = append(c.report.NotRehearsed, Omission{refOf(t), redact.Text(reason), intended})
}

// omitted lists an object that was suspended, and reports whether it was.
func (c *comparison) omitted(t controllers.Target, f flux) bool {
	if !f.kind.Suspension.Is(f.object) {
		return false
	}
	for _, o := range outward {
		if o.resource != f.kind.Resource || o.group != f.kind.Group {
			continue
		}
		_, remote := (controllers.Path{"spec.kubeConfig"}).Lookup(f.object)
		if o.when == remoteCluster && !remote {
			break
		}
		if o.reason != "" {
			c.omit(t, o.reason, o.when != remoteCluster)
		}
		return true
	}
	c.omit(t, "suspended in its manifest", true)
	return true
}

// diagnose adds a finding for each root cause of objects that are no longer ready.
func (c *comparison) diagnose(ctx context.Context, failed []diagnose.Failed) {
	doctor := diagnose.Doctor{Client: c.to.sandbox.Client, Home: c.to.set.Namespace, Now: c.to.Now()}
	verdict := doctor.Failed(ctx, failed)
	explained := map[controllers.Target]bool{}
	for _, found := range verdict.Cases {
		if found.Root.Code == "recovered" {
			c.report.Unsettled = append(c.report.Unsettled, found.Object.String()+" with Flux "+c.report.To+" became ready during the comparison")
			explained[found.Object] = true
			continue
		}
		f := Finding{Level: Breaks, Rule: "not-ready", Object: refOf(found.Root.Object), Message: found.Root.Message}
		for _, remedy := range found.Root.Remedies {
			// The cluster of the user does not have the problem yet.
			if !strings.HasPrefix(remedy, "flux reconcile") {
				f.Remedies = append(f.Remedies, remedy)
			}
		}
		for _, t := range append([]controllers.Target{found.Object}, found.Also...) {
			explained[t] = true
			if t != found.Root.Object {
				f.Also = append(f.Also, refOf(t))
			}
		}
		c.find(f)
	}
	for _, f := range failed {
		if !explained[f.Target] {
			c.find(Finding{Level: Breaks, Rule: "not-ready", Object: refOf(f.Target), Message: c.to.flux[f.Target].kind.Ready(f.Last).Message})
		}
	}
}

// compareInventory compares the API versions in the inventories of two ready objects. The objects
// themselves are compared as objects.
func (c *comparison) compareInventory(was, is flux) {
	before := map[diff.Ref]string{}
	for _, t := range was.kind.Managed(was.object) {
		before[refOf(t)] = t.APIVersion
	}
	for _, t := range is.kind.Managed(is.object) {
		if old, ok := before[refOf(t)]; ok && old != t.APIVersion {
			c.find(Finding{
				Level: Changes, Rule: "inventory", Object: refOf(is.target()),
				Message: fmt.Sprintf("the inventory has %s in %s instead of %s", t, t.APIVersion, old),
			})
		}
	}
}

// compareEvents adds the warning events of the next version about objects that are not ready or have
// no conditions. Objects that are ready in the end had temporary problems.
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
		t := controllers.Target{Kind: e.Kind, Namespace: e.Namespace, Name: e.Name}
		f, ok := c.to.flux[t]
		_, known := before[key]
		reported := slices.ContainsFunc(c.report.Findings, func(f Finding) bool {
			return f.Object == refOf(t) || slices.Contains(f.Also, refOf(t))
		})
		if !ok || known || reported || f.kind.HasConditions() && f.kind.IsReady(f.object) {
			continue
		}
		c.find(Finding{Level: Changes, Rule: "event", Object: refOf(t), Message: e.Reason + ": " + e.Message})
	}
	return nil
}

// warningEvents returns the last warning of each object and reason.
func warningEvents(ctx context.Context, s *side) (map[string]event.Event, error) {
	found := map[string]event.Event{}
	_, err := s.sandbox.Client.List(ctx, event.Resource(), kube.Selection{}, func(o controllers.Object) error {
		if e := event.Of(o); e.Type == "Warning" {
			found[strings.Join([]string{e.Kind, e.Namespace, e.Name, e.Reason, stable(e.Message)}, " ")] = e
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("listing the events with Flux %s: %w", s.distribution.Version, err)
	}
	return found, nil
}
