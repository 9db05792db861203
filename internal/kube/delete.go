package kube

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxkit/flux/pkg/controllers"
)

// ErrAppeared is returned by WaitDeleted if an object was created in the meantime.
var ErrAppeared = errors.New("a new object was created")

// WaitDeleted watches the selected objects until none of those for which keep returns true
// remains. If ctx ends first, it returns the remaining objects.
func (c *Client) WaitDeleted(ctx context.Context, r Resource, s Selection, keep func(controllers.Object) bool) ([]controllers.Object, error) {
	return waitDeleted(ctx, c, r, s, keep, func(controllers.Object) bool { return false })
}

// WaitTerminated is like WaitDeleted for objects that have already been deleted: an object without a deletionTimestamp
// must be a new one.
func WaitTerminated(ctx context.Context, c *Client, r Resource, s Selection) ([]controllers.Object, error) {
	all := func(controllers.Object) bool { return true }
	return waitDeleted(ctx, c, r, s, all, func(o controllers.Object) bool { return !Terminating(o) })
}

// Terminating reports whether a deleted object still exists because of its finalizers or its grace period.
func Terminating(o controllers.Object) bool {
	return (controllers.Path{"metadata.deletionTimestamp"}).String(o) != ""
}

func waitDeleted(ctx context.Context, c *Client, r Resource, s Selection, keep, created func(controllers.Object) bool) ([]controllers.Object, error) {
	first := map[string]bool{}
	var f *follower
	left := func() []controllers.Object {
		var objects []controllers.Object
		for _, o := range f.known {
			if keep(o) {
				objects = append(objects, o)
			}
		}
		slices.SortFunc(objects, func(a, b controllers.Object) int { return strings.Compare(controllers.Name(a), controllers.Name(b)) })
		return objects
	}
	f = newFollower(c, r, s, func(e Event) (bool, error) {
		if !e.Deleted && keep(e.Object) && !first[key(e.Object)] {
			return false, ErrAppeared
		}
		return len(left()) == 0, nil
	})
	var err error
	f.version, err = c.List(ctx, r, s, func(o controllers.Object) error {
		f.known[key(o)], first[key(o)] = o, true
		if created(o) {
			return ErrAppeared
		}
		return nil
	})
	if errors.Is(err, ErrAppeared) {
		return left(), err
	}
	if err != nil {
		return nil, fmt.Errorf("listing the remaining %s: %w", r.Resource, err)
	}
	if len(left()) == 0 {
		return nil, nil
	}
	if err := f.run(ctx); err != nil {
		return left(), err
	}
	return nil, nil
}

// Remove deletes an object. It returns no error if the object does not exist.
func (c *Client) Remove(ctx context.Context, r Resource, namespace, name string) error {
	if _, err := c.Delete(ctx, r, namespace, name); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("deleting %s %q: %w", r.Kind, name, err)
	}
	return nil
}

// RemoveAll deletes the objects in a namespace that match a label selector.
func (c *Client) RemoveAll(ctx context.Context, r Resource, s Selection) error {
	if s.Namespace == "" || s.Labels == "" {
		return fmt.Errorf("deleting %s: a namespace and a label selector are required", r.Resource)
	}
	background := metav1.DeletePropagationBackground
	err := c.collection(r, s.Namespace).DeleteCollection(ctx, metav1.DeleteOptions{PropagationPolicy: &background},
		metav1.ListOptions{LabelSelector: s.Labels})
	if err != nil {
		return fmt.Errorf("deleting the %s with labels %q: %w", r.Resource, s.Labels, err)
	}
	return nil
}

// Finalizers returns the finalizers of an object.
func Finalizers(o controllers.Object) []string {
	return controllers.Path{"metadata.finalizers"}.Strings(o)
}

// OwnFinalizer reports whether a finalizer belongs to a Flux controller.
func OwnFinalizer(finalizer string) bool {
	domain, _, _ := strings.Cut(finalizer, "/")
	return domain == "fluxcd.io" || strings.HasSuffix(domain, ".fluxcd.io")
}

// RemoveFinalizers removes the finalizers of Flux controllers from an object and keeps all others.
// The patch contains the resourceVersion, so that concurrently added finalizers are not lost.
func (c *Client) RemoveFinalizers(ctx context.Context, r Resource, o controllers.Object) error {
	namespace, name := controllers.Namespace(o), controllers.Name(o)
	for {
		change := map[string]any{"metadata": map[string]any{
			"resourceVersion": controllers.Path{"metadata.resourceVersion"}.String(o),
			"finalizers":      slices.DeleteFunc(Finalizers(o), OwnFinalizer),
		}}
		_, err := c.MergePatch(ctx, r, namespace, name, change)
		if err == nil || apierrors.IsNotFound(err) {
			return nil
		}
		if !apierrors.IsConflict(err) {
			return fmt.Errorf("removing the finalizers of %s %s/%s: %w", r.Kind, namespace, name, err)
		}
		o, err = c.Get(ctx, r, namespace, name)
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading %s %s/%s: %w", r.Kind, namespace, name, err)
		}
	}
}
