package rollout

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/test/support/fakeapi"
	"github.com/fluxkit/flux/test/support/testlimit"
)

const (
	deploymentsPath = "/apis/apps/v1/namespaces/web/deployments"
	setsPath        = "/apis/apps/v1/namespaces/web/replicasets"
	podsPath        = "/api/v1/namespaces/web/pods"
	eventsPath      = "/api/v1/namespaces/web/events"
)

func deployment(name, number string, available int) controllers.Object {
	return controllers.Object{
		"apiVersion": "apps/v1", "kind": "Deployment",
		"metadata": map[string]any{"name": name, "namespace": "web", "generation": 1, "annotations": map[string]any{revision: number}},
		"spec":     map[string]any{"replicas": 1},
		"status":   map[string]any{"observedGeneration": 1, "replicas": 1, "updatedReplicas": 1, "availableReplicas": available},
	}
}

func replicaSet(owner, template, number string) controllers.Object {
	return controllers.Object{
		"apiVersion": "apps/v1", "kind": "ReplicaSet",
		"metadata": map[string]any{"name": owner + "-" + template, "namespace": "web", "annotations": map[string]any{revision: number}},
	}
}

func podOf(owner, template string, status map[string]any) controllers.Object {
	return controllers.Object{
		"apiVersion": "v1", "kind": "Pod",
		"metadata": map[string]any{
			"name": owner + "-" + template + "-x", "namespace": "web", "labels": map[string]any{hash: template},
			"ownerReferences": []any{map[string]any{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": owner + "-" + template, "uid": "1", "controller": true}},
		},
		"spec":   map[string]any{"nodeName": "node-a", "containers": []any{map[string]any{"name": "manager", "image": "example.com/app:v1"}}},
		"status": status,
	}
}

func container1(state, last map[string]any, restarts int) map[string]any {
	return map[string]any{"containerStatuses": []any{map[string]any{"name": "manager", "restartCount": restarts, "state": state, "lastState": last}}}
}

func crashed(restarts int) map[string]any {
	return container1(map[string]any{"waiting": map[string]any{"reason": "CrashLoopBackOff"}},
		map[string]any{"terminated": map[string]any{"exitCode": 1, "reason": "Error"}}, restarts)
}

func cluster(t *testing.T) *fakeapi.Server {
	t.Helper()
	s := fakeapi.New(t)
	s.Serve(deploymentsPath, setsPath, podsPath, eventsPath)
	return s
}

func TestWaitSendsOneRequestIfReady(t *testing.T) {
	t.Parallel()
	s := cluster(t)
	s.Put(deploymentsPath, deployment("a", "1", 1))
	s.Put(deploymentsPath, deployment("b", "1", 1))
	var ready []string
	r := &Waiter{Client: s.Client, Namespace: "web", Names: []string{"a", "b"}, Ready: func(name string) { ready = append(ready, name) }}
	if err := r.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"a", "b"}, ready); diff != "" {
		t.Errorf("ready: %s", diff)
	}
	if diff := cmp.Diff([]string{"GET " + deploymentsPath}, s.Requests()); diff != "" {
		t.Errorf("requests: %s", diff)
	}
}

// TestWaitWatches changes the objects only after the watches have started, so
// the test does not depend on time.
func TestWaitWatches(t *testing.T) {
	t.Parallel()
	s := cluster(t)
	s.Put(deploymentsPath, deployment("a", "1", 0))
	s.Put(setsPath, replicaSet("a", "new", "1"))
	s.Put(podsPath, podOf("a", "new", crashed(1)))
	var told []Problem
	r := &Waiter{Client: s.Client, Namespace: "web", Names: []string{"a"}, Problem: func(tr Problem) {
		told = append(told, tr)
		s.Put(deploymentsPath, deployment("a", "1", 1))
	}}
	if err := r.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(told) != 1 || told[0].Message != "container manager of pod a-new-x terminated with exit code 1 (1 restart)" {
		t.Errorf("told: %+v", told)
	}
	want := []string{
		"GET " + deploymentsPath, "GET " + podsPath, "GET " + setsPath,
		"WATCH " + podsPath, "WATCH " + deploymentsPath,
	}
	got := s.Requests()
	slices.Sort(want)
	slices.Sort(got)
	if len(got) == len(want)-1 { // the change may come before the watch of pods is sent
		want = slices.DeleteFunc(want, func(r string) bool { return r == "WATCH "+podsPath })
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("requests: %s", diff)
	}
}

