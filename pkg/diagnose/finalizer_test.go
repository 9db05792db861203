package diagnose

import (
	"strings"
	"testing"

	"github.com/fluxkit/flux/pkg/controllers"
)

func TestOwnerOfFinalizer(t *testing.T) {
	t.Parallel()
	for finalizer, want := range map[string]string{
		"kubernetes.io/pvc-protection":                  "kube-controller-manager",
		"foregroundDeletion":                            "the garbage collector of kube-controller-manager",
		"finalizers.fluxcd.io":                          "the Flux controller of its kind",
		"resources-finalizer.argocd.argoproj.io":        "the Argo CD application controller",
		"finalizer.managedresource.crossplane.io":       "the controller that added it",
		"finalizer.crossplane.io/managed":               "Crossplane",
		"machine.cluster.x-k8s.io/protect":              "Cluster API",
		"notcrossplane.io/hold":                         "a controller of notcrossplane.io",
		"example.com/kubernetes.io/pvc-protection":      "a controller of example.com",
		"example.com/hold":                              "a controller of example.com",
		"hold":                                          "the controller that added it",
		"kubernetes.io/pvc-protection-of-somebody-else": "a controller of kubernetes.io",
	} {
		if got := ownerOfFinalizer(finalizer); got.owner != want {
			t.Errorf("ownerOfFinalizer(%q) = %q, want %q", finalizer, got.owner, want)
		}
	}
}

func TestBlockedDeletion(t *testing.T) {
	t.Parallel()
	object := func(deleted string, finalizers ...any) controllers.Object {
		m := map[string]any{"name": "settings", "namespace": "apps"}
		if deleted != "" {
			m["deletionTimestamp"] = deleted
		}
		if len(finalizers) > 0 {
			m["finalizers"] = finalizers
		}
		return controllers.Object{"metadata": m}
	}
	target := controllers.Target{APIVersion: "v1", Kind: "ConfigMap", Namespace: "apps", Name: "settings"}
	for name, o := range map[string]controllers.Object{
		"not deleted":           object("", "example.com/hold"),
		"without any finalizer": object("2026-11-21T09:00:00Z"),
	} {
		if f, blocked := blockedDeletion(target, o); blocked {
			t.Errorf("%s: %s", name, f.Message)
		}
	}
	f, blocked := blockedDeletion(target, object("2026-11-21T09:00:00Z", "example.com/hold", "kubernetes.io/pvc-protection"))
	text := strings.Join(append(append([]string{f.Message}, f.Details...), f.Remedies...), "\n")
	for _, want := range []string{
		"2026-11-21T09:00:00Z", "example.com/hold is removed by a controller of example.com", "a Pod still uses the PersistentVolumeClaim",
		`kubectl -n apps patch configmap settings --type=merge -p '{"metadata":{"finalizers":null}}'`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
	if !blocked || f.Object.APIVersion != "" {
		t.Errorf("blocked %t, object %+v", blocked, f.Object)
	}
	if got := resourceWord(controllers.Target{APIVersion: "acme.cert-manager.io/v1", Kind: "Challenge"}); got != "challenge.v1.acme.cert-manager.io" {
		t.Errorf("resourceWord = %q", got)
	}
}
