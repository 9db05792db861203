package tree_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/fluxkit/flux/internal/kube"
)

type object = map[string]any

// server is an API server for lists and gets. Other requests and requests for
// unexpected resources fail the test.
type server struct {
	t       *testing.T
	objects []object
	// kinds are the served resources, "group/version/plural", and their kinds.
	kinds map[string]string
	// answers are complete responses by path, for discovery.
	answers map[string]any
	// absent are the paths for which a NotFound response is expected.
	absent []string
	// forbidden are the forbidden paths, with or without a query.
	forbidden []string
	// waves are the numbers of parallel requests. A response waits for all
	// requests of its wave. Empty if the test does not check them.
	waves []int

	mu       sync.Mutex
	requests []string
	arrived  int
	gates    []chan struct{}
}

var builtIn = map[string]string{
	"/v1/namespaces": "Namespace", "/v1/pods": "Pod", "/v1/configmaps": "ConfigMap", "/v1/secrets": "Secret", "/v1/persistentvolumeclaims": "PersistentVolumeClaim",
	"apps/v1/deployments": "Deployment", "apps/v1/replicasets": "ReplicaSet", "apps/v1/statefulsets": "StatefulSet", "apps/v1/daemonsets": "DaemonSet",
	"batch/v1/jobs": "Job", "batch/v1/cronjobs": "CronJob",
	"rbac.authorization.k8s.io/v1/clusterroles":              "ClusterRole",
	"kustomize.toolkit.fluxcd.io/v1/kustomizations":          "Kustomization",
	"helm.toolkit.fluxcd.io/v2/helmreleases":                 "HelmRelease",
	"source.toolkit.fluxcd.io/v1/gitrepositories":            "GitRepository",
	"source.toolkit.fluxcd.io/v1/externalartifacts":          "ExternalArtifact",
	"source.extensions.fluxcd.io/v1beta1/artifactgenerators": "ArtifactGenerator",
}

func (s *server) start(t *testing.T) *kube.Client {
	t.Helper()
	s.t = t
	if s.kinds == nil {
		s.kinds = builtIn
	}
	for range s.waves {
		s.gates = append(s.gates, make(chan struct{}))
	}
	h := httptest.NewServer(s)
	t.Cleanup(h.Close)
	client, err := kube.New(&rest.Config{Host: h.URL})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if err := s.wait(r); err != nil {
		s.t.Error(err)
		http.Error(w, err.Error(), http.StatusTeapot)
		return
	}
	path := r.URL.Path
	key, namespace, name := split(path)
	kind, served := s.kinds[key]
	switch {
	case r.Method != http.MethodGet || r.URL.Query().Has("watch"):
		s.t.Errorf("unexpected %s %s", r.Method, r.URL)
		w.WriteHeader(http.StatusMethodNotAllowed)
	case slices.Contains(s.forbidden, path) || slices.Contains(s.forbidden, r.URL.RequestURI()):
		status(w, http.StatusForbidden, "Forbidden", path+" is forbidden")
	case s.answers[path] != nil:
		reply(w, http.StatusOK, s.answers[path])
	case !served:
		if !slices.Contains(s.absent, path) {
			s.t.Errorf("unexpected GET %s", r.URL)
		}
		http.NotFound(w, r)
	case name != "":
		s.get(w, kind, namespace, name)
	default:
		s.list(w, r, kind, namespace)
	}
}

// wait blocks a request until all requests of its wave have arrived.
func (s *server) wait(r *http.Request) error {
	s.mu.Lock()
	s.requests = append(s.requests, r.URL.RequestURI())
	before, wave := 0, 0
	for wave < len(s.waves) && before+s.waves[wave] <= s.arrived {
		before += s.waves[wave]
		wave++
	}
	s.arrived++
	if len(s.waves) == 0 {
		s.mu.Unlock()
		return nil
	}
	if wave == len(s.waves) {
		s.mu.Unlock()
		return fmt.Errorf("one request too many: %s", r.URL)
	}
	gate := s.gates[wave]
	if s.arrived == before+s.waves[wave] {
		close(gate)
	}
	s.mu.Unlock()
	select {
	case <-gate:
		return nil
	case <-r.Context().Done():
		return fmt.Errorf("%s waited for the rest of wave %d", r.URL, wave+1)
	}
}

func (s *server) get(w http.ResponseWriter, kind, namespace, name string) {
	for _, o := range s.objects {
		if o["kind"] == kind && meta(o, "namespace") == namespace && meta(o, "name") == name {
			reply(w, http.StatusOK, o)
			return
		}
	}
	status(w, http.StatusNotFound, "NotFound", fmt.Sprintf("%s %q not found", kind, name))
}

func (s *server) list(w http.ResponseWriter, r *http.Request, kind, namespace string) {
	name := strings.TrimPrefix(r.URL.Query().Get("fieldSelector"), "metadata.name=")
	onlyMetadata := strings.Contains(r.Header.Get("Accept"), "PartialObjectMetadataList")
	if contents := kind == "Secret" || kind == "ConfigMap"; contents && !onlyMetadata {
		s.t.Errorf("%ss must be listed without contents: %s", kind, r.URL)
	}
	items := []object{}
	for _, o := range s.objects {
		if o["kind"] != kind || namespace != "" && meta(o, "namespace") != namespace || name != "" && meta(o, "name") != name {
			continue
		}
		if onlyMetadata {
			o = object{"metadata": o["metadata"]}
		}
		items = append(items, o)
	}
	reply(w, http.StatusOK, object{"metadata": object{"resourceVersion": "7"}, "items": items, "kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1"})
}

// split returns the parts of a path: "group/version/plural", namespace and name.
func split(path string) (key, namespace, name string) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	if parts[0] == "api" {
		parts = append([]string{"apis", ""}, parts[1:]...)
	}
	if len(parts) < 4 {
		return path, "", ""
	}
	group, rest := strings.Join(parts[1:3], "/"), parts[3:]
	if rest[0] == "namespaces" && len(rest) > 2 {
		namespace, rest = rest[1], rest[2:]
	}
	if len(rest) > 1 {
		name = rest[1]
	}
	return group + "/" + rest[0], namespace, name
}

func meta(o object, field string) string {
	v, _ := o["metadata"].(object)[field].(string)
	return v
}

func reply(w http.ResponseWriter, code int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(body) // the client reports the error
}

func status(w http.ResponseWriter, code int, reason, message string) {
	reply(w, code, object{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "message": message, "code": code})
}

// load reads the documents in a file of manifests.
func load(t *testing.T, path string) []object {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return parse(t, string(data))
}

func parse(t *testing.T, text string) []object {
	t.Helper()
	var all []object
	for document := range strings.SplitSeq(text, "\n---\n") {
		var o object
		if err := yaml.Unmarshal([]byte(document), &o); err != nil {
			t.Fatal(err)
		}
		if o["kind"] != nil {
			all = append(all, o)
		}
	}
	return all
}
