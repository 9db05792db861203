package diagnose

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/test/support/fakeapi"
)

// recovered is a line of the log of kustomize-controller with the replaced parts OBJECT, TIME, MESSAGE and
// ERROR.
const recovered = `TIME {"level":"error","ts":"TIME","msg":"MESSAGE","controller":"kustomization","controllerGroup":"kustomize.toolkit.fluxcd.io",` +
	`"controllerKind":"Kustomization","Kustomization":{"name":"OBJECT","namespace":"apps"},"namespace":"apps","name":"OBJECT","reconcileID":"1","error":"ERROR"}` + "\n"

// TestPanics diagnoses a Kustomization in progress since 10:00:00. The clock is at 10:05:00, and Flux
// controllers recover from panics.
func TestPanics(t *testing.T) {
	t.Parallel()
	const is, message = "panic: runtime error: index out of range [3] with length 3 [recovered]", "Reconciler error"
	for name, c := range map[string]struct {
		object, at, message, error string
		now                        string
		want                       string
		read                       bool
	}{
		"panics":                   {"app", "10:04:00", message, is, "10:05:00", "controller-panic", true},
		"another object":           {"other", "10:04:00", message, is, "10:05:00", "progressing", true},
		"before this attempt":      {"app", "09:59:00", message, is, "10:05:00", "progressing", true},
		"an error with the word":   {"app", "10:04:00", message, "job failed: panic: out of range [recovered]", "10:05:00", "progressing", true},
		"another message":          {"app", "10:04:00", "Event failed", is, "10:05:00", "progressing", true},
		"the reconciliation began": {"app", "10:00:10", message, is, "10:00:30", "progressing", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			at := func(clock string) string { return "2026-11-01T" + clock + "Z" }
			s := cluster(t)
			pod := podOf("kustomize-controller", "new", container1(map[string]any{"running": map[string]any{}}, nil, 0))
			pod["metadata"].(map[string]any)["labels"].(map[string]any)["app.kubernetes.io/part-of"] = "flux"
			s.Put(podsPath, pod)
			s.Serve("/api/v1/namespaces/apps/events")
			log := "GET " + podsPath + "/kustomize-controller-new-x/log"
			s.Handle(log, func(w http.ResponseWriter, _ *http.Request) {
				fakeapi.Reply(w, "%s", strings.NewReplacer("OBJECT", c.object, "TIME", at(c.at), "MESSAGE", c.message, "ERROR", c.error).Replace(recovered))
			})
			now, err := time.Parse(time.RFC3339, at(c.now))
			if err != nil {
				t.Fatal(err)
			}
			diagnosis := diagnosisOf(Diagnoser{Client: s.Client, Home: "web", Now: now}, []controllers.Object{reconciling(at("10:00:00"))}, nil)
			root := diagnosis.evaluation.chain(named("app"))[0]
			diagnosis.examine(t.Context(), &root)
			if root.Code != c.want {
				t.Errorf("root %+v, want %s", root, c.want)
			}
			if c.want == "controller-panic" && !strings.HasSuffix(root.Message, "panics when it reconciles the object: runtime error: index out of range [3] with length 3") {
				t.Error(root.Message)
			}
			logged := strings.Join(root.Details, "\n")
			if want := strings.Contains(name, "error with") || strings.Contains(name, "another message"); want != strings.Contains(logged, "log of kustomize-controller 10:04:00: "+c.message+": ") {
				t.Errorf("details %q, logged %v", logged, want)
			}
			if got := slices.Contains(s.Requests(), log); got != c.read {
				t.Errorf("requests %q", s.Requests())
			}
		})
	}
}
