package testrun

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/internal/secrets/redact"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diff/timeline"
	"github.com/fluxkit/flux/pkg/testrun/settle"
)

// Timeline records the events after the head was pushed on top of the base.
type Timeline struct {
	// Base is the revision of the base, and NotReady lists its objects that were not ready.
	Base     string           `json:"base"`
	NotReady []settle.Status  `json:"notReady"`
	Entries  []timeline.Entry `json:"entries"`
}

// push replaces the files of the base with the files of the head, waits until the controllers have
// reconciled them, and records the changes of the objects that Read has read before. The run then has
// the state of the head.
func (r *Run) push(ctx context.Context) error {
	if r.Head == nil {
		return nil
	}
	if r.Unsettled != nil { // the report is then about the base and has no timeline
		return nil
	}
	t := &Timeline{Base: r.Base, NotReady: []settle.Status{}}
	before, _, _ := settle.Statuses(r.Flux)
	for _, s := range before {
		if s.Status == settle.NotReady || s.Status == settle.NotReconciled {
			t.NotReady = append(t.NotReady, s)
		}
	}
	rec := &recorder{run: r, known: map[controllers.ID]*object{}, start: r.Now()}
	for ref := range r.Objects {
		rec.relevant(ref)
	}
	watching, cancel := context.WithCancel(ctx)
	defer cancel()
	ended, err := rec.watch(watching)
	if err == nil {
		err = r.replace(ctx)
	}
	if err == nil {
		err = r.Settle(ctx)
	}
	if err == nil {
		err = r.Read(ctx)
	}
	cancel()
	if watched := ended(); err == nil {
		err = watched
	}
	for ref := range r.Objects {
		rec.relevant(ref)
	}
	t.Entries = rec.entries()
	r.Timeline = t
	return err
}

// replace pushes the files of the head, and requests the reconciliation of its sources, like a Git
// host's webhook.
func (r *Run) replace(ctx context.Context) error {
	r.Progress("pushing the head")
	before, err := r.files()
	if err != nil {
		return err
	}
	r.Repository = r.Head
	files, err := r.files()
	if err != nil {
		return err
	}
	if r.Pushing != nil {
		r.Pushing(ctx)
	}
	if err := r.Sandbox.Replace(ctx, r.Address, before, files, r.Now()); err != nil {
		return fmt.Errorf("pushing the head: %w", err)
	}
	token := r.Now().Format(time.RFC3339Nano)
	for t, f := range r.Flux {
		if (controllers.Path{"spec.url"}).String(f.Object) != r.Address || f.Kind.Kind != controllers.GitRepository {
			continue
		}
		err := r.Sandbox.Client.WithServedVersion(ctx, f.Kind, func(resource kube.Resource) error {
			_, err := r.Sandbox.Client.Annotate(ctx, resource, t.Namespace, t.Name, map[string]any{controllers.RequestAnnotation: token})
			return err
		})
		if err != nil {
			return fmt.Errorf("requesting the reconciliation of %s: %w", t, err)
		}
	}
	return nil
}

// object is the last known state of an object.
type object struct {
	uid     string
	content controllers.Object
	deleted time.Time
	// failure and release are the last recorded failure and release.
	failure, release string
	entries          []timeline.Entry
}

// recorder records the changes of objects.
type recorder struct {
	run   *Run
	start time.Time

	mu    sync.Mutex
	known map[controllers.ID]*object
	keep  map[controllers.ID]bool
}

// relevant marks an object in an inventory. Other objects, such as pods, are not part of the timeline.
func (c *recorder) relevant(ref controllers.ID) {
	if c.keep == nil {
		c.keep = map[controllers.ID]bool{}
	}
	c.keep[ref] = true
}

// watch watches all kinds in the inventories of the base, and the Flux kinds. It returns when all of
// them are listed.
func (c *recorder) watch(ctx context.Context) (ended func() error, err error) {
	targets := map[controllers.VersionedID]bool{}
	for _, o := range c.run.Objects {
		gvk := o.GroupVersionKind()
		targets[controllers.VersionedID{ID: controllers.NewID(gvk.GroupKind(), "", ""), Version: gvk.Version}] = true
	}
	resource, err := c.run.Resources(ctx, targets)
	if err != nil {
		return func() error { return nil }, err
	}
	resources := map[schema.GroupVersionKind]kube.Resource{}
	for _, o := range c.run.Objects {
		gvk := o.GroupVersionKind()
		resources[gvk] = resource(gvk)
	}
	g, ctx := errgroup.WithContext(ctx)
	listed := make(chan struct{}, len(resources))
	for gvk, resource := range resources {
		g.Go(func() error {
			first := true
			err := c.run.Sandbox.Client.Watch(ctx, context.WithCancel, resource, kube.Selection{}, func(all []controllers.Object) error {
				for _, o := range all {
					c.see(gvk, kube.Event{Object: o}, first)
				}
				if first {
					first = false
					listed <- struct{}{}
				}
				return nil
			}, func(e kube.Event) error {
				c.see(gvk, e, false)
				return nil
			})
			var absent *kube.MissingKindError
			if errors.As(err, &absent) || kube.NotServed(err) {
				return nil // its CRD was deleted
			}
			return settle.IgnoreCanceled(err)
		})
	}
	for range resources {
		select {
		case <-listed:
		case <-ctx.Done():
			return g.Wait, errors.Join(context.Cause(ctx), g.Wait())
		}
	}
	return g.Wait, nil
}

