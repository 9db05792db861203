package diagnose

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diagnose/rules"
	"github.com/fluxkit/flux/test/support/fakeapi"
)

// panicked is the end of the log of a Go program, whose stack is longer than what is shown.
const panicked = `{"level":"info","msg":"starting workers","controller":"kustomization"}
panic: runtime error: index out of range [3] with length 3 [recovered]
	panic: runtime error: index out of range [3] with length 3

goroutine 412 [running]:
main.reconcile(0x1)
	/workspace/main.go:12 +0x1
main.second(0x1)
	/workspace/main.go:22 +0x1
main.third(0x1)
	/workspace/main.go:32 +0x1
`

const (
	deploymentsPath = "/apis/apps/v1/namespaces/web/deployments"
	podsPath        = "/api/v1/namespaces/web/pods"
)

func deployment(name, number string, available int) controllers.Object {
	return controllers.Object{
		"apiVersion": "apps/v1", "kind": "Deployment",
		"metadata": map[string]any{"name": name, "namespace": "web", "generation": 1, "annotations": map[string]any{"deployment.kubernetes.io/revision": number}},
		"spec":     map[string]any{"replicas": 1},
		"status":   map[string]any{"observedGeneration": 1, "replicas": 1, "updatedReplicas": 1, "availableReplicas": available},
	}
}

