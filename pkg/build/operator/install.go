package operator

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kustomize "sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/yaml"

	"github.com/fluxkit/flux/internal/budget"
	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/controllers"
)

// Install returns the manifests of the controllers, the source and the Kustomization of the cluster with the multi-tenancy
// settings and the patches of a FluxInstance. The other settings of spec.cluster, such as the size, are not applied.
func Install(ctx context.Context, owner *unstructured.Unstructured, manifests []*unstructured.Unstructured, kustomizer build.Kustomizer) ([]*unstructured.Unstructured, error) {
	s, err := instanceOf(owner)
	if err != nil {
		return nil, err
	}
	var objects []map[string]any
	for _, o := range manifests {
		objects = append(objects, o.Object)
	}
	patched, err := s.patch(ctx, kustomizer, objects)
	if err != nil {
		return nil, err
	}
	result := make([]*unstructured.Unstructured, len(patched))
	for i, o := range patched {
		result[i] = o.Unstructured
	}
	return result, nil
}

func instanceOf(owner *unstructured.Unstructured) (*instance, error) {
	s := &instance{}
	if err := build.Decode(owner.Object["spec"], s); err != nil {
		return nil, fmt.Errorf("reading the spec of %s: %w", controllers.IDOf(owner.Object), err)
	}
	return s, nil
}

// patch returns the objects with the patches for spec.cluster, and then those in spec.kustomize.
func (s *instance) patch(ctx context.Context, kustomizer build.Kustomizer, manifests []map[string]any) ([]build.Object, error) {
	var text bytes.Buffer
	for _, o := range manifests {
		document, err := yaml.Marshal(o)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&text, "---\n%s", document)
	}
	patches := &kustomize.Kustomization{Patches: s.lockdown()}
	for _, p := range s.Kustomize.Patches {
		patches.Patches = append(patches.Patches, p.Kustomize())
	}
	bounds := build.Bounds{Budget: budget.New(budget.Default()), Kustomizer: kustomizer}
	objects, err := bounds.Kustomize(ctx, text.Bytes(), patches)
	if err != nil {
		return nil, fmt.Errorf("applying spec.kustomize.patches: %w", err)
	}
	return objects, nil
}

// lockdown returns the patches for spec.cluster.multitenant, as flux-operator 0.59 applies them.
func (s *instance) lockdown() []kustomize.Patch {
	if !s.Cluster.Multitenant {
		return nil
	}
	account := cmp.Or(s.Cluster.TenantDefaultServiceAccount, "default")
	operations := func(path string, values ...string) string {
		var text strings.Builder
		for _, value := range values {
			fmt.Fprintf(&text, "- {op: add, path: %s, value: %q}\n", path, value)
		}
		return text.String()
	}
	const arguments = "/spec/template/spec/containers/0/args/-"
	patch := func(kind, names, operations string) kustomize.Patch {
		target := &kustomize.Selector{}
		target.Kind, target.Name = kind, names
		return kustomize.Patch{Target: target, Patch: operations}
	}
	const kustomizer = "kustomize-controller"
	return []kustomize.Patch{
		patch("Deployment", "(kustomize|helm|notification|image-reflector|image-automation)-controller|source-watcher", operations(arguments, "--no-cross-namespace-refs=true")),
		patch("Deployment", kustomizer, operations(arguments, "--no-remote-bases=true")),
		patch("Deployment", "(kustomize|helm)-controller", operations(arguments, "--default-service-account="+account)),
		patch(controllers.Kustomization, "", operations("/spec/serviceAccountName", kustomizer)),
	}
}
