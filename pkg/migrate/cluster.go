package migrate

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/controllers"
)

// maxRequests is the maximum number of concurrent requests.
const maxRequests = 16

// attempts is the maximum number of writes of an object that conflict with concurrent changes.
const attempts = 5

// CRD is a CustomResourceDefinition and its objects to migrate.
type CRD struct {
	// CRD is the name of the CRD.
	CRD string
	// Resource is the kind at its storage version.
	Resource kube.Resource
	// Stored lists the other versions in status.storedVersions.
	Stored []string
	// Objects lists the objects to rewrite.
	Objects []Object
	// older is a served version whose objects may have fields that do not exist in the storage
	// version. removed lists these fields.
	older   string
	removed []controllers.Removed
}

// Object is an object to rewrite.
type Object struct {
	controllers.Object
	// Removals lists the fields of the object that do not exist in the storage version.
	Removals []controllers.Removal
}

// Name returns the kind, the namespace and the name of an object.
func (d *CRD) Name(o Object) string {
	return d.Resource.Kind + " " + controllers.Namespace(o.Object) + "/" + controllers.Name(o.Object)
}

// APIVersion returns the group and the storage version.
func (d *CRD) APIVersion() string { return d.Resource.GroupVersion().String() }

// Outdated returns the CRDs that require a migration, because objects or their managed fields may
// be stored in an older version. The API server can read neither once it no longer serves the
// version.
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
			resource, selection := d.readable()
			_, err := client.List(ctx, resource, selection, func(o controllers.Object) error {
				if _, stale := currentFields(o, d.APIVersion(), nil); stale || len(d.Stored) > 0 {
					d.Objects = append(d.Objects, d.object(o))
				}
				return nil
			})
			if err != nil {
				return fmt.Errorf("listing %s: %w", d.CRD, err)
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(all, func(d *CRD) bool { return d == nil || len(d.Stored)+len(d.Objects) == 0 }), nil
}

// readable returns the resource and the selection for reading the objects in the version that
// includes all stored fields.
func (d *CRD) readable() (kube.Resource, kube.Selection) {
	if len(d.removed) == 0 {
		return d.Resource, kube.Selection{Without: []string{"spec", "status"}}
	}
	r := d.Resource
	r.Version = d.older
	return r, kube.Selection{Without: []string{"status"}}
}

// object returns an object to rewrite. Of its spec, only the removed fields are needed.
func (d *CRD) object(o controllers.Object) Object {
	object := Object{Object: o}
	for _, r := range d.removed {
		if removal, ok := r.Of(o); ok {
			object.Removals = append(object.Removals, removal)
		}
	}
	if len(object.Removals) == 0 {
		delete(o, "spec")
	}
	return object
}

// newCRD parses a CRD. It returns nil if the CRD has no storage version.
func newCRD(crd controllers.Object) *CRD {
	text := func(path string) string { return controllers.Path{path}.String(crd) }
	d := &CRD{CRD: controllers.Name(crd)}
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
	d.findRemoved(versions)
	return d
}

// findRemoved finds the fields that stored objects may have but that do not exist in the storage version.
func (d *CRD) findRemoved(versions []any) {
	k, ok := controllers.KindOf(d.Resource.Group, d.Resource.Kind)
	if !ok || len(d.Stored) == 0 {
		return
	}
	for _, item := range versions {
		v, _ := item.(map[string]any)
		name, _ := v["name"].(string)
		removed := k.RemovedBetween(name, d.Resource.Version)
		if v["served"] == true && len(removed) > 0 && (d.older == "" || version.CompareKubeAwareVersionStrings(name, d.older) > 0) {
			d.older, d.removed = name, removed
		}
	}
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
// versions are kept and the other objects are still rewritten.
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
	if err := client.PatchStatus(ctx, crds, "", d.CRD, status); err != nil {
		return fmt.Errorf("setting status.storedVersions of %s to %s: %w", d.CRD, d.Resource.Version, err)
	}
	return nil
}

// rewrite patches an object with the versions of its managed fields, and with the fields that are
// renamed in the storage version. The server also stores an unchanged object again if it was stored
// in another version.
func (d *CRD) rewrite(ctx context.Context, client *kube.Client, o Object) error {
	namespace, name := controllers.Namespace(o.Object), controllers.Name(o.Object)
	resource, _ := d.readable()
	var err error
	for range attempts {
		for _, r := range o.Removals {
			if r.Blocked != "" {
				return fmt.Errorf("%s: %s", d.Name(o), r.Outcome())
			}
		}
		err = d.patch(ctx, client, o)
		if apierrors.IsNotFound(err) {
			return nil // deleted in the meantime
		}
		if !apierrors.IsConflict(err) {
			break
		}
		var current controllers.Object
		if current, err = client.Get(ctx, resource, namespace, name); err != nil {
			break
		}
		o = d.object(current)
	}
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("rewriting %s: %w", d.Name(o), err)
	}
	return nil
}

// patch writes an object at the storage version. The owner of a moved field is restored after the
// field has been set, which makes flux its owner.
func (d *CRD) patch(ctx context.Context, client *kube.Client, o Object) error {
	version := controllers.Path{"metadata.resourceVersion"}.String(o.Object)
	write := func(metadata, change map[string]any) error {
		if len(metadata)+len(change) > 0 {
			metadata["resourceVersion"] = version
			change["metadata"] = metadata
		}
		after, err := client.MergePatch(ctx, d.Resource, controllers.Namespace(o.Object), controllers.Name(o.Object), change)
		version = controllers.Path{"metadata.resourceVersion"}.String(after)
		return err
	}
	if spec := moved(o); len(spec) > 0 {
		if err := write(map[string]any{}, map[string]any{"spec": spec}); err != nil {
			return err
		}
	}
	metadata := map[string]any{}
	if fields, stale := currentFields(o.Object, d.APIVersion(), d.removed); stale {
		metadata["managedFields"] = fields
	}
	return write(metadata, map[string]any{})
}

// moved returns the values of the fields that are renamed in the storage version.
func moved(o Object) map[string]any {
	spec := map[string]any{}
	for _, r := range o.Removals {
		if r.Moved != "" {
			value, _ := controllers.Path{"spec." + r.Field}.Lookup(o.Object)
			parent, name := r.Parent()
			spec[parent] = map[string]any{name: value}
		}
	}
	return spec
}
