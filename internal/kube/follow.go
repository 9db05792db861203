package kube

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/fluxkit/flux/internal/budget"
	"github.com/fluxkit/flux/pkg/controllers"
)

// retryPause is the time between attempts to reopen a watch.
const retryPause = 200 * time.Millisecond

// watchStart is the maximum time until the server accepts a watch.
const watchStart = 30 * time.Second

// errNoResponse cancels a watch that the server did not accept in time.
var errNoResponse = errors.New("the API server does not respond")

// Event is a change of an object. For a deleted object, Object is the last state.
type Event struct {
	Object  controllers.Object
	Deleted bool
}

// Follow watches the selected objects and calls visit with every change until visit returns true or
// an error, or ctx is done. With a resourceVersion, it watches from that version. Without one, it
// first lists the objects, which must succeed, and visits them. It reopens a broken watch at the
// last resourceVersion. If that version has expired, it lists the objects again and visits missing
// objects as deleted.
func (c *Client) Follow(ctx context.Context, r Resource, s Selection, version string, visit func(Event) (bool, error)) error {
	var there []types.NamespacedName
	if s.Name != "" {
		there = append(there, types.NamespacedName{Namespace: s.Namespace, Name: s.Name})
	}
	return c.FollowFrom(ctx, r, s, version, there, visit)
}

// FollowFrom is like Follow, starting at a resourceVersion at which the given objects existed. It
// detects their deletion even if the version expires before the watch reports it.
func (c *Client) FollowFrom(ctx context.Context, r Resource, s Selection, version string, there []types.NamespacedName, visit func(Event) (bool, error)) error {
	f := newFollower(c, r, s, visit)
	f.version = version
	if version == "" {
		done, err := f.refresh(ctx)
		if visit := (*visitError)(nil); errors.As(err, &visit) {
			return visit.err
		}
		if done || err != nil {
			return err
		}
		return f.run(ctx)
	}
	for _, name := range there {
		o := controllers.Object{"kind": r.Kind, "metadata": map[string]any{"namespace": name.Namespace, "name": name.Name}}
		f.known[key(o)] = o
	}
	return f.run(ctx)
}

type follower struct {
	client    *Client
	resource  Resource
	selection Selection
	version   string
	known     map[string]controllers.Object
	visit     func(Event) (bool, error)
	without   pruned
}

func newFollower(c *Client, r Resource, s Selection, visit func(Event) (bool, error)) *follower {
	return &follower{client: c, resource: r, selection: s, known: map[string]controllers.Object{}, without: prune(s.Without), visit: func(e Event) (bool, error) {
		done, err := visit(e)
		if err != nil {
			return false, &visitError{err}
		}
		return done, nil
	}}
}

// refresh lists the objects and visits the changes.
func (f *follower) refresh(ctx context.Context) (done bool, err error) {
	changes, err := f.relist(ctx)
	for _, e := range changes {
		if done, err = f.visit(e); done || err != nil {
			return done, err
		}
	}
	return false, err
}

// once watches until the connection breaks. It returns an error only if a retry would not succeed.
func (f *follower) once(ctx context.Context) (bool, error) {
	if f.version == "" {
		if done, err := f.refresh(ctx); done || err != nil {
			return done, temporary(ctx, err)
		}
	}
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	// A server accepts a watch immediately, and then sends changes.
	late := time.AfterFunc(watchStart, func() {
		f.client.notify("retrying after the API server did not respond to the watch request for " + f.resource.Resource + " within " + watchStart.String())
		end(errNoResponse)
	})
	w, err := f.client.collection(f.resource, f.selection.Namespace).Watch(ctx, metav1.ListOptions{
		ResourceVersion: f.version, AllowWatchBookmarks: true,
		FieldSelector: f.selection.fields(), LabelSelector: f.selection.Labels,
	})
	late.Stop()
	if errors.Is(context.Cause(ctx), errNoResponse) {
		return false, nil
	}
	if expired(err) {
		f.version = ""
		return false, nil
	}
	if err != nil {
		return false, temporary(ctx, err)
	}
	defer w.Stop()
	if connected := f.selection.Connected; connected != nil {
		connected(true)
		defer connected(false)
	}
	for {
		select {
		case <-ctx.Done():
			return false, ctx.Err()
		case event, open := <-w.ResultChan():
			if !open {
				return false, nil
			}
			if done, broken, err := f.take(event); done || broken || err != nil {
				return done, err
			}
		}
	}
}

// take handles one event. broken reports whether the watch has ended.
func (f *follower) take(event watch.Event) (done, broken bool, err error) {
	if event.Type == watch.Error {
		if expired(apierrors.FromObject(event.Object)) {
			f.version = ""
		}
		return false, true, nil
	}
	u, ok := event.Object.(*unstructured.Unstructured)
	if !ok {
		return false, false, fmt.Errorf("watching %s: unexpected %T", f.resource.Resource, event.Object)
	}
	f.version = u.GetResourceVersion()
	f.without.remove(u.Object)
	if event.Type == watch.Bookmark {
		return false, false, nil
	}
	if event.Type == watch.Deleted {
		delete(f.known, key(u.Object))
	} else {
		f.known[key(u.Object)] = u.Object
	}
	if err := budget.Memory(f.resource.Resource); err != nil {
		return false, false, err
	}
	done, err = f.visit(Event{Object: u.Object, Deleted: event.Type == watch.Deleted})
	return done, false, err
}

// relist lists the objects and returns the changes since the last known state: first
// deletions, then the other changes in the order in which a watch would send them.
func (f *follower) relist(ctx context.Context) ([]Event, error) {
	found := map[string]controllers.Object{}
	var there, gone []Event
	version, err := f.client.List(ctx, f.resource, f.selection, func(o controllers.Object) error {
		id := key(o)
		found[id] = o
		if before, known := f.known[id]; !known || versionOf(before) != versionOf(o) {
			there = append(there, Event{Object: o})
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for id, o := range f.known {
		if _, still := found[id]; !still {
			gone = append(gone, Event{Object: o, Deleted: true})
		}
	}
	slices.SortFunc(gone, func(a, b Event) int { return strings.Compare(key(a.Object), key(b.Object)) })
	slices.SortStableFunc(there, func(a, b Event) int { return compareVersions(versionOf(a.Object), versionOf(b.Object)) })
	f.known, f.version = found, version
	return append(gone, there...), nil
}

// Older reports whether a is an earlier state than b, according to their resource versions.
func Older(a, b controllers.Object) bool {
	from, to := versionOf(a), versionOf(b)
	return from != "" && to != "" && compareVersions(from, to) < 0
}

// Same reports whether a and b have the same resource version.
func Same(a, b controllers.Object) bool { return versionOf(a) != "" && versionOf(a) == versionOf(b) }

// compareVersions compares resource versions, which are numbers of any length
// (see "comparable resource versions" in the Kubernetes API documentation).
func compareVersions(a, b string) int {
	return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b))
}

func versionOf(o controllers.Object) string {
	return controllers.Path{"metadata.resourceVersion"}.String(o)
}

// expired reports whether a watch cannot start at its resourceVersion because the version has expired, or because the
// server was restored from a backup and has not reached that version yet.
func expired(err error) bool {
	return apierrors.IsResourceExpired(err) || apierrors.IsGone(err) ||
		apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge)
}

// temporary returns err only if a retry would not succeed: ctx is done, or the server rejects the
// request permanently.
func temporary(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var visit *visitError
	if errors.As(err, &visit) || apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) || apierrors.IsNotFound(err) || apierrors.IsBadRequest(err) || apierrors.IsMethodNotSupported(err) {
		return err
	}
	return nil
}
