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

// atOnce bounds the requests that are under way at the same time.
const atOnce = 16

// attempts bounds how often an object is written that somebody else changes meanwhile.
const attempts = 5

// Definition is a kind on the cluster with what is not in its current version.
type Definition struct {
	// Name is that of the CustomResourceDefinition.
	Name string
	// Resource is the kind at the version in which the cluster stores it.
	Resource kube.Resource
	// Stored are the other versions in which objects may be stored.
	Stored []string
	// Objects are those to write anew.
	Objects []controllers.Object
}

// APIVersion is the current version with its group.
func (d *Definition) APIVersion() string { return d.Resource.GroupVersion().String() }

// Survey returns the definitions that have something to migrate, out of all of
// Flux on the cluster: objects that may be stored in an older version, and
// those with fields that somebody is noted to own in one. Once a version is
// not served any more, the server can read neither.
func Survey(ctx context.Context, client *kube.Client, crds []controllers.Object) ([]*Definition, error) {
	all := make([]*Definition, len(crds))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(atOnce)
	for i, crd := range crds {
		g.Go(func() error {
			d := define(crd)
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
	return slices.DeleteFunc(all, func(d *Definition) bool { return d == nil || len(d.Stored)+len(d.Objects) == 0 }), nil
}

// define reads a definition, nil where it stores nothing.
func define(crd controllers.Object) *Definition {
	text := func(path string) string { return controllers.Path{path}.String(crd) }
	d := &Definition{Name: controllers.Name(crd)}
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

// Permissions are what migrating definitions needs.
func Permissions(definitions []*Definition) []kube.Permission {
	const group = "apiextensions.k8s.io"
	needed := []kube.Permission{{Verb: "patch", Group: group, Resource: "customresourcedefinitions/status"}}
	for _, d := range definitions {
		needed = append(needed, kube.Permission{Verb: "patch", Group: d.Resource.Group, Resource: d.Resource.Resource})
	}
	return needed
}

// Migrate has the server write every object anew, which it does in its current
// version, and then strikes the other versions from those that are stored.
// Where an object could not be written they stay, and the rest is done.
func (d *Definition) Migrate(ctx context.Context, client *kube.Client, definitions kube.Resource) error {
	var g errgroup.Group
	g.SetLimit(atOnce)
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
	if err := client.PatchStatus(ctx, definitions, "", d.Name, status); err != nil {
		return fmt.Errorf("noting at %s that only %s is stored: %w", d.Name, d.Resource.Version, err)
	}
	return nil
}

// rewrite changes nothing of an object but the versions in which its fields
// are owned. The server writes also what is the same, if it was stored in
// another version.
func (d *Definition) rewrite(ctx context.Context, client *kube.Client, o controllers.Object) error {
	namespace, name := controllers.Namespace(o), controllers.Name(o)
	var err error
	for range attempts {
		change := map[string]any{}
		if fields, stale := currentFields(o, d.APIVersion()); stale {
			change["metadata"] = map[string]any{
				"managedFields": fields, "resourceVersion": controllers.Path{"metadata.resourceVersion"}.String(o),
			}
		}
		_, err = client.Merge(ctx, d.Resource, namespace, name, change)
		if apierrors.IsNotFound(err) {
			return nil // deleted meanwhile
		}
		if !apierrors.IsConflict(err) {
			break
		}
		if o, err = client.Get(ctx, d.Resource, namespace, name); err != nil {
			break
		}
	}
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("writing %s %s/%s anew: %w", d.Resource.Kind, namespace, name, err)
	}
	return nil
}
