package controllers_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/pkg/controllers"
)

func TestStrictSubstitution(t *testing.T) {
	t.Parallel()
	deployment := func(image string, args ...any) *unstructured.Unstructured {
		container := map[string]any{"name": "manager", "image": image, "args": args}
		return &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"template": map[string]any{"spec": map[string]any{"containers": []any{container}}}}}}
	}
	instance := func(version, patch string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
			"distribution": map[string]any{"version": version}, "kustomize": map[string]any{"patches": []any{map[string]any{"patch": patch}}},
		}}}
	}
	const image, gate = "ghcr.io/fluxcd/kustomize-controller", "--feature-gates=A=true,StrictPostBuildSubstitutions="
	const digest = "@sha256:1111111111111111111111111111111111111111111111111111111111111111"
	for name, row := range map[string]struct {
		deployment, instance *unstructured.Unstructured
		version              string
		strict, known        bool
	}{
		"nothing":                        {},
		"a strict version":               {deployment: deployment(image + ":v1.9.0"), strict: true, known: true},
		"with a digest":                  {deployment: deployment(image + ":v1.9.0" + digest), strict: true, known: true},
		"a lenient version":              {deployment: deployment(image + ":v1.8.3"), known: true},
		"only a digest":                  {deployment: deployment(image + digest)},
		"latest":                         {deployment: deployment(image + ":latest")},
		"the gate is disabled":           {deployment: deployment(image+":v1.9.0", gate+"false"), known: true},
		"the gate is enabled":            {deployment: deployment(image+":v1.8.3", gate+"True,B=false"), strict: true, known: true},
		"the gate has no valid value":    {deployment: deployment(image+":v1.9.0", gate+"off")},
		"another controller":             {deployment: deployment("ghcr.io/fluxcd/helm-controller:v1.8.3")},
		"a range of versions":            {instance: instance("2.x", ""), strict: true, known: true},
		"a lenient range":                {instance: instance("2.8.x", ""), known: true},
		"a version that is not embedded": {instance: instance("0.1.x", "")},
		"a gate in a patch":              {instance: instance("0.1.x", gate+"false"), known: true},
		"a given version":                {instance: instance("2.8.x", ""), version: "2.9", strict: true, known: true},
		"a given version only":           {version: "2.8", known: true},
		"a given version, not embedded":  {version: "2.1"},
	} {
		strict, known := controllers.StrictSubstitution(row.deployment, row.instance, row.version)
		if strict != row.strict || known != row.known {
			t.Errorf("%s: strict %t, known %t", name, strict, known)
		}
	}
}
