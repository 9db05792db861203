package rules

import (
	"strings"
	"testing"
	"time"

	"github.com/fluxkit/flux/pkg/controllers"
)

func TestOwnerOfFinalizer(t *testing.T) {
	t.Parallel()
	for finalizer, want := range map[string]string{
		"kubernetes.io/pvc-protection":                 "kube-controller-manager",
		"foregroundDeletion":                           "the garbage collector of kube-controller-manager",
		"finalizers.fluxcd.io":                         "the Flux controller of its kind",
		"resources-finalizer.argocd.argoproj.io":       "the Argo CD application controller",
		"finalizer.managedresource.crossplane.io":      "the controller that added it",
		"finalizer.crossplane.io/managed":              "Crossplane",
		"machine.cluster.x-k8s.io/protect":             "Cluster API",
		"notcrossplane.io/hold":                        "a controller of notcrossplane.io",
		"example.com/kubernetes.io/pvc-protection":     "a controller of example.com",
		"example.com/hold":                             "a controller of example.com",
		"hold":                                         "the controller that added it",
		"kubernetes.io/pvc-protection-of-someone-else": "a controller of kubernetes.io",
	} {
		if got := ownerOfFinalizer(finalizer); got.owner != want {
			t.Errorf("ownerOfFinalizer(%q) = %q, want %q", finalizer, got.owner, want)
		}
	}
}

func TestDeletion(t *testing.T) {
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
	target := controllers.ID{Kind: "ConfigMap", Namespace: "apps", Name: "settings"}
	requested := time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)
	const at, patch = "2026-11-21T09:00:00Z", `kubectl -n apps patch configmap settings --type=merge -p '{"metadata":{"finalizers":null}}'`
	if f, blocked := Deletion(target, object("", "example.com/hold"), requested); blocked {
		t.Errorf("not deleted: %s", f.Message)
	}
	for name, c := range map[string]struct {
		o      controllers.Object
		after  time.Duration
		says   []string
		hidden string
	}{
		"young":     {object(at, "example.com/hold"), 59 * time.Minute, []string{at, "example.com/hold is removed by a controller of example.com", "check that a controller of example.com is running"}, "finalizers\":null"},
		"stuck":     {object(at, "example.com/hold"), time.Hour, []string{patch, "this skips the cleanup of that controller", "only if no controller will remove it"}, "as a last resort"},
		"in use":    {object(at, "example.com/hold", "kubernetes.io/pvc-protection"), 24 * time.Hour, []string{"a Pod still uses the PersistentVolumeClaim", "kubectl -n apps describe configmap settings"}, "finalizers\":null"},
		"namespace": {object(at), 24 * time.Hour, []string{"has not finished", "kubectl -n apps describe configmap settings"}, "finalizer"},
	} {
		f, blocked := Deletion(target, c.o, requested.Add(c.after))
		text := strings.Join(append(append([]string{f.Message}, f.Details...), f.Fixes...), "\n")
		for _, want := range c.says {
			if !strings.Contains(text, want) {
				t.Errorf("%s: %q is not in\n%s", name, want, text)
			}
		}
		if strings.Contains(text, c.hidden) {
			t.Errorf("%s: %q is in\n%s", name, c.hidden, text)
		}
		if !blocked || f.Object != target || f.Code != "deleting" {
			t.Errorf("%s: blocked %t, object %+v", name, blocked, f.Object)
		}
	}
}

// TestKubectl checks that the name of an object is one argument, and no option: an RBAC object may have any name.
func TestKubectl(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"a":          "kubectl patch challenge.acme.cert-manager.io a --type=merge",
		"system:ops": "kubectl patch challenge.acme.cert-manager.io system:ops --type=merge",
		"$(reboot)":  "kubectl patch challenge.acme.cert-manager.io '$(reboot)' --type=merge",
		"--all":      "kubectl patch challenge.acme.cert-manager.io/--all --type=merge",
	} {
		if got := Kubectl(controllers.ID{Group: "acme.cert-manager.io", Kind: "Challenge", Name: name}, "patch", "--type=merge"); got != want {
			t.Errorf("%q: %s", name, got)
		}
	}
}

// TestNamespaceConditions has the conditions of kube-controller-manager 1.36 for a Namespace that it cannot delete, and one
// whose conditions report that nothing is left.
func TestNamespaceConditions(t *testing.T) {
	t.Parallel()
	namespace := func(status string) controllers.Object {
		condition := func(typ, reason, message string) any {
			return map[string]any{"type": typ, "status": status, "reason": reason, "message": message}
		}
		return controllers.Object{"status": map[string]any{"conditions": []any{
			condition("NamespaceDeletionDiscoveryFailure", "DiscoveryFailed", "Discovery failed for some groups, 1 failing: unable to retrieve the complete list of server APIs: metrics.k8s.io/v1beta1: stale GroupVersion discovery: metrics.k8s.io/v1beta1"),
			condition("NamespaceContentRemaining", "SomeResourcesRemain", "Some resources are remaining: gizmos.example.com has 1 resource instances"),
			condition("NamespaceFinalizersRemaining", "SomeFinalizersRemain", "Some content in the namespace has finalizers remaining: example.com/x in 1 resource instances"),
		}}}
	}
	details, fixes := NamespaceConditions(namespace("True"))
	if len(details) != 3 || !strings.Contains(details[1], "gizmos.example.com has 1") {
		t.Errorf("details %q", details)
	}
	if len(fixes) != 2 || !strings.HasSuffix(fixes[1], ": kubectl delete apiservice v1beta1.metrics.k8s.io") {
		t.Errorf("fixes %q", fixes)
	}
	if details, fixes := NamespaceConditions(namespace("False")); details != nil || fixes != nil {
		t.Errorf("of an empty namespace: %q, %q", details, fixes)
	}
}

// TestFailedHook has a release whose pre-delete hook fails, and near misses.
func TestFailedHook(t *testing.T) {
	t.Parallel()
	const here = `{"targetNamespace": "target"}`
	const message = "Helm uninstall failed for release apps/web with chart web@1.0.0: 1 error occurred:\n\t* job clean-up failed: BackoffLimitExceeded"
	for name, c := range map[string]struct {
		deleted, reason, message string
		spec, want               string
	}{
		"a hook":          {"2026-11-01T10:00:00Z", "UninstallFailed", message, here, "Job/target/clean-up"},
		"not deleted":     {"", "UninstallFailed", message, here, ""},
		"an installation": {"2026-11-01T10:00:00Z", "InstallFailed", message, here, ""},
		"another failure": {"2026-11-01T10:00:00Z", "UninstallFailed", "Helm uninstall failed: job of the release failed", here, ""},
		"another cluster": {"2026-11-01T10:00:00Z", "UninstallFailed", message, `{"targetNamespace": "target", "kubeConfig": {"secretRef": {"name": "east"}}}`, ""},
	} {
		s := failing(t, "HelmRelease", c.reason, c.message, c.spec)
		if c.deleted != "" {
			s.Object["metadata"].(map[string]any)["deletionTimestamp"] = c.deleted
		}
		got, found := FailedHook(s.Kind, s.Object)
		if found != (c.want != "") || found && got.String() != c.want {
			t.Errorf("%s: %v, not %q", name, got, c.want)
		}
	}
}
