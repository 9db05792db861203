package replay_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/fluxkit/flux/internal/kube/recording"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/replay"
)

const (
	token = "token"
	// apis is the aggregated discovery of the recorded cluster.
	apis = `{"items": [
  {"metadata": {"name": "apps"}, "versions": [{"version": "v1", "resources": [{"resource": "deployments", "responseKind": {"kind": "Deployment"}, "scope": "Namespaced", "verbs": ["get", "patch"]}]}]},
  {"metadata": {"name": "example.com"}, "versions": [
    {"version": "v2", "resources": [{"resource": "things", "responseKind": {"kind": "Thing"}, "scope": "Namespaced"}]},
    {"version": "v1", "resources": [{"resource": "things", "responseKind": {"kind": "Thing"}, "scope": "Namespaced"}]}]},
  {"metadata": {"name": "apiextensions.k8s.io"}, "versions": [{"version": "v1", "resources": [{"resource": "customresourcedefinitions"}]}]}]}`
	core = `{"items": [{"metadata": {"name": ""}, "versions": [{"version": "v1", "resources": [
  {"resource": "pods"}, {"resource": "secrets"}, {"resource": "services"}, {"resource": "events"}, {"resource": "leases"}, {"resource": "configmaps"}]}]}]}`
)

// source is a source with the index of its artifact.
var source = controllers.FluxID("GitRepository", "a", "app")

const index = `{"manifests":[{"kind":"Service","name":"web","file":"web/app.yaml"}]}`

// lines is a recording. Objects precede their list.
const lines = `
- object: {kind: Pod, apiVersion: v1, metadata: {namespace: b, name: one, labels: {app: one}}, status: {phase: Failed}}
- object: {kind: Pod, apiVersion: v1, metadata: {namespace: a, name: two, labels: {app: two}}}
- object: {kind: Pod, apiVersion: v1, metadata: {namespace: a-b, name: three}}
- list: {version: v1, resource: pods, kind: Pod, resourceVersion: "7"}
- object: {kind: Secret, apiVersion: v1, metadata: {namespace: a, name: applied, labels: {kustomize.toolkit.fluxcd.io/name: app}}}
- list: {version: v1, resource: secrets, kind: Secret, part: true, metadataOnly: true, absent: [a/gone], selectors: [kustomize.toolkit.fluxcd.io/name, owner=helm]}
- list: {version: v1, resource: events, kind: Event, error: {status: Failure, code: 403, reason: Forbidden, message: events is forbidden}}
- list: {version: v1, resource: leases, kind: Lease, namespace: a}
- object: {kind: Thing, apiVersion: example.com/v2, metadata: {namespace: a, name: thing}, spec: {x: 1}}
- list: {group: example.com, version: v2, resource: things, kind: Thing}
- object: {kind: CustomResourceDefinition, metadata: {name: things.example.com}, spec: {names: {kind: Thing}, versions: [{name: v1, deprecated: true}, {name: v2}]}}
- list: {group: apiextensions.k8s.io, version: v1, resource: customresourcedefinitions, kind: CustomResourceDefinition}
- log: {namespace: a, pod: two, container: app, text: "2026-11-22T09:00:00Z first\n2026-11-22T09:59:00.5Z second\n", cut: true}
- log: {namespace: a, pod: two, container: app, previous: true, error: {code: 400, reason: BadRequest, message: no previous container}}
`

// open returns the handler of a recording.
func open(t *testing.T, h recording.Header, text string) http.Handler {
	t.Helper()
	h.Time = time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)
	var b bytes.Buffer
	w, err := recording.NewWriter(&b, h)
	if err != nil {
		t.Fatal(err)
	}
	var all []recording.Line
	if err := yaml.Unmarshal([]byte(text), &all); err != nil {
		t.Fatal(err)
	}
	for path, body := range map[string]string{"/api": core, "/apis": apis, "/version": `{"gitVersion":"v1.36.0"}`, recording.IndexPath(source): index} {
		all = append(all, recording.Line{Document: &recording.Document{Path: path, Body: json.RawMessage(body)}})
	}
	for _, l := range all {
		if err := w.Write(l); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.Close(); err != nil {
		t.Fatal(err)
	}
	r, err := replay.Open(&b)
	if err != nil {
		t.Fatal(err)
	}
	return r.Handler(token)
}

