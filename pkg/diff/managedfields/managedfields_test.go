package managedfields

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/fluxkit/flux/pkg/controllers"
)

const ownedDeployment = `{
  "f:metadata": {"f:labels": {"f:app": {}}},
  "f:spec": {"f:replicas": {}, "f:selector": {},
    "f:template": {"f:spec": {"f:volumes": {"k:{\"name\":\"tmp\"}": {".": {}, "f:name": {}, "f:emptyDir": {}}},
      "f:containers": {"k:{\"name\":\"web\"}": {".": {}, "f:name": {}, "f:image": {}, "f:args": {},
      "f:ports": {"k:{\"containerPort\":80,\"protocol\":\"TCP\"}": {".": {}, "f:containerPort": {}}}}}}},
    "f:finalizers": {"v:\"a/b\"": {}}}}`

const desiredDeployment = `{"apiVersion": "apps/v1", "kind": "Deployment",
  "metadata": {"name": "web", "namespace": "apps", "labels": {"app": "web"}},
  "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "finalizers": ["a/b"],
    "template": {"spec": {"volumes": [{"name": "tmp", "emptyDir": {}}], "initContainers": [], "nodeName": null,
      "containers": [{"name": "web", "image": "web:1", "args": ["-v"], "ports": [{"containerPort": 80}]}]}}}}`

func TestUnowned(t *testing.T) {
	t.Parallel()
	cases := []struct{ name, drop, as, want string }{
		{name: "nothing changed"},
		{"image", `"f:image": {}, `, "", `f:spec f:template f:spec f:containers k:{"name":"web"} f:image`},
		{"replicas", `"f:replicas": {}, `, "", "f:spec f:replicas"},
		{"label", `"f:app": {}`, `"f:other": {}`, "f:metadata f:labels f:app"},
		{"container renamed", `{\"name\":\"web\"}`, `{\"name\":\"app\"}`, "f:spec f:template f:spec f:containers"},
		{"port", `\"containerPort\":80`, `\"containerPort\":81`, `f:spec f:template f:spec f:containers k:{"name":"web"} f:ports`},
		{"value of a set", `v:\"a/b\"`, `v:\"a/c\"`, "f:spec f:finalizers"},
	}
	var desired map[string]any
	if err := json.Unmarshal([]byte(desiredDeployment), &desired); err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		var owned map[string]any
		text := strings.Replace(ownedDeployment, c.drop, c.as, 1)
		if c.drop == "" {
			text = ownedDeployment
		} else if text == ownedDeployment {
			t.Fatalf("%s: the edit replaced nothing", c.name)
		}
		if err := json.Unmarshal([]byte(text), &owned); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		var got []string
		for _, path := range Unowned(desired, []Manager{{fields: owned}}) {
			got = append(got, strings.Join(path, " "))
		}
		if strings.Join(got, "\n") != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
		if c.want != "" && len(got) == 1 && (Manager{fields: owned}).Owns(strings.Fields(got[0])) != (c.name == "container renamed" || c.name == "port" || c.name == "value of a set") {
			t.Errorf("%s: owns disagrees", c.name)
		}
	}
}

// TestUnownedLeavesOthersAlone checks that a field that only an autoscaler sets is not drift.
func TestUnownedLeavesOthersAlone(t *testing.T) {
	t.Parallel()
	var desired, owned map[string]any
	_ = json.Unmarshal([]byte(`{"spec": {"selector": {"matchLabels": {"app": "web"}}}}`), &desired)
	_ = json.Unmarshal([]byte(`{"f:spec": {"f:selector": {}}}`), &owned)
	if got := Unowned(desired, []Manager{{fields: owned}}); got != nil {
		t.Errorf("Unowned = %q", got)
	}
}

func TestChanged(t *testing.T) {
	t.Parallel()
	entry := func(at, subresource string, fields ...string) map[string]any {
		owned := map[string]any{}
		for _, field := range fields {
			owned[field] = map[string]any{}
		}
		return map[string]any{"manager": "m", "operation": "Update", "subresource": subresource, "time": at, "fieldsV1": owned}
	}
	o := map[string]any{"metadata": map[string]any{"managedFields": []any{
		entry("2026-11-21T10:00:00Z", "", "f:metadata", "f:spec"), entry("2026-11-21T09:00:00Z", "", "f:spec"),
		entry("2026-11-21T11:00:00Z", "", "f:metadata"), entry("2026-11-21T12:00:00Z", "status", "f:status"),
	}}}
	if got := Changed(o).Format("15:04"); got != "10:00" {
		t.Errorf("Changed = %s", got)
	}
	if !Changed(nil).IsZero() {
		t.Error("an object without managed fields has a time of change")
	}
}

// TestOwnersOf finds the owners of fields, of list elements by their keys, and of values that are owned as a whole.
func TestOwnersOf(t *testing.T) {
	t.Parallel()
	entry := func(manager, at string, fields map[string]any) any {
		return map[string]any{"manager": manager, "time": at, "fieldsV1": fields}
	}
	container := func(field string) map[string]any {
		return map[string]any{"f:spec": map[string]any{"f:containers": map[string]any{`k:{"name":"web"}`: map[string]any{".": map[string]any{}, "f:" + field: map[string]any{}}}}}
	}
	managers := Of(controllers.Object{"metadata": map[string]any{"managedFields": []any{
		entry("kustomize-controller", "2026-11-01T10:00:00Z", container("image")),
		entry("kubectl-edit", "2026-11-02T10:00:00Z", container("image")),
		entry("scaler", "2026-11-03T10:00:00Z", map[string]any{"f:spec": map[string]any{"f:replicas": map[string]any{}, "f:args": map[string]any{}}}),
		entry("labeler", "2026-11-03T10:00:00Z", map[string]any{"f:metadata": map[string]any{"f:labels": map[string]any{"f:a/b~c": map[string]any{}}}}),
	}}})
	content := map[string]any{"spec": map[string]any{
		"replicas": 3, "args": []any{"x", "y"}, "containers": []any{map[string]any{"name": "other"}, map[string]any{"name": "web", "image": "a"}},
	}}
	for pointer, want := range map[string]string{
		"/spec/replicas":           "scaler",
		"/spec/containers/1/image": "kubectl-edit kustomize-controller",
		"/spec/containers/1/args":  "",
		"/spec/containers/0/image": "",
		"/spec/containers/2/image": "",
		"/spec/args/1":             "scaler",
		"/spec/paused":             "",
		"/metadata/labels/a~1b~0c": "labeler",
		"/metadata/labels/other":   "",
		"/spec/containers/1":       "kubectl-edit kustomize-controller",
	} {
		var got []string
		for _, m := range OwnersOf(managers, content, pointer) {
			got = append(got, m.Name)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %q, want %q", pointer, got, want)
		}
	}
}
