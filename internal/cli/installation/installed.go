package installation

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/controllers"
)

// ServedVersions returns the versions that the server answers to, the one that
// it stores first.
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

// CRD is the CustomResourceDefinition that every installation of Flux
// has; its labels tell who installed it, and where.
const CRD = "gitrepositories.source.toolkit.fluxcd.io"

// Find returns an object, nil if there is none of that name. It lists, because
// a list that is refused says so in the same words as every other.
func Find(ctx context.Context, client *kube.Client, r kube.Resource, name string) (controllers.Object, error) {
	var found controllers.Object
	_, err := client.List(ctx, r, kube.Selection{Name: name}, func(o controllers.Object) error {
		found = o
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("looking for %s %q: %w", r.Kind, name, err)
	}
	return found, nil
}

// ElsewhereHint is a hint at the namespace that Flux is installed in, where that
// is another one than was looked in.
func ElsewhereHint(crd controllers.Object, namespace string) string {
	if instance := kube.Label(crd, kube.InstanceLabel); instance != "" && instance != namespace {
		return fmt.Sprintf("it is installed in namespace %q: add -n %s", instance, instance)
	}
	return ""
}

// CRDs is the resource of CustomResourceDefinitions.
func CRDs() kube.Resource {
	return BuiltIn("apiextensions.k8s.io/v1", "CustomResourceDefinition")
}

// ImageTag returns the tag of an image, or its digest where it has no tag.
func ImageTag(image string) string {
	name, digest, _ := strings.Cut(image, "@")
	if i := strings.LastIndexByte(name, ':'); i > strings.LastIndexByte(name, '/') {
		return name[i+1:]
	}
	return digest
}
