package testcluster

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/controllers"
)

// definitions is the resource of CustomResourceDefinitions.
func definitions() kube.Resource {
	return kube.ResourceFor(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"})
}

// ServeOlder installs the CRDs of an older Flux version: each kind is served and stored
// in the version that older returns, and kinds with the version "" are not installed.
// Existing objects are deleted.
func (c *Cluster) ServeOlder(ctx context.Context, older func(controllers.Kind) string) error {
	if err := c.RemoveCRDs(ctx); err != nil {
		return err
	}
	var crds []*unstructured.Unstructured
	for _, k := range controllers.Kinds {
		if version := older(k); version != "" {
			crds = append(crds, definition(k, version))
		}
	}
	// A client caches discovery.
	client, err := kube.New(c.Client.Config)
	if err != nil {
		return err
	}
	c.Client = client
	return c.apply(ctx, crds)
}

// InstallOperator installs CRDs of flux-operator, which accept every field.
func (c *Cluster) InstallOperator(ctx context.Context) error {
	var crds []*unstructured.Unstructured
	for _, k := range controllers.Operator {
		crds = append(crds, definition(k, k.Version))
	}
	return c.apply(ctx, crds)
}

// RemoveOperator removes the CRDs of flux-operator with their objects.
func (c *Cluster) RemoveOperator(ctx context.Context) error {
	return c.removeCRDs(ctx, controllers.Operator)
}

// definition returns a CRD with one version. It accepts every field, because the
// schemas of old versions are not embedded.
func definition(k controllers.Kind, version string) *unstructured.Unstructured {
	anything := map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": k.CRD()},
		"spec": map[string]any{
			"group": k.Group, "scope": "Namespaced",
			"names": map[string]any{"kind": k.Kind, "listKind": k.Kind + "List", "plural": k.Resource},
			"versions": []any{map[string]any{
				"name": version, "served": true, "storage": true,
				"schema":       map[string]any{"openAPIV3Schema": anything},
				"subresources": map[string]any{"status": map[string]any{}},
			}},
		},
	}}
}

// RemoveCRDs deletes the CRDs of Flux with their objects, because a stored
// version cannot be removed from a CRD.
func (c *Cluster) RemoveCRDs(ctx context.Context) error { return c.removeCRDs(ctx, controllers.Kinds) }

func (c *Cluster) removeCRDs(ctx context.Context, rows []controllers.Kind) error {
	g, ctx := errgroup.WithContext(ctx)
	for _, k := range rows {
		g.Go(func() error {
			if err := c.Client.Remove(ctx, definitions(), "", k.CRD()); err != nil {
				return fmt.Errorf("removing the CRD of %s: %w", k.Kind, err)
			}
			left, err := c.Client.WaitDeleted(ctx, definitions(), kube.Selection{Name: k.CRD()}, func(controllers.Object) bool { return true })
			if err == nil && len(left) > 0 {
				err = fmt.Errorf("the CRD of %s is not deleted", k.Kind)
			}
			return err
		})
	}
	return g.Wait()
}
