// Package installation installs Flux in a sandbox, with the settings of a FluxInstance, and flux-operator.
package installation

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/manifests"
	"github.com/fluxkit/flux/pkg/build"
	render "github.com/fluxkit/flux/pkg/build/operator"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diagnose/rollout"
)

// Installation describes what is installed.
type Installation struct {
	Set *manifests.Set
	// Programs lists the names of the Deployments that run.
	Programs []string
	// Sync holds the source and the Kustomization of the cluster, which are not applied.
	Sync []*unstructured.Unstructured
	// Instance is the FluxInstance whose settings apply to Set and Sync, or nil.
	Instance *unstructured.Unstructured
	// OperatorCRDs holds the CRDs of flux-operator, nil if its kinds are simulated.
	OperatorCRDs []*unstructured.Unstructured
	// Kustomizer runs kustomize, see build.Options.
	Kustomizer build.Kustomizer
}

// Apply applies the manifests, and waits until the controllers are running. It returns the manifests, and sets Sync.
func (i *Installation) Apply(ctx context.Context, client *kube.Client) ([]*unstructured.Unstructured, error) {
	objects := i.Set.Unstructured()
	if i.Instance != nil {
		var err error
		if objects, err = i.customize(ctx, objects); err != nil {
			return nil, err
		}
	}
	objects = append(objects, operator(i.OperatorCRDs, i.Set.Namespace)...)
	if err := kube.Apply(ctx, client, objects); err != nil {
		return nil, err
	}
	waiter := &rollout.Waiter{Client: client, Namespace: i.Set.Namespace, Names: slices.Sorted(slices.Values(i.Programs))}
	return objects, waiter.Wait(ctx)
}

// customize applies the settings of the FluxInstance. The source keeps its reference, which the served revision replaces, but
// patches may refer to the field that the operator sets.
func (i *Installation) customize(ctx context.Context, objects []*unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	name := controllers.Path{"spec.sync.ref"}.String(i.Instance.Object)
	references := map[controllers.ID]any{}
	for _, o := range i.Sync {
		o = o.DeepCopy()
		spec, _ := o.Object["spec"].(map[string]any)
		references[controllers.IDOf(o.Object)] = spec["ref"]
		if o.GetKind() == controllers.GitRepository {
			spec["ref"] = map[string]any{"name": name}
		}
		objects = append(objects, o)
	}
	customized, err := render.Install(ctx, i.Instance, objects, i.Kustomizer)
	if err != nil {
		return nil, err
	}
	i.Sync = nil
	return slices.DeleteFunc(customized, func(o *unstructured.Unstructured) bool {
		ref, is := references[controllers.IDOf(o.Object)]
		if !is {
			return false
		}
		if spec, _ := o.Object["spec"].(map[string]any); ref != nil {
			spec["ref"] = ref
		}
		i.Sync = append(i.Sync, o)
		return true
	}), nil
}
