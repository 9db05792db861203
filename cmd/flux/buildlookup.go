package main

import (
	"context"
	"fmt"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/controllers"
)

// finderIn finds the objects of a cluster that the templates of charts look up.
func finderIn(client *kube.Client) build.Finder {
	var mu sync.Mutex
	known := map[schema.GroupVersion]map[string]kube.Resource{}
	kinds := func(ctx context.Context, gv schema.GroupVersion) (map[string]kube.Resource, error) {
		mu.Lock()
		defer mu.Unlock()
		if found, ok := known[gv]; ok {
			return found, nil
		}
		found, err := client.Kinds(ctx, gv)
		if err == nil {
			known[gv] = found
		}
		return found, err
	}
	return func(ctx context.Context, wanted build.Wanted) (map[string]any, error) {
		gv, err := schema.ParseGroupVersion(wanted.APIVersion)
		if err != nil {
			return nil, fmt.Errorf("looking up %s: %w", wanted.Kind, err)
		}
		served, err := kinds(ctx, gv)
		if err != nil && !apierrors.IsNotFound(err) {
			return nil, fmt.Errorf("asking for the kinds of %s: %w", gv, err)
		}
		r, ok := served[wanted.Kind]
		if !ok { // the controller fails with it, too
			return nil, fmt.Errorf("looking up %s: the cluster does not serve it in %s", wanted.Kind, wanted.APIVersion)
		}
		if wanted.Name == "" {
			return listOf(ctx, client, r, wanted.Namespace)
		}
		found, err := client.Get(ctx, r, wanted.Namespace, wanted.Name)
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		if err != nil {
			return nil, fmt.Errorf("looking up %s %q: %w", wanted.Kind, wanted.Name, err)
		}
		return found, nil
	}
}

// listOf are the objects of a kind, as a list of the API.
func listOf(ctx context.Context, client *kube.Client, r kube.Resource, namespace string) (map[string]any, error) {
	items := []any{}
	_, err := client.List(ctx, r, kube.Selection{Namespace: namespace}, func(o controllers.Object) error {
		items = append(items, o)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("looking up every %s: %w", r.Kind, err)
	}
	return map[string]any{"apiVersion": r.GroupVersion().String(), "kind": r.Kind + "List", "items": items}, nil
}