// ask sends a request such as "DELETE /path", GET by default. The method "metadata" is a GET of only
// the metadata.
func ask(t *testing.T, h http.Handler, path string) *httptest.ResponseRecorder {
	t.Helper()
	method, rest, found := strings.Cut(path, " ")
	if !found {
		method, rest = http.MethodGet, path
	}
	metadata := method == "metadata"
	if metadata {
		method = http.MethodGet
	}
	request := httptest.NewRequestWithContext(t.Context(), method, rest, http.NoBody)
	request.Header.Set("Authorization", "Bearer "+token)
	if metadata {
		request.Header.Set("Accept", "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json")
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, request)
	return w
}

// TestLists checks which objects a list has, in the order of the API server.
func TestLists(t *testing.T) {
	t.Parallel()
	h := open(t, recording.Header{}, lines)
	for path, want := range map[string]string{
		"/api/v1/pods":                                                                "a-b/three a/two b/one",
		"/api/v1/namespaces/a/pods":                                                   "a/two",
		"/api/v1/namespaces/none/pods":                                                "",
		"/api/v1/pods?labelSelector=app":                                              "a/two b/one",
		"/api/v1/pods?labelSelector=a=b":                                              "",
		"/api/v1/pods?fieldSelector=status.phase%3DFailed":                            "b/one",
		"/api/v1/pods?fieldSelector=status.phase%21%3DFailed":                         "a-b/three a/two",
		"/api/v1/pods?fieldSelector=metadata.name%3Dtwo":                              "a/two",
		"/api/v1/pods?fieldSelector=metadata.namespace%3Db":                           "b/one",
		"/apis/example.com/v2/things":                                                 "a/thing",
		"/apis/example.com/v1/namespaces/a/things":                                    "a/thing",
		"/api/v1/secrets":                                                             "a/applied",
		"/api/v1/secrets?labelSelector=kustomize.toolkit.fluxcd.io%2Fname%3Dapp":      "a/applied",
		"/api/v1/secrets?labelSelector=kustomize.toolkit.fluxcd.io%2Fname%3Dother":    "",
		"/api/v1/secrets?labelSelector=owner%3Dhelm,name%3Dapp":                       "",
		"/api/v1/namespaces/a/secrets?fieldSelector=metadata.name%3Dapplied":          "a/applied",
		"/api/v1/namespaces/a/secrets?fieldSelector=metadata.name%3Dgone":             "",
		"metadata /api/v1/namespaces/a/secrets?fieldSelector=metadata.name%3Dapplied": "a/applied",
		"/api/v1/namespaces/a/leases":                                                 "",
	} {
		w := ask(t, h, path)
		var list struct {
			Kind     string
			Metadata struct{ ResourceVersion string }
			Items    []struct {
				Kind     string
				Metadata struct{ Namespace, Name string }
				Spec     any
			}
		}
		if err := json.Unmarshal(w.Body.Bytes(), &list); err != nil || w.Code != http.StatusOK {
			t.Errorf("%s: %d %v %s", path, w.Code, err, w.Body)
			continue
		}
		var got []string
		for _, o := range list.Items {
			got = append(got, o.Metadata.Namespace+"/"+o.Metadata.Name)
		}
		if strings.Join(got, " ") != want || !strings.HasSuffix(list.Kind, "List") {
			t.Errorf("%s: %s %q, want %q", path, list.Kind, got, want)
		}
	}
}

