package operator

import (
	"bytes"
	"cmp"
	"context"
	"fmt"

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
	if err != nil || len(s.patches()) == 0 {
		return manifests, err
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

// patches returns the patches for spec.cluster, and then those in spec.kustomize.
func (s *instance) patches() []kustomize.Patch {
	all := s.lockdown()
	for _, p := range s.Kustomize.Patches {
		all = append(all, p.Kustomize())
	}
	return all
}

// patch returns the objects with the patches.
func (s *instance) patch(ctx context.Context, kustomizer build.Kustomizer, manifests []map[string]any) ([]build.Object, error) {
	var text bytes.Buffer
	for _, o := range manifests {
		document, err := yaml.Marshal(o)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&text, "---\n%s", document)
	}
	bounds := build.Bounds{Budget: budget.New(budget.Default()), Kustomizer: kustomizer}
	objects, err := bounds.Kustomize(ctx, text.Bytes(), &kustomize.Kustomization{Patches: s.patches()})
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
	add := func(kind, names, path, value string) kustomize.Patch {
		target := &kustomize.Selector{}
		target.Kind, target.Name = kind, names
		return kustomize.Patch{Target: target, Patch: fmt.Sprintf("- {op: add, path: %s, value: %q}", path, value)}
	}
	const (
		arguments  = "/spec/template/spec/containers/0/args/-"
		kustomizer = "kustomize-controller"
	)
	return []kustomize.Patch{
		add("Deployment", "(kustomize|helm|notification|image-reflector|image-automation)-controller|source-watcher", arguments, "--no-cross-namespace-refs=true"),
		add("Deployment", kustomizer, arguments, "--no-remote-bases=true"),
		add("Deployment", "(kustomize|helm)-controller", arguments, "--default-service-account="+account),
		add(controllers.Kustomization, "", "/spec/serviceAccountName", kustomizer),
	}
}
