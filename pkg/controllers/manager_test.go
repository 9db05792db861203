package controllers_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/fluxkit/flux/pkg/controllers"
)

func TestManager(t *testing.T) {
	t.Parallel()
	object := func(name string, labels map[string]any) controllers.Object {
		return controllers.Object{
			"apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization", "metadata": map[string]any{"namespace": "apps", "name": name, "labels": labels},
		}
	}
	by := func(group, namespace, name string) map[string]any {
		return map[string]any{group + "/name": name, group + "/namespace": namespace}
	}
	for name, test := range map[string]struct {
		object controllers.Object
		want   string
	}{
		"a Kustomization":                      {object("app", by("kustomize.toolkit.fluxcd.io", "flux-system", "fleet")), "Kustomization/flux-system/fleet"},
		"a HelmRelease":                        {object("app", by("helm.toolkit.fluxcd.io", "web", "chart")), "HelmRelease/web/chart"},
		"itself, as that of a bootstrap":       {object("app", by("kustomize.toolkit.fluxcd.io", "apps", "app")), ""},
		"one of its name in another namespace": {object("app", by("kustomize.toolkit.fluxcd.io", "fleet", "app")), "Kustomization/fleet/app"},
		"labels of others":                     {object("app", map[string]any{"app.kubernetes.io/name": "app"}), ""},
		"no labels":                            {object("app", nil), ""},
	} {
		got, ok := controllers.Manager(test.object)
		if ok != (test.want != "") || ok && got.String() != test.want {
			t.Errorf("%s: %v %t", name, got, ok)
		}
	}
}

func TestApplies(t *testing.T) {
	t.Parallel()
	for _, k := range controllers.Kinds {
		if want := k.Kind == "Kustomization" || k.Kind == "HelmRelease"; k.Applies() != want {
			t.Errorf("%s: %t", k.Kind, k.Applies())
		}
	}
}

// TestRemoveOwner checks that the marks of owners are removed, and nothing else.
func TestRemoveOwner(t *testing.T) {
	t.Parallel()
	o := controllers.Object{"metadata": controllers.Object{
		"name": "app",
		"labels": controllers.Object{
			"team": "blue", "app.kubernetes.io/managed-by": "kustomize", "kustomize.toolkit.fluxcd.io/name": "apps",
			"kustomize.toolkit.fluxcd.io/namespace": "flux-system", "kustomize.toolkit.fluxcd.io/prune": "disabled",
		},
		"annotations": controllers.Object{"meta.helm.sh/release-name": "app"},
	}}
	controllers.RemoveOwner(o)
	want := controllers.Object{"metadata": controllers.Object{"name": "app", "labels": controllers.Object{
		"team": "blue", "app.kubernetes.io/managed-by": "kustomize", "kustomize.toolkit.fluxcd.io/prune": "disabled",
	}}}
	if !reflect.DeepEqual(o, want) {
		t.Errorf("%v, want %v", o, want)
	}
}

func TestManagedByFlux(t *testing.T) {
	t.Parallel()
	for managers, want := range map[string]bool{
		"":                                     true, // removed: unknown
		"kustomize-controller":                 true,
		"kube-controller-manager":              false,
		"kubectl helm-controller":              true,
		"kubectl kustomize-controller-staging": false,
		"flux-operator":                        true,
		"source-controller":                    false, // it applies nothing
	} {
		var entries []any
		for _, name := range strings.Fields(managers) {
			entries = append(entries, map[string]any{"manager": name})
		}
		if got := controllers.ManagedByFlux(controllers.Object{"metadata": map[string]any{"managedFields": entries}}); got != want {
			t.Errorf("%q: %t, want %t", managers, got, want)
		}
	}
}