func TestWaitEndsAtFinalCause(t *testing.T) {
	t.Parallel()
	s := cluster(t)
	s.Put(deploymentsPath, deployment("a", "1", 0))
	s.Put(deploymentsPath, deployment("b", "1", 0))
	s.Put(setsPath, replicaSet("a", "new", "1"))
	s.Put(setsPath, replicaSet("b", "new", "1"))
	s.Put(podsPath, podOf("b", "new", map[string]any{}))
	s.Put(podsPath, podOf("a", "new", crashed(1)))
	s.Handle("GET "+podsPath+"/a-new-x/log", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("previous") != "true" || r.URL.Query().Get("container") != "manager" {
			t.Errorf("requested the log with %s", r.URL.RawQuery)
		}
		if _, err := w.Write([]byte("starting\nunknown flag: --x\n")); err != nil {
			t.Error(err)
		}
	})
	restarts := 1
	r := &Waiter{Client: s.Client, Namespace: "web", Names: []string{"a", "b"}, Problem: func(Problem) {
		restarts++
		s.Put(podsPath, podOf("a", "new", crashed(restarts)))
	}}
	err := r.Wait(t.Context())
	var notReady *NotReadyError
	if !errors.As(err, &notReady) {
		t.Fatalf("got %v", err)
	}
	want := "a is not ready: container manager of pod a-new-x terminated with exit code 1 (3 restarts)\n  | starting\n  | unknown flag: --x"
	if diff := cmp.Diff(want, err.Error()); diff != "" {
		t.Error(diff)
	}
	if notReady.Err != nil {
		t.Errorf("ended by %v", notReady.Err)
	}
}

func TestWaitIgnoresPodsOfEarlierTemplate(t *testing.T) {
	t.Parallel()
	s := cluster(t)
	s.Put(deploymentsPath, deployment("a", "2", 0))
	s.Put(setsPath, replicaSet("a", "old", "1"))
	s.Put(setsPath, replicaSet("a", "new", "2"))
	s.Put(podsPath, podOf("a", "old", crashed(9)))
	s.Put(podsPath, podOf("a", "new", map[string]any{}))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	// The first list must not end the wait; the rollout then succeeds.
	s.OnWatch(deploymentsPath, func() { s.Put(deploymentsPath, deployment("a", "2", 1)) })
	r := &Waiter{Client: s.Client, Namespace: "web", Names: []string{"a"}}
	if err := r.Wait(ctx); err != nil {
		t.Errorf("an earlier pod counts: %v", err)
	}
}

func TestTimeoutReportsTheCause(t *testing.T) {
	t.Parallel()
	s := cluster(t)
	s.Put(deploymentsPath, deployment("a", "1", 0))
	s.Put(setsPath, replicaSet("a", "new", "1"))
	s.Put(podsPath, podOf("a", "new", container1(map[string]any{"waiting": map[string]any{"reason": "ContainerCreating"}}, nil, 0)))
	s.Put(eventsPath, controllers.Object{
		"metadata": map[string]any{"name": "e", "namespace": "web"}, "type": "Warning", "reason": "FailedMount", "lastTimestamp": "2026-11-01T10:00:00Z",
		"message": `secret "keys" not found`, "involvedObject": map[string]any{"kind": "Pod", "namespace": "web", "name": "a-new-x"},
	})
	ctx := testlimit.NewDeadline(t.Context(), context.DeadlineExceeded)
	s.OnWatch(podsPath, ctx.Expire)
	err := (&Waiter{Client: s.Client, Namespace: "web", Names: []string{"a"}}).Wait(ctx)
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	want := `a is not ready: pod a-new-x is starting on node node-a: FailedMount: secret "keys" not found`
	if err == nil || err.Error() != want {
		t.Errorf("got %v\nwant %s", err, want)
	}
}

func TestAnyCauseContinuesWithTheOthers(t *testing.T) {
	t.Parallel()
	s := cluster(t)
	s.Put(deploymentsPath, deployment("a", "1", 0))
	s.Put(deploymentsPath, deployment("b", "1", 0))
	s.Put(setsPath, replicaSet("a", "new", "1"))
	s.Put(setsPath, replicaSet("b", "new", "1"))
	s.Put(podsPath, podOf("a", "new", map[string]any{"conditions": []any{map[string]any{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no node"}}}))
	s.Put(podsPath, podOf("b", "new", map[string]any{}))
	s.OnWatch(deploymentsPath, func() { s.Put(deploymentsPath, deployment("b", "1", 1)) })
	var ready, waiting []string
	r := &Waiter{
		Client: s.Client, Namespace: "web", Names: []string{"a", "b", "c"}, AnyCause: true,
		Ready:   func(name string) { ready = append(ready, name) },
		Waiting: func(names []string) { waiting = append(waiting, names...) },
	}
	err := r.Wait(t.Context())
	want := "a is not ready: pod a-new-x is unschedulable: no node\n  add a node, free resources on one, or tolerate its taints (--toleration-keys of install and bootstrap)\n" +
		"c is not ready: the Deployment does not exist\n  install it: flux install"
	if err == nil {
		t.Fatal("no error")
	}
	if diff := cmp.Diff(want, err.Error()); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"b"}, ready); diff != "" {
		t.Errorf("ready: %s", diff)
	}
	if diff := cmp.Diff([]string{"b"}, waiting); diff != "" {
		t.Errorf("waiting: %s", diff)
	}
}
