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

	"github.com/fluxkit/flux/pkg/controllers"
)

// retryPause separates attempts to reopen a watch that the server refused or
// the network lost. It grows no further: somebody is waiting for the answer.
const retryPause = 200 * time.Millisecond

// watchStart bounds how long the server may take to accept a watch.
const watchStart = 30 * time.Second

// errNoAnswer is the cause of the end of a watch that the server did not accept in time.
var errNoAnswer = errors.New("the API server does not answer")

// Event is a change of an object; Deleted objects come in their last state.
type Event struct {
	Object  controllers.Object
	Deleted bool
}

// Follow watches the selected objects and calls visit with every change until
// visit returns true or an error, or ctx ends. With a resourceVersion it
// starts there and sends nothing but the watch; without one it lists first,
// which has to succeed, and visits what there is. A lost connection is
// reopened where it was lost; when the server no longer remembers that point,
// the objects are listed again, and what has gone in between is visited as
// deleted.
func (c *Client) Follow(ctx context.Context, r Resource, s Selection, version string, visit func(Event) (bool, error)) error {
	var there []types.NamespacedName
	if s.Name != "" {
		there = append(there, types.NamespacedName{Namespace: s.Namespace, Name: s.Name})
	}
	return c.FollowFrom(ctx, r, s, version, there, visit)
}

// FollowFrom follows with a resourceVersion at which some objects were there:
// so their deletion is noticed even when the server forgets that version
// before it has shown them.
func (c *Client) FollowFrom(ctx context.Context, r Resource, s Selection, version string, there []types.NamespacedName, visit func(Event) (bool, error)) error {
	f := follower{client: c, resource: r, selection: s, version: version, known: map[string]controllers.Object{}}
	f.visit = func(e Event) (bool, error) {
		done, err := visit(e)
		if err != nil {
			return false, &visitError{err}
		}
		return done, nil
	}
	if version == "" {
		first, err := f.relist(ctx)
		if err != nil {
			return err
		}
		for _, e := range first {
			if done, err := visit(e); done || err != nil {
				return err
			}
		}
		return f.goOn(ctx)
	}
	for _, name := range there {
		o := controllers.Object{"kind": r.Kind, "metadata": map[string]any{"namespace": name.Namespace, "name": name.Name}}
		f.known[key(o)] = o
	}
	return f.goOn(ctx)
}

type follower struct {
	client    *Client
	resource  Resource
	selection Selection
	version   string
	known     map[string]controllers.Object
	visit     func(Event) (bool, error)
}

// once runs until the watch breaks. It returns an error only for what trying
// again would not mend.
func (f *follower) once(ctx context.Context) (bool, error) {
	if f.version == "" {
		changes, err := f.relist(ctx)
		if err != nil {
			return false, temporary(ctx, err)
		}
		for _, e := range changes {
			if done, err := f.visit(e); done || err != nil {
				return done, err
			}
		}
	}
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	// The server answers a watch at once, and then tells changes as they come.
	late := time.AfterFunc(watchStart, func() {
		f.client.notify("retrying after no answer from the API server to the watch of " + f.resource.Resource + " in " + watchStart.String())
		end(errNoAnswer)
	})
	w, err := f.client.collection(f.resource, f.selection.Namespace).Watch(ctx, metav1.ListOptions{
		ResourceVersion: f.version, AllowWatchBookmarks: true,
		FieldSelector: f.selection.fields(), LabelSelector: f.selection.Labels,
	})
	late.Stop()
	if errors.Is(context.Cause(ctx), errNoAnswer) {
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

// take handles one event of the watch; broken means that the watch is over.
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
	if event.Type == watch.Bookmark {
		return false, false, nil
	}
	if event.Type == watch.Deleted {
		delete(f.known, key(u.Object))
	} else {
		f.known[key(u.Object)] = u.Object
	}
	done, err = f.visit(Event{Object: u.Object, Deleted: event.Type == watch.Deleted})
	return done, false, err
}

// relist lists the objects anew and returns what has changed since they were
// known: first what has gone, then the others in the order in which a watch
// would have brought them.
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

// compareVersions orders resource versions, which are numbers of any length
// (Kubernetes API conventions, comparable resource versions).
func compareVersions(a, b string) int {
	return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b))
}

func versionOf(o controllers.Object) string {
	return controllers.Path{"metadata.resourceVersion"}.String(o)
}

// expired tells that a watch cannot start where it was asked to: the server
// has forgotten that version, or, being restored from a backup, is not there yet.
func expired(err error) bool {
	return apierrors.IsResourceExpired(err) || apierrors.IsGone(err) ||
		apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge)
}

// temporary passes on only what trying again would not mend: the end of the
// context and what the server refuses for good.
func temporary(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return nil
	}
	if apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) || apierrors.IsNotFound(err) || apierrors.IsBadRequest(err) || apierrors.IsMethodNotSupported(err) {
		return err
	}
	return nil
}