// TestRefusals checks that what the recording does not have is neither missing nor empty.
func TestRefusals(t *testing.T) {
	t.Parallel()
	const notFound, unknown = metav1.StatusReasonNotFound, metav1.StatusReasonBadRequest
	for path, want := range map[string]struct {
		reason  metav1.StatusReason
		message string
	}{
		"/api/v1/namespaces/a/pods/none":                                      {notFound, `pods "none" not found`},
		"/apis/example.com/v2/namespaces/a/things/none":                       {notFound, `things.example.com "none" not found`},
		"/api/v1/namespaces/a/secrets/gone":                                   {notFound, `secrets "gone" not found`},
		"/api/v1/namespaces/a/secrets/other":                                  {unknown, `secrets "other" is not in the recording, which only contains secrets applied by Flux`},
		"/api/v1/namespaces/a/secrets?fieldSelector=metadata.name%3Do":        {unknown, `secrets "o" is not in the recording, which only contains secrets applied by Flux`},
		"/api/v1/namespaces/a/secrets/applied":                                {unknown, `the content of secrets "applied" is not in the recording`},
		"/api/v1/secrets?labelSelector=app%3Dx":                               {unknown, `secrets with the labels "app=x" are not in the recording, which only contains secrets applied by Flux`},
		"/api/v1/secrets?labelSelector=owner%3Dother":                         {unknown, `secrets with the labels "owner=other" are not in the recording, which only contains secrets applied by Flux`},
		"/api/v1/secrets?labelSelector=owner":                                 {unknown, `secrets with the labels "owner" are not in the recording, which only contains secrets applied by Flux`},
		"/api/v1/secrets?labelSelector=%21kustomize.toolkit.fluxcd.io%2Fname": {unknown, `secrets with the labels "!kustomize.toolkit.fluxcd.io/name" are not in the recording, which only contains secrets applied by Flux`},
		"/api/v1/services":                                                    {unknown, "services are not in the recording"},
		"/api/v1/events":                                                      {metav1.StatusReasonForbidden, "events is forbidden"},
		"/api/v1/namespaces/b/leases":                                         {unknown, `leases are in the recording only for namespace "a"`},
		"/api/v1/namespaces/a/pods/two/portforward":                           {unknown, "the portforward of pods is not in the recording"},
		"/api/v1/namespaces/a/pods/two/log?container=other":                   {unknown, `the log of container "other" in pod "two" is not in the recording`},
		"/api/v1/namespaces/a/pods/two/log?container=app&previous=true":       {unknown, "no previous container"},
		"DELETE /api/v1/namespaces/a/pods/two":                                {metav1.StatusReasonMethodNotAllowed, "the cluster is a read-only recording"},
		"PATCH /api/v1/namespaces/a/pods/two":                                 {metav1.StatusReasonMethodNotAllowed, "the cluster is a read-only recording"},
		"POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews":         {metav1.StatusReasonMethodNotAllowed, "the cluster is a read-only recording"},
	} {
		w := ask(t, open(t, recording.Header{}, lines), path)
		var status metav1.Status
		if err := json.Unmarshal(w.Body.Bytes(), &status); err != nil {
			t.Errorf("%s: %v %s", path, err, w.Body)
		}
		if status.Reason != want.reason || status.Message != want.message || int(status.Code) != w.Code {
			t.Errorf("%s: %d %s %q, want %s %q", path, w.Code, status.Reason, status.Message, want.reason, want.message)
		}
	}
}

