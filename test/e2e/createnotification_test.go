package e2e_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
)

// event is an event of notification-controller.
type event struct {
	InvolvedObject struct{ Kind, Namespace, Name string } `json:"involvedObject"`
	Severity       string
	Reason         string
	Message        string
	Metadata       map[string]string
}

// TestCreateAlert checks that the end of a reconciliation is sent to an HTTP server.
func TestCreateAlert(t *testing.T) {
	t.Parallel()
	f := newTeam(t)
	told := make(chan event, 100)
	sink := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var e event
		if err := json.NewDecoder(r.Body).Decode(&e); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		told <- e
	}))
	defer sink.Close()
	f.shell.run("flux", "create", "alert-provider", "sink", "--type=generic", "--address="+sink.URL)
	f.shell.run("flux", "create", "alert", "all", "--provider-ref=sink", "--event-severity=info", "--event-source=Kustomization/*")
	f.git.commit("Run app", map[string]string{"deploy/app.yaml": configMapFrom(f, "git")})
	createGitRepository(f)
	createKustomization(f, "GitRepository/app", f.git.revision())
	over, seen := deadline(t), []event{}
	for {
		select {
		case e := <-told:
			seen = append(seen, e)
			if e.InvolvedObject.Kind != "Kustomization" || e.InvolvedObject.Namespace != f.namespace || e.InvolvedObject.Name != "app" {
				t.Errorf("the event is about %v", e.InvolvedObject)
			}
			if e.Reason == "ReconciliationSucceeded" && e.Severity == "info" && e.Metadata["revision"] == f.git.revision() {
				return
			}
		case <-over:
			t.Fatalf("no event about the reconciliation was sent, but %+v", seen)
		}
	}
}
