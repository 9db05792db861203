package operator_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/manifests"
	"github.com/fluxkit/flux/pkg/build/operator"
	"github.com/fluxkit/flux/pkg/controllers"
)

// TestInstall compares the arguments with those that flux-operator 0.59.0 has added to the Deployments of Flux 2.9.5.
func TestInstall(t *testing.T) {
	t.Parallel()
	const (
		refs  = "--no-cross-namespace-refs=true"
		bases = "--no-remote-bases=true"
	)
	added := func(account string) map[string][]string {
		return map[string][]string{
			"kustomize-controller": {refs, bases, "--default-service-account=" + account}, "helm-controller": {refs, "--default-service-account=" + account},
			"notification-controller": {refs}, "image-reflector-controller": {refs}, "image-automation-controller": {refs}, "source-watcher": {refs},
		}
	}
	for name, c := range map[string]struct {
		spec    map[string]any
		want    map[string][]string
		account string
	}{
		"no settings":   {nil, map[string][]string{}, ""},
		"other account": {map[string]any{"cluster": map[string]any{"multitenant": false, "tenantDefaultServiceAccount": "tenant"}}, map[string][]string{}, ""},
		"tenants":       {map[string]any{"cluster": map[string]any{"multitenant": true}}, added("default"), "kustomize-controller"},
		"account": {
			map[string]any{"cluster": map[string]any{"multitenant": true, "tenantDefaultServiceAccount": "tenant"}}, added("tenant"), "kustomize-controller",
		},
		"patches": {
			map[string]any{"kustomize": map[string]any{"patches": []any{
				map[string]any{
					"target": map[string]any{"kind": "Deployment", "name": "helm-controller"},
					"patch":  "- {op: add, path: /spec/template/spec/containers/0/args/-, value: --feature-gates=OOMWatch=true}",
				},
				map[string]any{"target": map[string]any{"kind": "Kustomization"}, "patch": "- {op: add, path: /spec/serviceAccountName, value: sync}"},
			}}},
			map[string][]string{"helm-controller": {"--feature-gates=OOMWatch=true"}}, "sync",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			options := manifests.Defaults()
			options.Components = controllers.Names(func(controllers.Controller) bool { return true })
			set, err := manifests.Render(options)
			if err != nil {
				t.Fatal(err)
			}
			sync := &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": controllers.Kustomization,
				"metadata": map[string]any{"name": "flux-system", "namespace": "flux-system"}, "spec": map[string]any{"path": "./clusters/production"},
			}}
			instance := &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "fluxcd.controlplane.io/v1", "kind": controllers.FluxInstance, "metadata": map[string]any{"name": "flux"}, "spec": c.spec,
			}}
			before := append(set.Unstructured(), sync)
			after, err := operator.Install(t.Context(), instance, before, nil)
			if err != nil || len(after) != len(before) {
				t.Fatalf("%d objects: %v", len(after), err)
			}
			arguments := map[controllers.ID][]string{}
			for _, o := range before {
				arguments[controllers.IDOf(o.Object)] = argumentsOf(o)
			}
			got, account := map[string][]string{}, ""
			for _, o := range after {
				if more := argumentsOf(o)[len(arguments[controllers.IDOf(o.Object)]):]; len(more) > 0 {
					got[o.GetName()] = more
				}
				if o.GetKind() == controllers.Kustomization {
					account, _, _ = unstructured.NestedString(o.Object, "spec", "serviceAccountName")
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" || account != c.account {
				t.Errorf("service account %q\n%s", account, diff)
			}
		})
	}
}

func argumentsOf(o *unstructured.Unstructured) []string {
	containers, _, _ := unstructured.NestedSlice(o.Object, "spec", "template", "spec", "containers")
	if len(containers) == 0 {
		return nil
	}
	container, _ := containers[0].(map[string]any)
	arguments, _, _ := unstructured.NestedStringSlice(container, "args")
	return arguments
}
