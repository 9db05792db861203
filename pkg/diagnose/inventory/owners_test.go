package inventory

import (
	"slices"
	"strings"
	"testing"

	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diagnose/observe"
	"github.com/fluxkit/flux/pkg/diagnose/rules"
)

// TestContestedNamesTheAnnotationOfEachOwner checks that the annotation that keeps an object belongs
// to the controller that would delete it: each controller ignores the annotation of the other.
func TestContestedNamesTheAnnotationOfEachOwner(t *testing.T) {
	t.Parallel()
	const (
		prune = "kustomize.toolkit.fluxcd.io/prune: disabled"
		keep  = "helm.sh/resource-policy: keep"
	)
	object := controllers.ID{Kind: "ConfigMap", Namespace: "apps", Name: "settings"}
	ks := func(name string) controllers.ID {
		return controllers.FluxID("Kustomization", "apps", name)
	}
	hr := func(name string) controllers.ID {
		return controllers.FluxID("HelmRelease", "apps", name)
	}
	for name, c := range map[string]struct {
		owner controllers.ID
		other controllers.ID
		want  map[string]string
	}{
		"two Kustomizations":             {ks("a"), ks("b"), map[string]string{"Kustomization/apps/a": prune, "Kustomization/apps/b": prune}},
		"two HelmReleases":               {hr("a"), hr("b"), map[string]string{"HelmRelease/apps/a": keep, "HelmRelease/apps/b": keep}},
		"a Kustomization, a HelmRelease": {ks("a"), hr("b"), map[string]string{"Kustomization/apps/a": prune, "HelmRelease/apps/b": keep}},
		"a HelmRelease, a Kustomization": {hr("a"), ks("b"), map[string]string{"HelmRelease/apps/a": keep, "Kustomization/apps/b": prune}},
	} {
		f := contested(object, []controllers.ID{c.owner, c.other})
		for applier, annotation := range c.want {
			found := false
			for _, remedy := range f.Fixes {
				if strings.Contains(remedy, "source of "+applier+",") {
					found = strings.Contains(remedy, annotation)
				}
			}
			if !found {
				t.Errorf("%s: no remedy has %q for %s: %q", name, annotation, applier, f.Fixes)
			}
		}
	}
}

// TestSameRelease has two HelmReleases that manage one Helm release, and near misses.
func TestSameRelease(t *testing.T) {
	t.Parallel()
	release := func(namespace, name string, spec map[string]any) controllers.Object {
		return controllers.Object{"metadata": map[string]any{"namespace": namespace, "name": name}, "spec": spec}
	}
	for name, c := range map[string]struct {
		a, b controllers.Object
		want bool
	}{
		"one releaseName":         {release("apps", "a", map[string]any{"releaseName": "web"}), release("apps", "b", map[string]any{"releaseName": "web"}), true},
		"the name of the other":   {release("apps", "a", map[string]any{"releaseName": "b"}), release("apps", "b", nil), true},
		"other names":             {release("apps", "a", nil), release("apps", "b", nil), false},
		"other storage":           {release("apps", "a", map[string]any{"releaseName": "web", "targetNamespace": "x"}), release("more", "b", map[string]any{"releaseName": "web", "targetNamespace": "x"}), false},
		"other target namespaces": {release("apps", "a", map[string]any{"releaseName": "web", "targetNamespace": "x"}), release("apps", "b", map[string]any{"releaseName": "web"}), false},
		"one default name":        {release("apps", "a", map[string]any{"targetNamespace": "x", "releaseName": "x-a"}), release("apps", "b", map[string]any{"targetNamespace": "x", "releaseName": "x-a"}), true},
	} {
		if got := sameRelease(c.a, c.b); got != c.want {
			t.Errorf("%s: %v, not %v", name, got, c.want)
		}
	}
}

// TestSharing expects all HelmReleases with the Helm release of another, and those that are not suspended.
func TestSharing(t *testing.T) {
	t.Parallel()
	k, _ := controllers.FindKind("HelmRelease")
	applier := func(name string, spec map[string]any) observe.Applier {
		return observe.Applier{Kind: k, Object: controllers.Object{"metadata": map[string]any{"namespace": "apps", "name": name}, "spec": spec}}
	}
	appliers := []observe.Applier{
		applier("web", nil), applier("twin", map[string]any{"releaseName": "web"}), applier("paused", map[string]any{"releaseName": "web", "suspend": true}),
		applier("east", map[string]any{"releaseName": "web", "kubeConfig": map[string]any{}}), applier("other", nil),
	}
	same, active := sharing(rules.NewSubject(k, appliers[0].Object, ""), appliers)
	want := []controllers.ID{controllers.FluxID("HelmRelease", "apps", "twin"), controllers.FluxID("HelmRelease", "apps", "paused")}
	if !slices.Equal(same, want) || !slices.Equal(active, want[:1]) {
		t.Errorf("%v, %v", same, active)
	}
}
