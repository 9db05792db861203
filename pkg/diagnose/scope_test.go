package diagnose

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diagnose/observe"
)

// TestUnwatched checks that an object is only reported if no Deployment of its controller watches it.
func TestUnwatched(t *testing.T) {
	t.Parallel()
	const main, shard = "kustomize-controller", "kustomize-controller-shard1"
	unsharded, sharded := "--watch-label-selector=!sharding.fluxcd.io/key", "--watch-label-selector=sharding.fluxcd.io/key=shard1"
	for name, c := range map[string]struct {
		arguments map[string]string
		namespace string
		shard     string
		unwatched bool
	}{
		"no selector":               {map[string]string{main: "--log-level=info"}, "apps", "", false},
		"selected by the shard":     {map[string]string{main: unsharded, shard: sharded}, "apps", "shard1", false},
		"selected by no shard":      {map[string]string{main: unsharded, shard: sharded}, "apps", "shard2", true},
		"not sharded":               {map[string]string{main: unsharded, shard: sharded}, "apps", "", false},
		"another controller":        {map[string]string{main: sharded, "kustomize-controllers": "--log-level=info"}, "apps", "", true},
		"all namespaces":            {map[string]string{main: "--watch-all-namespaces=true"}, "apps", "", false},
		"its own namespace":         {map[string]string{main: "--watch-all-namespaces=false"}, "flux-system", "", false},
		"another namespace":         {map[string]string{main: "--watch-all-namespaces=false"}, "apps", "", true},
		"an invalid selector":       {map[string]string{main: "--watch-label-selector=a b"}, "apps", "", false},
		"the controller is missing": {map[string]string{"source-controller": sharded}, "apps", "", false},
	} {
		found := map[string]*appsv1.Deployment{}
		for deployment, argument := range c.arguments {
			d := &appsv1.Deployment{}
			d.Spec.Template.Spec.Containers = []corev1.Container{{Args: []string{argument}}}
			found[deployment] = d
		}
		in := &installation{cluster: &observe.Cluster{Home: "flux-system"}, scopes: map[string][]scope{main: scopesOf(main, found)}}
		k, _ := controllers.FindKind(controllers.Kustomization)
		labels := map[string]any{}
		if c.shard != "" {
			labels["sharding.fluxcd.io/key"] = c.shard
		}
		o := controllers.Object{"metadata": map[string]any{"name": "app", "namespace": c.namespace, "labels": labels}}
		if f, unwatched := in.unwatched(k, o); unwatched != c.unwatched {
			t.Errorf("%s: %t %+v", name, unwatched, f)
		}
	}
}

// TestLease compares the names of leases with those that kustomize-controller 1.9 has created.
func TestLease(t *testing.T) {
	t.Parallel()
	for selector, want := range map[string]string{
		"":                        "kustomize-controller-leader-election",
		"!sharding.fluxcd.io/key": "kustomize-controller-leader-election-42da7484",
	} {
		if got := leaseOf("kustomize-controller", scope{labels: selector}); got != want {
			t.Errorf("%q: got %s, want %s", selector, got, want)
		}
	}
}

// TestScopeSelects checks that a scope selects objects by namespace, kind and labels.
func TestScopeSelects(t *testing.T) {
	t.Parallel()
	ks, _ := controllers.FindKind(controllers.Kustomization)
	blue, err := labels.Parse("team=blue")
	if err != nil {
		t.Fatal(err)
	}
	object := func(set map[string]any) controllers.Object {
		return controllers.Object{"metadata": map[string]any{"name": "app", "namespace": "apps", "labels": set}}
	}
	for name, c := range map[string]struct {
		scope  Scope
		kind   string
		labels map[string]any
		want   bool
	}{
		"everything":           {Scope{}, "HelmRelease", nil, true},
		"the namespace":        {Scope{Namespace: "apps"}, "HelmRelease", nil, true},
		"another namespace":    {Scope{Namespace: "app", Labels: blue}, "HelmRelease", map[string]any{"team": "blue"}, false},
		"the kind":             {Scope{Kinds: []controllers.Kind{ks}}, "Kustomization", nil, true},
		"another kind":         {Scope{Kinds: []controllers.Kind{ks}, Labels: blue}, "HelmRelease", map[string]any{"team": "blue"}, false},
		"the label":            {Scope{Labels: blue}, "HelmRelease", map[string]any{"team": "blue", "env": "test"}, true},
		"another value":        {Scope{Labels: blue}, "HelmRelease", map[string]any{"team": "blues"}, false},
		"no labels":            {Scope{Kinds: []controllers.Kind{ks}, Labels: blue}, "Kustomization", nil, false},
		"the label in a value": {Scope{Labels: blue}, "HelmRelease", map[string]any{"other": "team=blue"}, false},
	} {
		if got := c.scope.selects(controllers.FluxID(c.kind, "apps", "app"), object(c.labels)); got != c.want {
			t.Errorf("%s: got %t", name, got)
		}
	}
}
