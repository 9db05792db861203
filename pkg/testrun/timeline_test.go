package testrun

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/testrun/settle"
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

// TestRecorderOfUninstall checks that a release which was uninstalled as remediation is not said to have failed because the
// remediation has succeeded.
func TestRecorderOfUninstall(t *testing.T) {
	t.Parallel()
	const failure = "Helm install failed for release shop/web with chart web@1.0.0: context deadline exceeded"
	const remedy = "Helm uninstall remediation for release shop/web.v1 with chart web@1.0.0 succeeded"
	condition := func(typ, status, reason, message string) map[string]any {
		return map[string]any{"type": typ, "status": status, "reason": reason, "message": message}
	}
	release := func(status string, conditions ...any) controllers.Object {
		return controllers.Object{
			"metadata": map[string]any{"namespace": "shop", "name": "web", "uid": "1"},
			"status": map[string]any{
				"history":    []any{map[string]any{"version": "1", "status": status, "chartVersion": "1.0.0"}},
				"conditions": conditions,
			},
		}
	}
	released := condition("Released", "False", "InstallFailed", failure)
	r := &recorder{run: &Run{Now: time.Now}, known: map[controllers.ID]*object{}, start: time.Now()}
	k, _ := controllers.FindKind("HelmRelease")
	gvk := schema.GroupVersionKind{Group: k.Group, Version: k.Version, Kind: k.Kind}
	last := release("uninstalled", condition("Ready", "False", "UninstallSucceeded", remedy), released, condition("Remediated", "True", "UninstallSucceeded", remedy))
	for _, o := range []controllers.Object{release("failed", condition("Ready", "False", "InstallFailed", failure), released), last} {
		r.see(gvk, kube.Event{Object: o}, false)
	}
	r.relevant(controllers.ID{Group: k.Group, Kind: k.Kind, Namespace: "shop", Name: "web"})
	var got []string
	for _, e := range r.entries() {
		got = append(got, e.Action+" "+e.Message)
	}
	want := "created \nfailed " + failure + "\nreleased revision 1: chart 1.0.0, failed\nuninstalled revision 1: chart 1.0.0"
	if strings.Join(got, "\n") != want {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), want)
	}
	list, _, _ := settle.Statuses(map[controllers.ID]settle.Flux{{Name: "web"}: {Kind: k, Object: last}})
	if len(list) != 1 || list[0].Message != "uninstalled after a failure: "+failure {
		t.Errorf("status %+v", list)
	}
}

// TestReading checks that what was reached can be read after the deadline, but not after an interruption.
func TestReading(t *testing.T) {
	t.Parallel()
	over, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Hour))
	defer cancel()
	ctx, cancel := Reading(over)
	defer cancel()
	if _, bounded := ctx.Deadline(); ctx.Err() != nil || !bounded {
		t.Errorf("after the deadline: %v, bounded %t", ctx.Err(), bounded)
	}
	running, interrupt := context.WithCancel(t.Context())
	ctx, cancel = Reading(running)
	defer cancel()
	interrupt()
	<-ctx.Done()
	if !errors.Is(context.Cause(ctx), context.Canceled) {
		t.Errorf("interrupted: %v", context.Cause(ctx))
	}
}