// TestNotServed checks paths that the API server answers with plain text.
func TestNotServed(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"/apis/none.example.com", "/apis/apps/v2", "/apis/apps/v1/things", "/apis/example.com/v3/things", "/healthz", "/api/v1/namespaces/a/pods/two/log/more"} {
		if w := ask(t, open(t, recording.Header{}, lines), path); w.Code != http.StatusNotFound || !strings.HasPrefix(w.Body.String(), "404 page not found") {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
}

// TestNamespaces checks that other namespaces than the recorded ones are forbidden.
func TestNamespaces(t *testing.T) {
	t.Parallel()
	h := open(t, recording.Header{Namespaces: []string{"flux-system", "a"}}, `
- object: {kind: Pod, metadata: {namespace: a, name: two}}
- list: {version: v1, resource: pods, kind: Pod, namespace: a}
- list: {version: v1, resource: pods, kind: Pod, namespace: flux-system}`)
	for path, code := range map[string]int{
		"/api/v1/namespaces/a/pods": 200, "/api/v1/namespaces/flux-system/pods": 200, "/api/v1/namespaces/b/pods": 403,
		"/api/v1/pods": 403, "/api/v1/namespaces/b/pods/two": 403, "/api/v1/namespaces/flux-system/pods/two": 404,
	} {
		if w := ask(t, h, path); w.Code != code {
			t.Errorf("%s: %d, want %d: %s", path, w.Code, code, w.Body)
		}
	}
}

// TestToken checks that only the holder of the token is served.
func TestToken(t *testing.T) {
	t.Parallel()
	h := open(t, recording.Header{}, lines)
	for _, given := range []string{"", "Bearer", "Bearer other", "Bearer " + token + "x"} {
		request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/api/v1/pods", http.NoBody)
		request.Header.Set("Authorization", given)
		w := httptest.NewRecorder()
		if h.ServeHTTP(w, request); w.Code != http.StatusUnauthorized || strings.Contains(w.Body.String(), "two") {
			t.Errorf("%q: %d %s", given, w.Code, w.Body)
		}
	}
}

// TestVersions checks that an object has the requested version, and the warning of a deprecated one.
func TestVersions(t *testing.T) {
	t.Parallel()
	h := open(t, recording.Header{}, lines)
	for version, warning := range map[string]string{"v1": `299 - "example.com/v1 Thing is deprecated"`, "v2": ""} {
		w := ask(t, h, "/apis/example.com/"+version+"/namespaces/a/things/thing")
		if body := w.Body.String(); !strings.Contains(body, `"apiVersion":"example.com/`+version+`"`) || !strings.Contains(body, `"spec":{"x":1}`) {
			t.Errorf("%s: %s", version, body)
		}
		if got := w.Header().Get("Warning"); got != warning {
			t.Errorf("%s: warning %q, want %q", version, got, warning)
		}
	}
	if body := ask(t, h, "metadata /apis/example.com/v2/namespaces/a/things/thing").Body.String(); strings.Contains(body, "spec") || !strings.Contains(body, "PartialObjectMetadata") {
		t.Error(body)
	}
}

// TestDiscovery checks the documents that clients derive resources from.
func TestDiscovery(t *testing.T) {
	t.Parallel()
	h := open(t, recording.Header{}, lines)
	for path, want := range map[string]string{
		"/version": `{"gitVersion":"v1.36.0"}`,
		"/flux-recording/artifacts/GitRepository/a/app": index,
		"/apis/example.com":                             `"preferredVersion":{"groupVersion":"example.com/v2","version":"v2"}`,
		"/apis/apps/v1":                                 `"name":"deployments","singularName":"","namespaced":true,"kind":"Deployment","verbs":["get","patch"]`,
		"/apis":                                         `"groupVersion":"apps/v1"`,
		"/api":                                          `"versions":["v1"]`,
		"/api/v1":                                       `"groupVersion":"v1"`,
	} {
		if w := ask(t, h, path); w.Code != http.StatusOK || !strings.Contains(w.Body.String(), want) {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
	if w := ask(t, h, "/flux-recording/artifacts/GitRepository/a/other"); w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), "is not in the recording") {
		t.Errorf("an artifact that is not indexed: %d %s", w.Code, w.Body)
	}
}

// TestLogs checks which lines of a log are sent. Seconds count from the time of the recording.
func TestLogs(t *testing.T) {
	t.Parallel()
	h := open(t, recording.Header{}, lines)
	for query, want := range map[string]string{
		"":                                "first\nsecond\n",
		"&timestamps=true":                "2026-11-22T09:00:00Z first\n2026-11-22T09:59:00.5Z second\n",
		"&tailLines=1":                    "second\n",
		"&tailLines=0":                    "",
		"&tailLines=5":                    "first\nsecond\n",
		"&sinceSeconds=60":                "second\n",
		"&sinceSeconds=59":                "",
		"&sinceTime=2026-11-22T09:30:00Z": "second\n",
		"&limitBytes=3":                   "fir",
		"&sinceSeconds=3600&tailLines=1&limitBytes=9": "second\n",
	} {
		if w := ask(t, h, "/api/v1/namespaces/a/pods/two/log?container=app"+query); w.Body.String() != want {
			t.Errorf("%q: %q, want %q", query, w.Body, want)
		}
	}
	for query, cut := range map[string]bool{"": true, "&tailLines=5": true, "&tailLines=2": false, "&sinceSeconds=60": false, "&sinceSeconds=9999": true} {
		w := ask(t, h, "/api/v1/namespaces/a/pods/two/log?container=app"+query)
		if got := w.Header().Get("Warning") != ""; got != cut {
			t.Errorf("%q: warning %v, want %v", query, got, cut)
		}
	}
}
