package testrun

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/pkg/controllers"
)

// operatorKinds returns CRDs of the flux-operator kinds. A repository with a FluxInstance may contain such objects even if it
// does not install the operator. The CRDs accept any content, and the objects are always ready, because the operator does not
// run in the sandbox.
func operatorKinds() []*unstructured.Unstructured {
	open := func(field string, value any) map[string]any {
		return map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true, field: value}
	}
	ready := open("default", map[string]any{"conditions": []any{map[string]any{
		"type": "Ready", "status": "True", "reason": "Simulated", "message": "simulated by the sandbox", "lastTransitionTime": "1970-01-01T00:00:00Z",
	}}})
	var crds []*unstructured.Unstructured
	for _, k := range controllers.Operator {
		crds = append(crds, &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": map[string]any{"name": k.CRD()},
			"spec": map[string]any{
				"group": k.Group, "scope": "Namespaced", "names": map[string]any{"kind": k.Kind, "plural": k.Resource},
				"versions": []any{map[string]any{
					"name": k.Version, "served": true, "storage": true, "schema": map[string]any{"openAPIV3Schema": open("properties", map[string]any{"status": ready})},
				}},
			},
		}})
	}
	return crds
}
