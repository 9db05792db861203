package kube

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fluxkit/flux/pkg/controllers"
)

// InstalledCRD is the name of a CustomResourceDefinition that is part of every installation of Flux. Its labels
// contain the version and the manager of the installation.
const InstalledCRD = "gitrepositories.source.toolkit.fluxcd.io"

// BuiltIn returns the resource of a built-in Kubernetes kind.
func BuiltIn(apiVersion, kind string) Resource {
	return ResourceFor(schema.FromAPIVersionAndKind(apiVersion, kind))
}

// CRDs returns the resource of CustomResourceDefinitions.
func CRDs() Resource { return BuiltIn("apiextensions.k8s.io/v1", "CustomResourceDefinition") }

// ServedVersions returns the served versions of a CRD, with the storage version
// first.
func ServedVersions(crd controllers.Object) []string {
	v, _ := controllers.Path{"spec.versions"}.Lookup(crd)
	list, _ := v.([]any)
	var versions []string
	for _, item := range list {
		m, _ := item.(map[string]any)
		name := controllers.Path{"name"}.String(m)
		if served, _ := m["served"].(bool); !served {
			continue
		}
		if storage, _ := m["storage"].(bool); storage {
			versions = slices.Insert(versions, 0, name)
		} else {
			versions = append(versions, name)
		}
	}
	return versions
}

// Find returns an object, or nil if it does not exist. It sends a list request,
// so that missing permissions cause the same error as for lists.
func (c *Client) Find(ctx context.Context, r Resource, name string) (controllers.Object, error) {
	var found controllers.Object
	_, err := c.List(ctx, r, Selection{Name: name}, func(o controllers.Object) error {
		found = o
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("reading %s %q: %w", r.Kind, name, err)
	}
	return found, nil
}