// see records an event. The first list has the objects of the base.
func (c *recorder) see(gvk schema.GroupVersionKind, e kube.Event, first bool) {
	u := &unstructured.Unstructured{Object: e.Object}
	ref := controllers.ID{Group: gvk.Group, Kind: gvk.Kind, Namespace: u.GetNamespace(), Name: u.GetName()}
	now := c.run.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	was := c.known[ref]
	is := &object{uid: string(u.GetUID()), content: content(e.Object)}
	if was != nil {
		is.entries, is.failure, is.release = was.entries, was.failure, was.release
	}
	entry := timeline.Entry{After: settle.Seconds(now.Sub(c.start)), Object: ref}
	switch {
	case first:
	case e.Deleted:
		is.deleted = now
		is.entries = append(is.entries, with(entry, timeline.Deleted, ""))
	case was == nil:
		is.entries = append(is.entries, with(entry, timeline.Created, ""))
	case !was.deleted.IsZero():
		// The deletion entry becomes a recreation entry.
		entry.Gap = max(settle.Seconds(now.Sub(was.deleted)), 0.1)
		is.entries[len(is.entries)-1] = ownersOf(with(entry, timeline.Recreated, timeline.Interrupted), was.content, is.content)
	case was.uid != is.uid:
		is.entries = append(is.entries, ownersOf(with(entry, timeline.Recreated, ""), was.content, is.content))
	case !apiequality.Semantic.DeepEqual(was.content, is.content):
		action := timeline.Changed
		if timeline.Template(was.content) != nil && !apiequality.Semantic.DeepEqual(timeline.Template(was.content), timeline.Template(is.content)) {
			action = timeline.Restarted
		}
		is.entries = append(is.entries, ownersOf(with(entry, action, ""), was.content, is.content))
	}
	if k, ok := controllers.KindOf(gvk.Group, gvk.Kind); ok && !e.Deleted {
		is.observe(k, e.Object, entry, first)
	}
	c.known[ref] = is
}

// observe records a failure of a Flux object and a release of a HelmRelease.
func (o *object) observe(k controllers.Kind, is controllers.Object, entry timeline.Entry, first bool) {
	failure, ready := "", k.Ready(is)
	if ready.Status == "False" && !k.Pending(is) && ready.Reason != "" {
		failure = redact.Text(settle.Flux{Kind: k, Object: is}.Failure())
	}
	if failure != o.failure && failure != "" && !first {
		o.entries = append(o.entries, with(entry, timeline.Failed, failure))
	}
	o.failure = failure
	if !k.Release {
		return
	}
	latest := func(field string) string { return controllers.Path{"status.history[0]." + field}.String(is) }
	action, release := timeline.Released, "revision "+latest("version")+": chart "+latest("chartVersion")
	if controllers.Uninstalled(is) {
		action = timeline.Uninstalled
	} else {
		release += ", " + latest("status")
	}
	if latest("version") != "" && release != o.release && !first {
		o.entries = append(o.entries, with(entry, action, redact.Text(release)))
	}
	o.release = release
}

func with(e timeline.Entry, action, message string) timeline.Entry {
	e.Action, e.Message = action, message
	return e
}

// ownersOf adds the previous and the current owner of an object whose owner has changed.
func ownersOf(e timeline.Entry, was, is controllers.Object) timeline.Entry {
	before, after := controllers.Owners(was), controllers.Owners(is)
	if len(before) > 0 && len(after) > 0 && before[0] != after[0] {
		e.Owners = []controllers.ID{before[0], after[0]}
	}
	return e
}

// content returns an object without the fields that the API server and controllers maintain.
func content(o controllers.Object) controllers.Object {
	u := (&unstructured.Unstructured{Object: o}).DeepCopy()
	for _, field := range [][]string{
		{"status"}, {"metadata", "managedFields"}, {"metadata", "resourceVersion"}, {"metadata", "generation"}, {"metadata", "uid"},
		{"metadata", "creationTimestamp"}, {"metadata", "finalizers"}, {"metadata", "deletionTimestamp"}, {"metadata", "deletionGracePeriodSeconds"},
		{"metadata", "annotations", controllers.RequestAnnotation}, {"metadata", "annotations", "deployment.kubernetes.io/revision"}, {"apiVersion"}, {"kind"},
	} {
		unstructured.RemoveNestedField(u.Object, field...)
	}
	if len(u.GetAnnotations()) == 0 {
		unstructured.RemoveNestedField(u.Object, "metadata", "annotations")
	}
	return u.Object
}

// entries returns the entries of relevant objects, in order.
func (c *recorder) entries() []timeline.Entry {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := []timeline.Entry{}
	for ref, o := range c.known {
		if c.keep[ref] {
			all = append(all, o.entries...)
		}
	}
	slices.SortStableFunc(all, func(a, b timeline.Entry) int {
		return cmp.Or(cmp.Compare(a.After, b.After), strings.Compare(a.Object.String(), b.Object.String()))
	})
	return all
}
