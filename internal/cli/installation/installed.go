package installation

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/controllers"
)

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

// CRD is the name of a CustomResourceDefinition that is part of every
// installation. Its labels have the version and the manager of the installation.
const CRD = "gitrepositories.source.toolkit.fluxcd.io"

// Find returns an object, or nil if it does not exist. It lists, so that missing
// permissions have the same error as elsewhere.
func Find(ctx context.Context, client *kube.Client, r kube.Resource, name string) (controllers.Object, error) {
	var found controllers.Object
	_, err := client.List(ctx, r, kube.Selection{Name: name}, func(o controllers.Object) error {
		found = o
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("reading %s %q: %w", r.Kind, name, err)
	}
	return found, nil
}

// ElsewhereHint returns a hint if Flux is installed in another namespace.
func ElsewhereHint(crd controllers.Object, namespace string) string {
	if instance := kube.Label(crd, kube.InstanceLabel); instance != "" && instance != namespace {
		return fmt.Sprintf("Flux is installed in namespace %q: use -n %s", instance, instance)
	}
	return ""
}

// CRDs is the resource of CustomResourceDefinitions.
func CRDs() kube.Resource {
	return BuiltIn("apiextensions.k8s.io/v1", "CustomResourceDefinition")
}

// ImageTag returns the tag of an image, or its digest if it has no tag.
func ImageTag(image string) string {
	name, digest, _ := strings.Cut(image, "@")
	if i := strings.LastIndexByte(name, ':'); i > strings.LastIndexByte(name, '/') {
		return name[i+1:]
	}
	return digest
}
