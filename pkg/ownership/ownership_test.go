package ownership

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/controllers"
)

// object returns a ConfigMap with a field of each manager.
func object(t *testing.T, version string, managers ...string) controllers.Object {
	t.Helper()
	var fields []string
	for _, m := range managers {
		operation := "Update"
		if m == "kustomize-controller" {
			operation = "Apply"
		}
		fields = append(fields, `{"manager": "`+m+`", "operation": "`+operation+`", "apiVersion": "v1", "fieldsV1": {"f:data": {"f:`+m+`": {}}}}`)
	}
	var o controllers.Object
	text := `{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings", "namespace": "apps", "resourceVersion": "` + version + `", "managedFields": [` + strings.Join(fields, ",") + `]}}`
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		t.Fatal(err)
	}
	return o
}

// TestMoveAfterConflict moves the fields of the current object if it was changed after it was read.
func TestMoveAfterConflict(t *testing.T) {
	t.Parallel()
	var patches []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Content-Type", "application/json")
		if r.Method == http.MethodPatch {
			patches = append(patches, string(body))
			if len(patches) == 1 {
				w.WriteHeader(http.StatusConflict)
				_, _ = io.WriteString(w, `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Conflict", "code": 409}`)
				return
			}
		}
		_ = json.NewEncoder(w).Encode(object(t, "2", "kustomize-controller", "helm", "kubectl-edit", "autoscaler"))
	}))
	defer server.Close()
	client, err := kube.New(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	o := object(t, "1", "kustomize-controller", "helm", "autoscaler")
	p := &Plan{Controller: "kustomize-controller", client: client, lives: []live{
		{controllers.IDOf(o), kube.ResourceFor(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}), o},
	}}
	if failures := p.Move(t.Context()); len(failures) > 0 {
		t.Fatal(failures[0].Err)
	}
	var last struct {
		Metadata struct {
			ResourceVersion string           `json:"resourceVersion"`
			ManagedFields   []map[string]any `json:"managedFields"`
		} `json:"metadata"`
	}
	if err := json.Unmarshal([]byte(patches[len(patches)-1]), &last); err != nil {
		t.Fatal(err)
	}
	moved, _ := json.Marshal(last.Metadata.ManagedFields[0]["fieldsV1"])
	const want = `{"f:data":{"f:helm":{},"f:kubectl-edit":{},"f:kustomize-controller":{}}}`
	if len(patches) != 2 || last.Metadata.ResourceVersion != "2" || len(last.Metadata.ManagedFields) != 2 || string(moved) != want {
		t.Errorf("patches: %s\nfields: %s, want %s", patches, moved, want)
	}
}

// TestTools checks which field managers are those of users.
func TestTools(t *testing.T) {
	t.Parallel()
	for manager, want := range map[string]bool{
		"kubectl": true, "kubectl-edit": true, "kubectl-client-side-apply": true, "helm": true, "Go-http-client": true, "pipeline": true,
		"helm-controller": false, "horizontal-pod-autoscaler": false, "kube-controller-manager": false, "cert-manager-cainjector-mutating": false,
		"flux": false, "kustomize-controller": false, "pipelines": false, "vpa-recommender": false, "": false,
	} {
		if got := (tools{"pipeline"}).has(manager); got != want {
			t.Errorf("%q: %t, want %t", manager, got, want)
		}
	}
}
