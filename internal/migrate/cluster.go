package migrate

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/controllers"
)

// maxRequests is the maximum number of concurrent requests.
const maxRequests = 16

// attempts is the maximum number of writes of an object that conflict with concurrent changes.
const attempts = 5

// CRD is a CustomResourceDefinition with the objects to migrate.
type CRD struct {
	// Name is the name of the CRD.
	Name string
	// Resource is the kind at its storage version.
	Resource kube.Resource
	// Stored are the other versions in status.storedVersions.
	Stored []string
	// Objects are the objects to rewrite.
	Objects []controllers.Object
}

// APIVersion returns the group and the storage version.
func (d *CRD) APIVersion() string { return d.Resource.GroupVersion().String() }

// Outdated returns the CRDs that need a migration: those with objects that may be stored in an
// older version, or with managed fields in one. The API server cannot read either once it no
// longer serves the version.
func Outdated(ctx context.Context, client *kube.Client, crds []controllers.Object) ([]*CRD, error) {
	all := make([]*CRD, len(crds))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(maxRequests)
	for i, crd := range crds {
		g.Go(func() error {
			d := newCRD(crd)
			if d == nil {
				return nil
			}
			all[i] = d
			selection := kube.Selection{Without: []string{"spec", "status"}}
			_, err := client.List(ctx, d.Resource, selection, func(o controllers.Object) error {
				if _, stale := currentFields(o, d.APIVersion()); stale || len(d.Stored) > 0 {
					d.Objects = append(d.Objects, o)
				}
				return nil
			})
			if err != nil {
				return fmt.Errorf("listing %s: %w", d.Name, err)
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(all, func(d *CRD) bool { return d == nil || len(d.Stored)+len(d.Objects) == 0 }), nil
}

// newCRD parses a CRD. It returns nil for one without a storage version.
func newCRD(crd controllers.Object) *CRD {
	text := func(path string) string { return controllers.Path{path}.String(crd) }
	d := &CRD{Name: controllers.Name(crd)}
	list, _ := controllers.Path{"spec.versions"}.Lookup(crd)
	versions, _ := list.([]any)
	for _, item := range versions {
		version, _ := item.(map[string]any)
		if storage, _ := version["storage"].(bool); storage {
			d.Resource = kube.Resource{
				GroupVersionResource: schema.GroupVersionResource{
					Group: text("spec.group"), Version: controllers.Path{"name"}.String(version), Resource: text("spec.names.plural"),
				},
				Kind: text("spec.names.kind"), ClusterScoped: text("spec.scope") == "Cluster",
			}
		}
	}
	list, _ = controllers.Path{"status.storedVersions"}.Lookup(crd)
	stored, _ := list.([]any)
	for _, item := range stored {
		if version, _ := item.(string); version != d.Resource.Version {
			d.Stored = append(d.Stored, version)
		}
	}
	if d.Resource.Version == "" {
		return nil
	}
	return d
}

// Permissions returns the permissions that a migration needs.
func Permissions(crds []*CRD) []kube.Permission {
	const group = "apiextensions.k8s.io"
	needed := []kube.Permission{{Verb: "patch", Group: group, Resource: "customresourcedefinitions/status"}}
	for _, d := range crds {
		needed = append(needed, kube.Permission{Verb: "patch", Group: d.Resource.Group, Resource: d.Resource.Resource})
	}
	return needed
}

// Migrate rewrites every object, so that the server stores it in the storage version, and then
// removes the other versions from status.storedVersions. If an object cannot be written, the
// versions are kept and the other objects are rewritten nevertheless.
func (d *CRD) Migrate(ctx context.Context, client *kube.Client, crds kube.Resource) error {
	var g errgroup.Group
	g.SetLimit(maxRequests)
	failed := make([]error, len(d.Objects))
	for i, o := range d.Objects {
		g.Go(func() error {
			failed[i] = d.rewrite(ctx, client, o)
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	if err := errors.Join(failed...); err != nil {
		return err
	}
	if len(d.Stored) == 0 {
		return nil
	}
	status := map[string]any{"storedVersions": []string{d.Resource.Version}}
	if err := client.PatchStatus(ctx, crds, "", d.Name, status); err != nil {
		return fmt.Errorf("setting status.storedVersions of %s to %s: %w", d.Name, d.Resource.Version, err)
	}
	return nil
}

// rewrite patches an object with the versions of its managed fields only. The server also stores
// an unchanged object again if it was stored in another version.
func (d *CRD) rewrite(ctx context.Context, client *kube.Client, o controllers.Object) error {
	namespace, name := controllers.Namespace(o), controllers.Name(o)
	var err error
	for range attempts {
		change := map[string]any{}
		if fields, stale := currentFields(o, d.APIVersion()); stale {
			change["metadata"] = map[string]any{
				"managedFields": fields, "resourceVersion": controllers.Path{"metadata.resourceVersion"}.String(o),
			}
		}
		_, err = client.MergePatch(ctx, d.Resource, namespace, name, change)
		if apierrors.IsNotFound(err) {
			return nil // deleted in the meantime
		}
		if !apierrors.IsConflict(err) {
			break
		}
		if o, err = client.Get(ctx, d.Resource, namespace, name); err != nil {
			break
		}
	}
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("rewriting %s %s/%s: %w", d.Resource.Kind, namespace, name, err)
	}
	return nil
}
