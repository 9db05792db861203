package e2e_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/controllers"
)

// http sends a request that must succeed, and returns the URL of the Location
// header.
func (s *story) http(method, address, contentType string, body []byte) *url.URL {
	s.Helper()
	request, err := http.NewRequestWithContext(s.Context(), method, address, bytes.NewReader(body))
	if err != nil {
		s.Fatal(err)
	}
	request.Header.Set("Content-Type", contentType)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		s.Fatal(err)
	}
	said, err := io.ReadAll(response.Body)
	if err != nil {
		s.Fatal(err)
	}
	if err := response.Body.Close(); err != nil {
		s.Fatal(err)
	}
	if response.StatusCode >= 300 {
		s.Fatalf("%s %s: %s\n%s", method, address, response.Status, said)
	}
	place, err := response.Location()
	if err != nil {
		return request.URL
	}
	return place
}

// event is an event of notification-controller.
type event struct {
	InvolvedObject struct{ Kind, Namespace, Name string } `json:"involvedObject"`
	Severity       string
	Reason         string
	Message        string
	Metadata       map[string]string
}

// alertAndProvider checks that the end of a reconciliation is sent to an HTTP server.
func (s *story) alertAndProvider() {
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
	s.run("flux", "create", "alert-provider", "sink", "--type=generic", "--address="+sink.URL)
	s.run("flux", "create", "alert", "all", "--provider-ref=sink", "--event-severity=info", "--event-source=Kustomization/*")
	s.commit("Run app", map[string]string{"deploy/app.yaml": s.configMap("git")})
	s.gitRepository()
	s.kustomization("GitRepository/app", s.head())
	over := s.deadline()
	for {
		select {
		case e := <-told:
			if e.InvolvedObject.Kind != "Kustomization" || e.InvolvedObject.Namespace != s.namespace || e.InvolvedObject.Name != "app" {
				s.Errorf("the event is about %v", e.InvolvedObject)
			}
			if e.Reason == "ReconciliationSucceeded" && e.Severity == "info" && e.Metadata["revision"] == s.head() {
				return
			}
		case <-over:
			s.Fatal("no event about the reconciliation was sent")
		}
	}
}

// imageUpdate checks that a new tag is committed to the repository.
func (s *story) imageUpdate() {
	image := s.cluster.Env["FLUX_SANDBOX_REGISTRY"] + "/image/app"
	pushed := func(tag string) {
		s.push("image/app", tag, "application/vnd.oci.image.config.v1+json", "application/vnd.oci.image.layer.v1.tar+gzip", s.archive(nil))
	}
	manifest := func(tag string) string {
		return "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: app\ndata:\n  image: " + image + ":" + tag + ` # {"$imagepolicy": "image:app"}` + "\n"
	}
	pushed("1.0.0")
	pushed("1.1.0")
	pushed("2.0.0")
	s.commit("Run app", map[string]string{"deploy/app.yaml": manifest("1.0.0")})
	s.gitRepository()
	s.create([]string{"image", "repository", "app", "--image=" + image, "--interval=1h"},
		"✔ ImageRepository app is ready", "✔ scan fetched 3 tags")
	s.create([]string{"image", "policy", "app", "--image-ref=app", "--select-semver=1.x"},
		"✔ ImagePolicy app is ready", "✔ selected tag 1.1.0")
	s.run("flux", "create", "image", "update", "app", "--git-repo-ref=app", "--git-repo-path=./deploy", "--checkout-branch=main",
		"--author-name=bot", "--author-email=bot@example.com", "--commit-template=Update app", "--interval=1h")
	s.committed("Update app", manifest("1.1.0"))

	pushed("1.2.0")
	s.run("flux", "reconcile", "image", "repository", "app")
	k, _ := controllers.FindKind("ImagePolicy")
	s.eventually("the policy to choose 1.2.0", kube.Of(k), kube.Selection{Namespace: s.namespace, Name: "app"}, func(e kube.Event) bool {
		return text(e.Object, "status.latestRef.tag") == "1.2.0"
	})
	s.run("flux", "reconcile", "image", "update", "app")
	s.committed("Update app", manifest("1.2.0"))
}

// committed checks the newest commit and the manifest in it.
func (s *story) committed(subject, manifest string) {
	s.Helper()
	s.run("git", "pull", "--quiet", "--rebase")
	if got := strings.TrimSpace(s.run("git", "log", "-1", "--format=%an: %s")); got != "bot: "+subject {
		s.Errorf("the newest commit is %q", got)
	}
	if got := s.run("git", "show", "HEAD:deploy/app.yaml"); got != manifest {
		s.Errorf("the manifest is\n%swant\n%s", got, manifest)
	}
}
