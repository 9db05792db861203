package kube

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/fluxkit/flux/pkg/controllers"
)

// retryPause separates attempts to reopen a watch that the server refused or
// the network lost. It grows no further: somebody is waiting for the answer.
const retryPause = 200 * time.Millisecond

// Event is a change of an object; Deleted objects come in their last state.
type Event struct {
	Object  controllers.Object
	Deleted bool
}

// Follow watches the selected objects and calls visit with every change until
// visit returns true or an error, or ctx ends. With a resourceVersion it
// starts there and sends nothing but the watch; without one it lists first
// and visits what there is. A lost connection is reopened where it was lost;
// when the server no longer remembers that point, the objects are listed
// again, and those that have gone in between are visited as deleted.
func (c *Client) Follow(ctx context.Context, r Resource, s Selection, version string, visit func(Event) (bool, error)) error {
	f := follower{client: c, resource: r, selection: s, version: version, known: map[string]controllers.Object{}, visit: visit}
	for {
		done, err := f.once(ctx)
		if done || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(retryPause):
		}
	}
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
		if done, err := f.relist(ctx); done || err != nil || f.version == "" {
			return done, err
		}
	}
	w, err := f.client.collection(f.resource, f.selection.Namespace).Watch(ctx, metav1.ListOptions{
		ResourceVersion: f.version, AllowWatchBookmarks: true,
		FieldSelector: f.selection.fields(), LabelSelector: f.selection.Labels,
	})
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
	key := u.GetNamespace() + "/" + u.GetName()
	if event.Type == watch.Deleted {
		delete(f.known, key)
	} else {
		f.known[key] = u.Object
	}
	done, err = f.visit(Event{Object: u.Object, Deleted: event.Type == watch.Deleted})
	return done, false, err
}

// relist leaves the version empty where the list has to be tried again.
func (f *follower) relist(ctx context.Context) (bool, error) {
	found := map[string]controllers.Object{}
	var listed []controllers.Object
	version, err := f.client.List(ctx, f.resource, f.selection, func(o controllers.Object) error {
		listed, found[key(o)] = append(listed, o), o
		return nil
	})
	if err != nil {
		return false, temporary(ctx, err)
	}
	gone := f.known
	f.known, f.version = found, version
	for key, o := range gone {
		if _, still := found[key]; still {
			continue
		}
		if done, err := f.visit(Event{Object: o, Deleted: true}); done || err != nil {
			return done, err
		}
	}
	for _, o := range listed {
		if done, err := f.visit(Event{Object: o}); done || err != nil {
			return done, err
		}
	}
	return false, nil
}

func expired(err error) bool {
	return apierrors.IsResourceExpired(err) || apierrors.IsGone(err)
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
