package kube

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/pkg/controllers"
)

// Upserted is the result of an upsert.
type Upserted struct {
	// Before is nil if the object did not exist.
	Before, After controllers.Object
	// Resource is the resource in the version that was used.
	Resource Resource
}

// Upsert creates or updates an object with server-side apply, which keeps the fields of other managers unless the
// object contains them. With dryRun the server validates the object but does not store it.
func Upsert(ctx context.Context, c *Client, o *unstructured.Unstructured, dryRun bool) (Upserted, error) {
	u := Upserted{}
	try := func(r Resource) (err error) {
		u = Upserted{Resource: r}
		u.Before, err = c.Get(ctx, r, o.GetNamespace(), o.GetName())
		if apierrors.IsNotFound(err) && !NotServed(err) {
			u.Before = nil
		} else if err != nil {
			return err
		}
		wanted := o.DeepCopy()
		wanted.SetAPIVersion(r.GroupVersion().String())
		u.After, err = apply(ctx, c, r, wanted.Object, Applier{Manager: FieldManager, dryRun: dryRun})
		return err
	}
	var err error
	if k, ok := controllers.KindOf(o.GroupVersionKind().Group, o.GetKind()); ok {
		err = c.WithServedVersion(ctx, k, try)
	} else {
		err = try(ResourceFor(o.GroupVersionKind()))
	}
	if err != nil {
		return u, fmt.Errorf("applying %s: %w", Describe(o), err)
	}
	return u, nil
}

// bookkeeping lists the fields that the server maintains.
var bookkeeping = []string{"metadata.managedFields", "metadata.resourceVersion", "metadata.generation", "status"}

// Changes returns the changed fields, sorted, except those that the server maintains.
func (u Upserted) Changes() []string {
	changed := map[string]bool{}
	differences("", u.Before, u.After, changed)
	return slices.Sorted(maps.Keys(changed))
}

func differences(path string, before, after any, changed map[string]bool) {
	if slices.Contains(bookkeeping, path) {
		return
	}
	a, isMap := before.(map[string]any)
	b, areMaps := after.(map[string]any)
	if !isMap || !areMaps {
		if !reflect.DeepEqual(before, after) {
			changed[path] = true
		}
		return
	}
	for _, m := range []map[string]any{a, b} {
		for key := range m {
			below := key
			if path != "" {
				below = path + "." + key
			}
			differences(below, a[key], b[key], changed)
		}
	}
}
