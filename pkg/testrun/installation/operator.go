package installation

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/pkg/build/sourcetree"
	"github.com/fluxkit/flux/pkg/controllers"
)

// OperatorVersion is the API version of the objects of flux-operator.
const OperatorVersion = controllers.OperatorGroup + "/v1"

// OperatorCRDs returns the CRDs of the flux-operator in the directory of a flux-sandbox program, nil if it is not installed.
func OperatorCRDs(program string) ([]*unstructured.Unstructured, error) {
	program, err := filepath.EvalSymlinks(program)
	if err != nil {
		return nil, fmt.Errorf("finding flux-operator: %w", err)
	}
	text, err := os.ReadFile(filepath.Join(filepath.Dir(program), "controllers", controllers.OperatorName+".yaml"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the CRDs of flux-operator: %w", err)
	}
	return sourcetree.ReadManifests(bytes.NewReader(text))
}

// operator returns the objects that install flux-operator in a namespace. Without CRDs, it returns CRDs that simulate the
// kinds: a repository with a FluxInstance may contain such objects even if it does not install the operator.
func operator(crds []*unstructured.Unstructured, namespace string) []*unstructured.Unstructured {
	if crds != nil {
		return append(slices.Clone(crds), deployment(namespace)...)
	}
	var objects []*unstructured.Unstructured
	for _, k := range controllers.Operator {
		objects = append(objects, simulated(k))
	}
	return objects
}

// simulated returns a CRD that accepts any content. Its objects are always ready.
func simulated(k controllers.Kind) *unstructured.Unstructured {
	open := func(field string, value any) map[string]any {
		return map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true, field: value}
	}
	ready := open("default", map[string]any{"conditions": []any{map[string]any{
		"type": "Ready", "status": "True", "reason": "Simulated", "message": "simulated by the sandbox", "lastTransitionTime": "1970-01-01T00:00:00Z",
	}}})
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": map[string]any{"name": k.CRD()},
		"spec": map[string]any{
			"group": k.Group, "scope": "Namespaced", "names": map[string]any{"kind": k.Kind, "plural": k.Resource},
			"versions": []any{map[string]any{
				"name": k.Version, "served": true, "storage": true, "schema": map[string]any{"openAPIV3Schema": open("properties", map[string]any{"status": ready})},
			}},
		},
	}}
}

// deployment returns the Deployment of flux-operator, and its service account with administrator permissions. The Deployment
// has the selector of the operator's Helm chart, so that a HelmRelease in the repository can replace it.
func deployment(namespace string) []*unstructured.Unstructured {
	const name = controllers.OperatorName
	labels := map[string]any{"app.kubernetes.io/name": name, "app.kubernetes.io/instance": name}
	object := func(version, kind, namespace string, content map[string]any) *unstructured.Unstructured {
		o := &unstructured.Unstructured{Object: content}
		o.SetAPIVersion(version)
		o.SetKind(kind)
		o.SetName(name)
		o.SetNamespace(namespace)
		return o
	}
	return []*unstructured.Unstructured{
		object("v1", "ServiceAccount", namespace, map[string]any{}),
		object("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", "", map[string]any{
			"roleRef":  map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
			"subjects": []any{map[string]any{"kind": "ServiceAccount", "name": name, "namespace": namespace}},
		}),
		object("apps/v1", "Deployment", namespace, map[string]any{"spec": map[string]any{
			"selector": map[string]any{"matchLabels": labels},
			"template": map[string]any{
				"metadata": map[string]any{"labels": labels},
				"spec": map[string]any{"serviceAccountName": name, "containers": []any{map[string]any{
					"name": "manager", "image": "ghcr.io/controlplaneio-fluxcd/" + name,
					"ports":          []any{map[string]any{"name": "http", "containerPort": int64(8081)}},
					"readinessProbe": map[string]any{"httpGet": map[string]any{"path": "/readyz", "port": "http"}},
				}}},
			},
		}}),
	}
}
