package diagnose

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/fluxkit/flux/pkg/controllers"
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
			app := controllers.FluxID("Kustomization", "apps", "app")
			diagnosis := Doctor{Client: s.Client, Home: "web", Now: now}.newDiagnosis()
			if err := diagnosis.installation.read(t.Context(), apierrors.IsForbidden); err != nil {
				t.Fatal(err)
			}
			object := reconciling(at(c.since))
			diagnosis.objects[app] = object
			diagnosis.connect([]controllers.Object{object})
			f, _ := diagnosis.local(app)
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

func TestNotable(t *testing.T) {
	t.Parallel()
	lines := strings.Split("1,2,3,4,5,6,7", ",")
	for name, c := range map[string]struct{ log, want []string }{
		"short":                 {lines[:2], lines[:2]},
		"long":                  {lines, lines[2:]},
		"a panic":               {append([]string{"0", "panic: a"}, lines...), []string{"panic: a", "1", "2", "3", "4"}},
		"the last panic":        {[]string{"panic: a", "1", "panic: b", "2"}, []string{"panic: b", "2"}},
		"a panic in a record":   {append([]string{`{"msg":"panic: a"}`}, lines...), lines[2:]},
		"a fatal error":         {append([]string{"fatal error: concurrent map writes"}, lines...), []string{"fatal error: concurrent map writes", "1", "2", "3", "4"}},
		"nothing":               {nil, nil},
		"the word in a message": {append([]string{"do not panic: all is well"}, lines...), lines[2:]},
	} {
		if got := notable(c.log); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