func podOf(owner, template string, status map[string]any) controllers.Object {
	return controllers.Object{
		"apiVersion": "v1", "kind": "Pod",
		"metadata": map[string]any{
			"name": owner + "-" + template + "-x", "namespace": "web", "labels": map[string]any{"pod-template-hash": template},
			"ownerReferences": []any{map[string]any{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": owner + "-" + template, "uid": "1", "controller": true}},
		},
		"spec":   map[string]any{"nodeName": "node-a", "containers": []any{map[string]any{"name": "manager", "image": "example.com/app:v1"}}},
		"status": status,
	}
}

func container1(state, last map[string]any, restarts int) map[string]any {
	return map[string]any{"containerStatuses": []any{map[string]any{"name": "manager", "restartCount": restarts, "state": state, "lastState": last}}}
}

func cluster(t *testing.T) *fakeapi.Server {
	t.Helper()
	s := fakeapi.New(t)
	s.Serve(deploymentsPath, podsPath)
	return s
}

// TestCrashing diagnoses a Kustomization while its controller runs. The clock is at 10:01:00.
func TestCrashing(t *testing.T) {
	t.Parallel()
	const loop = "controller-crashing"
	for name, c := range map[string]struct {
		controller       string
		restarts, code   int
		started, ended   string
		available, since string
		want             string
		pods             bool
	}{
		"panics on each reconciliation":       {"kustomize-controller", 3, 2, "10:00:20", "10:00:40", "10:00:45", "10:00:00", loop, true},
		"fails for another reason":            {"kustomize-controller", 2, 1, "10:00:20", "10:00:40", "10:00:45", "10:00:00", loop, true},
		"restarted once":                      {"kustomize-controller", 1, 2, "10:00:20", "10:00:40", "10:00:45", "10:00:00", "progressing", true},
		"restarted long ago":                  {"kustomize-controller", 3, 2, "08:00:20", "08:00:40", "08:00:45", "08:00:00", "progressing", true},
		"ran for a long time before it ended": {"kustomize-controller", 3, 2, "08:00:20", "10:00:40", "10:00:45", "10:00:00", "progressing", true},
		"ended without a failure":             {"kustomize-controller", 3, 0, "10:00:20", "10:00:40", "10:00:45", "10:00:00", "progressing", true},
		"another controller crashes":          {"helm-controller", 3, 2, "10:00:20", "10:00:40", "10:00:45", "10:00:00", "progressing", true},
		"began after the last crash":          {"kustomize-controller", 3, 2, "10:00:20", "10:00:40", "10:00:45", "10:00:50", "progressing", true},
		"available since its rollout":         {"kustomize-controller", 3, 2, "10:00:20", "10:00:40", "07:00:00", "10:00:00", "progressing", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			at := func(clock string) string { return "2026-11-01T" + clock + "Z" }
			s := cluster(t)
			for _, controller := range []string{"kustomize-controller", "helm-controller"} {
				d := deployment(controller, "1", 1)
				available := at("07:00:00")
				if controller == c.controller {
					available = at(c.available)
				}
				d["status"].(map[string]any)["conditions"] = []any{
					map[string]any{"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable", "lastUpdateTime": at("07:00:00")},
					map[string]any{"type": "Available", "status": "True", "lastTransitionTime": available},
				}
				s.Put(deploymentsPath, d)
			}
			s.Put(podsPath, podOf(c.controller, "new", container1(map[string]any{"running": map[string]any{}}, map[string]any{"terminated": map[string]any{
				"exitCode": c.code, "startedAt": at(c.started), "finishedAt": at(c.ended),
			}}, c.restarts)))
			s.Handle("GET "+podsPath+"/"+c.controller+"-new-x/log", func(w http.ResponseWriter, _ *http.Request) { fakeapi.Reply(w, panicked) })

			now, err := time.Parse(time.RFC3339, at("10:01:00"))
			if err != nil {
				t.Fatal(err)
			}
			diagnosis := diagnosisOf(Diagnoser{Client: s.Client, Home: "web", Now: now}, []controllers.Object{reconciling(at(c.since))}, nil)
			if err := diagnosis.installation.read(t.Context(), apierrors.IsForbidden); err != nil {
				t.Fatal(err)
			}
			f, _ := diagnosis.evaluation.of(named("app"))
			if f == nil || f.Code != c.want {
				t.Fatalf("finding %+v, want %s", f, c.want)
			}
			if got := slices.Contains(s.Requests(), "GET "+podsPath); got != c.pods {
				t.Errorf("requests %q", s.Requests())
			}
			if text := strings.Join(f.Details, "\n"); c.want == loop && (!strings.HasPrefix(text, "| panic: runtime error: index out of range") || !strings.Contains(f.Message, "restarts)")) {
				t.Errorf("%s\n%s", f.Message, text)
			}
		})
	}
}

// reconciling returns a Kustomization whose reconciliation began at a time.
func reconciling(since string) controllers.Object {
	condition := func(typ, status string) map[string]any {
		return map[string]any{"type": typ, "status": status, "reason": "Progressing", "message": "Building manifests", "lastTransitionTime": since}
	}
	return controllers.Object{
		"apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization",
		"metadata": map[string]any{"name": "app", "namespace": "apps", "generation": int64(1)},
		"spec":     map[string]any{"interval": "10m"},
		"status":   map[string]any{"observedGeneration": int64(1), "conditions": []any{condition("Reconciling", "True"), condition("Ready", "Unknown")}},
	}
}

// TestRemediesNameTheNamespaceOfTheControllers checks that remedies name the namespace of the
// controllers.
func TestRemediesNameTheNamespaceOfTheControllers(t *testing.T) {
	t.Parallel()
	o := controllers.Object{
		"apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "GitRepository", "metadata": map[string]any{"namespace": "apps", "name": "app"},
		"status": map[string]any{"conditions": []any{map[string]any{
			"type": "Ready", "status": "False", "reason": "StorageOperationFailed", "message": "failed to create artifact directory: no space left on device",
		}}},
	}
	s := diagnosisOf(Diagnoser{Home: "gitops"}, []controllers.Object{o}, nil)
	f, _ := s.evaluation.of(controllers.FluxID("GitRepository", "apps", "app"))
	if f == nil || f.Code != "controller-storage" {
		t.Fatalf("finding %+v", f)
	}
	if text := strings.Join(f.Fixes, "\n"); strings.Contains(text, "flux-system") || !strings.Contains(text, "kubectl -n gitops describe pods -l app=source-controller") {
		t.Error(text)
	}
}

// TestDeletionOfFlux checks that a Flux object waits for its controller: no remedy removes
// its finalizer, and if the controller is down, the remedy is to fix the controller.
func TestDeletionOfFlux(t *testing.T) {
	t.Parallel()
	o := kustomization("app", "True", "ReconciliationSucceeded", "Applied revision", nil)
	metadata := o["metadata"].(map[string]any)
	metadata["deletionTimestamp"], metadata["finalizers"] = "2026-11-21T09:00:00Z", []any{"finalizers.fluxcd.io", "example.com/hold"}
	s := diagnosisOf(Diagnoser{Now: time.Date(2026, 11, 25, 9, 0, 0, 0, time.UTC)}, []controllers.Object{o}, nil).installation
	f, _ := s.deletion(named("app"), o)
	want := []string{"flux logs --for Kustomization/app -n apps", "check that a controller of example.com is running, and check its logs"}
	if diff := cmp.Diff(want, f.Fixes); diff != "" {
		t.Error(diff)
	}
	metadata["finalizers"] = nil
	if f, _ := s.deletion(named("app"), o); strings.HasSuffix(strings.TrimSpace(f.Message), ":") || strings.Contains(f.Message, "finalizer") {
		t.Errorf("without finalizers: %q", f.Message)
	}
	metadata["finalizers"] = []any{"finalizers.fluxcd.io"}
	s.down["kustomize-controller"] = rules.Finding{Code: "controller-stopped", Message: "the kustomize-controller is scaled to zero", Fixes: []string{"scale it"}}
	found, _ := s.deletion(named("app"), o)
	if diff := cmp.Diff([]string{"scale it"}, found.Fixes); diff != "" {
		t.Error(diff)
	}
}
