package controllers_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fluxkit/flux/pkg/controllers"
)

func kind(t *testing.T, name string) controllers.Kind {
	t.Helper()
	k, ok := controllers.FindKind(name)
	if !ok {
		t.Fatalf("no kind %s", name)
	}
	return k
}

func TestUpstream(t *testing.T) {
	t.Parallel()
	meta := map[string]any{"namespace": "apps", "name": "web"}
	chart := func(ref map[string]any) map[string]any {
		return map[string]any{"chart": map[string]any{"spec": map[string]any{"chart": "web", "sourceRef": ref}}}
	}
	oci := func(ref map[string]any) map[string]any {
		spec := map[string]any{"url": "oci://ghcr.io/org/web"}
		if ref != nil {
			spec["sourceRef"] = ref
		}
		return map[string]any{"chart": map[string]any{"kind": "OCIRepository", "spec": spec}}
	}
	for _, test := range []struct {
		name, kind string
		spec       map[string]any
		status     map[string]any
		want       []controllers.ID
	}{
		{"a chart beside the release", "HelmRelease", chart(map[string]any{"kind": "HelmRepository", "name": "charts"}), nil,
			[]controllers.ID{controllers.FluxID("HelmChart", "apps", "apps-web")}},
		{"a chart beside its source", "HelmRelease", chart(map[string]any{"kind": "HelmRepository", "name": "charts", "namespace": "flux-system"}), nil,
			[]controllers.ID{controllers.FluxID("HelmChart", "flux-system", "apps-web")}},
		{"a chart that the status names", "HelmRelease", chart(map[string]any{"kind": "HelmRepository", "name": "charts"}),
			map[string]any{"helmChart": "infra/other"}, []controllers.ID{controllers.FluxID("HelmChart", "infra", "other")}},
		{"an OCIRepository for the release", "HelmRelease", oci(nil), nil,
			[]controllers.ID{controllers.FluxID("OCIRepository", "apps", "apps-web")}},
		{"an OCIRepository that the status names", "HelmRelease", oci(nil), map[string]any{"helmChart": "OCIRepository/apps/other"},
			[]controllers.ID{controllers.FluxID("OCIRepository", "apps", "other")}},
		{"an OCIRepository with fields of a HelmChart", "HelmRelease", oci(map[string]any{"kind": "HelmRepository", "name": "charts", "namespace": "flux-system"}), nil,
			[]controllers.ID{controllers.FluxID("OCIRepository", "apps", "apps-web")}},
		{"a HelmChart until the controller has replaced it", "HelmRelease", oci(nil), map[string]any{"helmChart": "apps/apps-web"},
			[]controllers.ID{controllers.FluxID("OCIRepository", "apps", "apps-web")}},
		{"an OCIRepository until the controller has replaced it", "HelmRelease", chart(map[string]any{"kind": "HelmRepository", "name": "charts"}),
			map[string]any{"helmChart": "OCIRepository/apps/apps-web"}, []controllers.ID{controllers.FluxID("HelmChart", "apps", "apps-web")}},
		{"a HelmChart with its kind", "HelmRelease", chart(map[string]any{"kind": "HelmRepository", "name": "charts"}),
			map[string]any{"helmChart": "HelmChart/infra/other"}, []controllers.ID{controllers.FluxID("HelmChart", "infra", "other")}},
		{"a chart reference", "HelmRelease", map[string]any{"chartRef": map[string]any{"kind": "OCIRepository", "name": "web", "namespace": "oci"}}, nil,
			[]controllers.ID{controllers.FluxID("OCIRepository", "oci", "web")}},
		{"a scan", "ImagePolicy", map[string]any{"imageRepositoryRef": map[string]any{"name": "web"}}, nil,
			[]controllers.ID{controllers.FluxID("ImageRepository", "apps", "web")}},
		{"nothing", "GitRepository", map[string]any{"url": "https://example.com"}, nil, nil},
	} {
		o := controllers.Object{"metadata": meta, "spec": test.spec, "status": test.status}
		if diff := cmp.Diff(test.want, kind(t, test.kind).Upstream(o)); diff != "" {
			t.Errorf("%s: -want +got:\n%s", test.name, diff)
		}
	}
}

func TestInventory(t *testing.T) {
	t.Parallel()
	var entries []any
	for _, id := range []string{"apps_web_apps_Deployment", "_system__web_rbac.authorization.k8s.io_ClusterRole", "apps_web__Service", "broken", "a_b"} {
		entries = append(entries, map[string]any{"id": id, "v": "v1"})
	}
	o := controllers.Object{"status": map[string]any{"inventory": map[string]any{"entries": entries}}}
	want := []controllers.VersionedID{
		{ID: controllers.ID{Group: "apps", Kind: "Deployment", Namespace: "apps", Name: "web"}, Version: "v1"},
		{ID: controllers.ID{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole", Name: "system:web"}, Version: "v1"},
		{ID: controllers.ID{Kind: "Service", Namespace: "apps", Name: "web"}, Version: "v1"},
	}
	got, err := controllers.ParseInventory(o)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if err == nil || !strings.Contains(err.Error(), `"broken"`) {
		t.Errorf("the error about the invalid entries: %v", err)
	}
	if ids := controllers.Managed(o); len(ids) != len(want) || ids[0] != want[0].ID {
		t.Errorf("managed: %v", ids)
	}
}

func TestRetriesExhausted(t *testing.T) {
	t.Parallel()
	object := func(typ, status, reason, message string) controllers.Object {
		return controllers.Object{"status": map[string]any{"conditions": []any{
			map[string]any{"type": typ, "status": status, "reason": reason, "message": message},
		}}}
	}
	for _, test := range []struct {
		name   string
		object controllers.Object
		want   bool
	}{
		{"stalled", object("Stalled", "True", "RetriesExceeded", "Failed to install after 1 attempt(s)"), true},
		{"nothing to roll back to", object("Stalled", "True", "MissingRollbackTarget", ""), true},
		{"an older controller", object("Ready", "False", "InstallFailed", "install retries exhausted"), true},
		{"stalled for another reason", object("Stalled", "True", "InvalidChartReference", ""), false},
		{"no longer stalled", object("Stalled", "False", "RetriesExceeded", ""), false},
		{"failed", object("Ready", "False", "InstallFailed", "timed out"), false},
		{"named like it", object("Ready", "False", "InstallFailed", "Helm install failed for release apps/retries-exhausted with chart app@0.1.0: install retries exhausted, cannot remediate"), false},
	} {
		if got := controllers.RetriesExhausted(test.object); got != test.want {
			t.Errorf("%s: %t", test.name, got)
		}
	}
}
