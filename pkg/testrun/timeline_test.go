package testrun

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/controllers"
)

// TestRecorder checks what each sequence of events means.
func TestRecorder(t *testing.T) {
	t.Parallel()
	workload := func(uid, image, owner string, replicas int64) controllers.Object {
		return controllers.Object{
			"metadata": map[string]any{
				"namespace": "shop", "name": "web", "uid": uid, "resourceVersion": uid + image,
				"labels": map[string]any{"kustomize.toolkit.fluxcd.io/name": owner, "kustomize.toolkit.fluxcd.io/namespace": "flux-system"},
			},
			"spec": map[string]any{"replicas": replicas, "template": map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"image": image}}}}},
		}
	}
	first := workload("1", "a:1", "apps", 1)
	annotated := workload("1", "a:1", "apps", 1)
	annotated["metadata"].(map[string]any)["annotations"] = map[string]any{controllers.RequestAnnotation: "now"}
	annotated["status"] = map[string]any{"replicas": int64(1)}
	for name, c := range map[string]struct {
		events []kube.Event
		want   string
	}{
		"a request and a status":          {[]kube.Event{{Object: annotated}}, ""},
		"another number of replicas":      {[]kube.Event{{Object: workload("1", "a:1", "apps", 2)}}, "changed"},
		"another image":                   {[]kube.Event{{Object: workload("1", "a:2", "apps", 1)}}, "restarted"},
		"deleted":                         {[]kube.Event{{Object: first, Deleted: true}}, "deleted"},
		"deleted and created":             {[]kube.Event{{Object: first, Deleted: true}, {Object: workload("2", "a:1", "apps", 1)}}, "recreated after a gap"},
		"recreated between two events":    {[]kube.Event{{Object: workload("2", "a:1", "apps", 1)}}, "recreated"},
		"pruned by the previous owner":    {[]kube.Event{{Object: first, Deleted: true}, {Object: workload("2", "a:1", "shop", 1)}}, "recreated after a gap, moved from apps to shop"},
		"taken over by the next owner":    {[]kube.Event{{Object: workload("1", "a:1", "shop", 1)}}, "changed, moved from apps to shop"},
		"changed, and deleted afterwards": {[]kube.Event{{Object: workload("1", "a:2", "apps", 1)}, {Object: first, Deleted: true}}, "restarted; deleted"},
	} {
		now := time.Now()
		r := &recorder{run: &Run{Now: func() time.Time { now = now.Add(time.Second); return now }}, known: map[controllers.ID]*object{}, start: now}
		gvk := schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
		r.see(gvk, kube.Event{Object: first}, true)
		for _, e := range c.events {
			r.see(gvk, e, false)
		}
		if len(r.entries()) > 0 {
			t.Errorf("%s: an object in no inventory has entries", name)
		}
		r.relevant(controllers.ID{Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "web"})
		var got []string
		for _, e := range r.entries() {
			text := e.Action
			if e.Gap > 0 {
				text += " after a gap"
			}
			if len(e.Owners) > 0 {
				text += ", moved from " + e.Owners[0].Name + " to " + e.Owners[1].Name
			}
			got = append(got, text)
		}
		if strings.Join(got, "; ") != c.want {
			t.Errorf("%s: got %q, want %q", name, strings.Join(got, "; "), c.want)
		}
	}
}

// TestRecorderOfRelease checks that releases and failures are recorded once.
func TestRecorderOfRelease(t *testing.T) {
	t.Parallel()
	release := func(version, status, ready, message string) controllers.Object {
		return controllers.Object{
			"metadata": map[string]any{"namespace": "shop", "name": "web", "uid": "1"},
			"status": map[string]any{
				"history":    []any{map[string]any{"version": version, "status": status, "chartVersion": "1.0.0"}},
				"conditions": []any{map[string]any{"type": "Ready", "status": ready, "reason": "Test", "message": message}},
			},
		}
	}
	r := &recorder{run: &Run{Now: time.Now}, known: map[controllers.ID]*object{}, start: time.Now()}
	k, _ := controllers.FindKind("HelmRelease")
	gvk := schema.GroupVersionKind{Group: k.Group, Version: k.Version, Kind: k.Kind}
	for i, o := range []controllers.Object{
		release("1", "deployed", "True", ""), release("1", "deployed", "Unknown", ""), release("2", "failed", "False", "timed out"),
		release("2", "failed", "False", "timed out"), release("3", "deployed", "False", "rolled back"), release("3", "deployed", "True", ""),
	} {
		r.see(gvk, kube.Event{Object: o}, i == 0)
	}
	r.relevant(controllers.ID{Group: k.Group, Kind: k.Kind, Namespace: "shop", Name: "web"})
	var got []string
	for _, e := range r.entries() {
		got = append(got, e.Action+" "+e.Message)
	}
	want := "failed timed out\nreleased revision 2: chart 1.0.0, failed\nfailed rolled back\nreleased revision 3: chart 1.0.0, deployed"
	if strings.Join(got, "\n") != want {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), want)
	}
}
