package logs

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fluxkit/flux/pkg/controllers"
)

func TestWorkload(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		labels map[string]any
		owners []any
		want   controllers.ID
	}{
		"alone":         {nil, nil, controllers.ID{Kind: "Pod", Namespace: "apps", Name: "web-7d9f-x1"}},
		"Deployment":    {map[string]any{"pod-template-hash": "7d9f"}, []any{owner("apps/v1", "ReplicaSet", "web-7d9f", true)}, controllers.ID{Group: "apps", Kind: "Deployment", Namespace: "apps", Name: "web"}},
		"ReplicaSet":    {nil, []any{owner("apps/v1", "ReplicaSet", "web-7d9f", true)}, controllers.ID{Group: "apps", Kind: "ReplicaSet", Namespace: "apps", Name: "web-7d9f"}},
		"another hash":  {map[string]any{"pod-template-hash": "other"}, []any{owner("apps/v1", "ReplicaSet", "web-7d9f", true)}, controllers.ID{Group: "apps", Kind: "ReplicaSet", Namespace: "apps", Name: "web-7d9f"}},
		"StatefulSet":   {nil, []any{owner("v1", "Node", "n", false), owner("apps/v1", "StatefulSet", "db", true)}, controllers.ID{Group: "apps", Kind: "StatefulSet", Namespace: "apps", Name: "db"}},
		"no controller": {nil, []any{owner("apps/v1", "StatefulSet", "db", false)}, controllers.ID{Kind: "Pod", Namespace: "apps", Name: "web-7d9f-x1"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pod := controllers.Object{"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{
				"namespace": "apps", "name": "web-7d9f-x1", "labels": test.labels, "ownerReferences": test.owners,
			}}
			if diff := cmp.Diff(test.want, Workload(pod)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func owner(version, kind, name string, controller bool) map[string]any {
	return map[string]any{"apiVersion": version, "kind": kind, "name": name, "controller": controller}
}

// TestContainers checks the containers of a pod of an application: their labels, and that lines of JSON are shown as they are.
func TestContainers(t *testing.T) {
	t.Parallel()
	pod := controllers.Object{"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"namespace": "apps", "name": "web"}, "spec": map[string]any{
		"initContainers": []any{map[string]any{"name": "init"}}, "containers": []any{map[string]any{"name": "web"}, map[string]any{"name": "proxy"}},
	}}
	var labels []string
	for _, p := range Containers(pod) {
		labels = append(labels, p.Label)
		e := newSource(nil, p, Options{}).entry(line{text: []byte(`{"level":"error","controllerKind":"Kustomization","name":"other"}`)})
		if !e.Plain || e.Kind != "" || e.Message == "" {
			t.Errorf("the entry of %s is %+v", p.Label, e)
		}
	}
	if diff := cmp.Diff([]string{"web/web", "web/proxy"}, labels); diff != "" {
		t.Error(diff)
	}
}
