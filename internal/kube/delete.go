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

// ErrAppeared is returned by Gone when an object has come that was not there
// before: somebody still makes them.
var ErrAppeared = errors.New("a new object has appeared")

// Gone watches until none of the selected objects that keep returns true for
// is left. When ctx ends before, it returns those that are.
func (c *Client) Gone(ctx context.Context, r Resource, s Selection, keep func(controllers.Object) bool) ([]controllers.Object, error) {
	f := &follower{client: c, resource: r, selection: s, known: map[string]controllers.Object{}}
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
	first := map[string]bool{}
	var err error
	f.version, err = c.List(ctx, r, s, func(o controllers.Object) error {
		f.known[key(o)], first[key(o)] = o, true
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("listing the %s that are left: %w", r.Resource, err)
	}
	f.visit = func(e Event) (bool, error) {
		if !e.Deleted && keep(e.Object) && !first[key(e.Object)] {
			return false, &visitError{ErrAppeared}
		}
		return len(left()) == 0, nil
	}
	if len(left()) == 0 {
		return nil, nil
	}
	if err := f.goOn(ctx); err != nil {
		return left(), err
	}
	return nil, nil
}

// Remove deletes an object; one that is gone already is no error.
func (c *Client) Remove(ctx context.Context, r Resource, namespace, name string) error {
	if err := c.Delete(ctx, r, namespace, name); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("deleting %s %q: %w", r.Kind, name, err)
	}
	return nil
}

// RemoveAll deletes the objects of a namespace that a label selector names.
func (c *Client) RemoveAll(ctx context.Context, r Resource, s Selection) error {
	if s.Namespace == "" || s.Labels == "" {
		return fmt.Errorf("deleting %s: neither a namespace nor labels say which", r.Resource)
	}
	background := metav1.DeletePropagationBackground
	err := c.collection(r, s.Namespace).DeleteCollection(ctx, metav1.DeleteOptions{PropagationPolicy: &background},
		metav1.ListOptions{LabelSelector: s.Labels})
	if err != nil {
		return fmt.Errorf("deleting the %s labelled %q: %w", r.Resource, s.Labels, err)
	}
	return nil
}

// Finalizers returns the finalizers of an object.
func Finalizers(o controllers.Object) []string {
	v, _ := controllers.Path{"metadata.finalizers"}.Lookup(o)
	list, _ := v.([]any)
	var finalizers []string
	for _, item := range list {
		if s, ok := item.(string); ok {
			finalizers = append(finalizers, s)
		}
	}
	return finalizers
}

// OwnFinalizer tells whether a finalizer is one of Flux's controllers.
func OwnFinalizer(finalizer string) bool {
	domain, _, _ := strings.Cut(finalizer, "/")
	return domain == "fluxcd.io" || strings.HasSuffix(domain, ".fluxcd.io")
}

// Release removes the finalizers of Flux's controllers from an object and
// keeps those of others. It names the version that it has read, so that a
// finalizer that is added at the same time is not lost.
func (c *Client) Release(ctx context.Context, r Resource, o controllers.Object) error {
	namespace, name := controllers.Namespace(o), controllers.Name(o)
	for {
		change := map[string]any{"metadata": map[string]any{
			"resourceVersion": controllers.Path{"metadata.resourceVersion"}.String(o),
			"finalizers":      slices.DeleteFunc(Finalizers(o), OwnFinalizer),
		}}
		_, err := c.Merge(ctx, r, namespace, name, change)
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
