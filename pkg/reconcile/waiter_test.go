package reconcile_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fluxkit/flux/internal/kube/objref"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/reconcile"
	"github.com/fluxkit/flux/test/support/fakeapi"
	"github.com/fluxkit/flux/test/support/testlimit"
)

const kustomizations = "/apis/kustomize.toolkit.fluxcd.io/v1/namespaces/apps/kustomizations"

func object(uid string, finalizers ...any) controllers.Object {
	return controllers.Object{"apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization", "metadata": map[string]any{
		"namespace": "apps", "name": "app", "uid": uid, "finalizers": finalizers, "deletionTimestamp": "2026-11-01T10:00:00Z",
	}}
}

// state returns a copy of the object, which later changes do not modify.
func state(t *testing.T, s *fakeapi.Server) controllers.Object {
	t.Helper()
	text, err := json.Marshal(s.Object(kustomizations, "app"))
	if err != nil {
		t.Fatal(err)
	}
	var o controllers.Object
	if err := json.Unmarshal(text, &o); err != nil {
		t.Fatal(err)
	}
	return o
}

func waitDeleted(ctx context.Context, s *fakeapi.Server, state controllers.Object) reconcile.Result {
	k, _ := controllers.FindKind("Kustomization")
	w := reconcile.Waiter{
		Watches: reconcile.NewWatches(s.Client), Goal: reconcile.Goal{State: reconcile.Deleted},
		Progress: func(reconcile.Progress) {}, Ended: func(reconcile.Result) {},
	}
	return w.Run(ctx, []objref.Target{{Kind: k, Namespace: "apps", Name: "app", Object: state}})[0]
}

// TestWaitDeleted deletes an object in several ways during the wait. An object
// of the same name with another UID is a new one.
func TestWaitDeleted(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		happens func(*fakeapi.Server)
		last    string
	}{
		"deleted": {func(s *fakeapi.Server) { s.Take(kustomizations, "app") }, ""},
		"changed, then deleted": {func(s *fakeapi.Server) {
			s.Put(kustomizations, object("1", "other"))
			s.Take(kustomizations, "app")
		}, ""},
		"deleted and created again while the watch was down": {func(s *fakeapi.Server) {
			var once sync.Once
			s.Handle("WATCH "+kustomizations, func(w http.ResponseWriter, _ *http.Request) {
				once.Do(func() {
					s.Handle("WATCH "+kustomizations, nil)
					s.Take(kustomizations, "app")
					s.Put(kustomizations, object("2"))
				})
				fakeapi.Status(w, http.StatusGone, "Expired", "too old resource version")
			})
		}, "2"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := fakeapi.New(t)
			s.Put(kustomizations, object("1", "finalizers.fluxcd.io"))
			before := state(t, s)
			if test.last == "" {
				s.OnWatch(kustomizations, func() { test.happens(s) })
			} else {
				test.happens(s)
			}
			result := waitDeleted(t.Context(), s, before)
			if got := (controllers.Path{"metadata.uid"}).String(result.Last); result.Err != nil || got != test.last {
				t.Errorf("got %q, %v", got, result.Err)
			}
			if requests := s.Requests(); requests[0] != "WATCH "+kustomizations {
				t.Errorf("the object was read although its state is known: %v", requests)
			}
		})
	}
}

// TestWaitDeletedIsNotReached changes the object without deleting it.
func TestWaitDeletedIsNotReached(t *testing.T) {
	t.Parallel()
	s := fakeapi.New(t)
	s.Put(kustomizations, object("1", "finalizers.fluxcd.io"))
	ctx := testlimit.NewDeadline(t.Context(), context.DeadlineExceeded)
	s.OnWatch(kustomizations, func() {
		s.Put(kustomizations, object("1", "finalizers.fluxcd.io", "other"))
		ctx.Expire()
	})
	if result := waitDeleted(ctx, s, state(t, s)); !errors.Is(result.Err, context.DeadlineExceeded) {
		t.Errorf("got %v", result.Err)
	}
}

// status returns a Kustomization with a Ready condition at a revision whose
// controller has handled a request.
func status(ready, reason, revision, handled string) controllers.Object {
	return controllers.Object{
		"metadata": map[string]any{"generation": int64(1)},
		"status": map[string]any{
			"observedGeneration": int64(1), "lastAppliedRevision": revision, "lastHandledReconcileAt": handled,
			"conditions": []any{map[string]any{"type": "Ready", "status": ready, "reason": reason, "message": "x", "observedGeneration": int64(1)}},
		},
	}
}

// tried returns a failed Kustomization whose controller has handled the request "now" with an attempt
// at a revision.
func tried(revision string) controllers.Object {
	o := status("False", "BuildFailed", "", "now")
	fields, _ := o["status"].(map[string]any)
	fields["lastAttemptedRevision"] = revision
	return o
}

// TestGoal checks which states of a Kustomization reach a goal or fail.
func TestGoal(t *testing.T) {
	t.Parallel()
	const pushed, before = "main@sha1:6f9a1b2c3d4e5f60718293a4b5c6d7e8f9012345", "main@sha1:0123456789abcdef0123456789abcdef01234567"
	applied := reconcile.Goal{State: reconcile.Ready, Attempt: true, Token: "now", Revision: pushed, RevisionSuffices: true, Temporary: []string{"ArtifactFailed"}}
	newer := applied
	newer.Earlier = []string{before}
	exact := reconcile.Goal{State: reconcile.Ready, Attempt: true, Token: "now", Revision: pushed}
	answer := reconcile.Goal{State: reconcile.Ready, Attempt: true, Token: "now", Answer: true}
	attempt := reconcile.Goal{State: reconcile.Ready, Attempt: true}
	k, _ := controllers.FindKind("Kustomization")
	for name, test := range map[string]struct {
		goal reconcile.Goal
		o    controllers.Object
		want string
	}{
		"the pushed revision without an answer":   {applied, status("True", "ReconciliationSucceeded", pushed, ""), "reached"},
		"an answer at another revision":           {applied, status("True", "ReconciliationSucceeded", before, "now"), "reached"},
		"an answer at an earlier revision":        {newer, status("True", "ReconciliationSucceeded", before, "now"), "waits"},
		"an answer at a newer revision":           {newer, status("True", "ReconciliationSucceeded", "main@sha1:fedcba98", "now"), "reached"},
		"the pushed revision, earlier ones known": {newer, status("True", "ReconciliationSucceeded", pushed, ""), "reached"},
		"neither":                                     {applied, status("True", "ReconciliationSucceeded", before, ""), "waits"},
		"a failure of the previous revision":          {applied, status("False", "BuildFailed", before, "earlier"), "waits"},
		"a failure":                                   {applied, status("False", "BuildFailed", before, "now"), "failed"},
		"a failure at an earlier revision":            {newer, tried(before), "waits"},
		"a failure at the pushed revision":            {newer, tried(pushed), "failed"},
		"a failure at a newer revision":               {newer, tried("main@sha1:fedcba98"), "failed"},
		"a failure at any revision":                   {applied, tried(before), "failed"},
		"a source that has no artifact yet":           {applied, status("False", "ArtifactFailed", "", "now"), "waits"},
		"both are required: the revision only":        {exact, status("True", "ReconciliationSucceeded", pushed, ""), "waits"},
		"both are required: the answer only":          {exact, status("True", "ReconciliationSucceeded", before, "now"), "waits"},
		"both":                                        {exact, status("True", "ReconciliationSucceeded", pushed, "now"), "reached"},
		"a failed download":                           {exact, status("False", "ArtifactFailed", "", "now"), "failed"},
		"waiting for a dependency":                    {exact, status("False", "DependencyNotReady", "", "now"), "waits"},
		"an answer that waits for a dependency":       {answer, status("False", "DependencyNotReady", "", "now"), "failed"},
		"waiting for a dependency before the request": {answer, status("False", "DependencyNotReady", "", "earlier"), "waits"},
		"a failure before the request":                {answer, status("False", "BuildFailed", "", "earlier"), "waits"},
		"any attempt that fails":                      {attempt, status("False", "BuildFailed", "", ""), "failed"},
		"any attempt, waiting for a source":           {attempt, status("False", "SourceNotReady", "", ""), "waits"},
		"any attempt that is ready":                   {attempt, status("True", "ReconciliationSucceeded", before, ""), "reached"},
		"no attempt awaited":                          {reconcile.Goal{State: reconcile.Ready}, status("False", "BuildFailed", "", ""), "waits"},
	} {
		got := "waits"
		if failed := test.goal.Failed(k, test.o); failed != nil {
			got = "failed"
		}
		if test.goal.Reached(k, test.o) {
			got = "reached"
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// TestReplacedRequest waits for a request that another client replaces before
// the controller has handled it. The controller reports only the other one.
func TestReplacedRequest(t *testing.T) {
	t.Parallel()
	at := func(asked, handled string) controllers.Object {
		o := status("True", "ReconciliationSucceeded", "main@sha1:6f9a1b2c", handled)
		o["apiVersion"], o["kind"] = "kustomize.toolkit.fluxcd.io/v1", "Kustomization"
		o["metadata"] = map[string]any{
			"namespace": "apps", "name": "app", "uid": "1", "generation": int64(1),
			"annotations": map[string]any{controllers.RequestAnnotation: asked},
		}
		return o
	}
	for name, test := range map[string]struct {
		before, next controllers.Object
		reached      bool
	}{
		"handled":                        {at("ours", "first"), at("ours", "ours"), true},
		"replaced and handled":           {at("ours", "first"), at("other", "other"), true},
		"handled, then replaced":         {at("ours", "first"), at("other", "ours"), true},
		"replaced and not handled":       {at("ours", "first"), at("other", "first"), false},
		"undone to what was handled":     {at("ours", "first"), at("first", "first"), false},
		"the first request, not handled": {at("ours", ""), at("ours", ""), false},
		"an earlier request handled":     {at("ours", "first"), at("ours", "second"), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := fakeapi.New(t)
			s.Put(kustomizations, test.before)
			before := state(t, s)
			ctx := testlimit.NewDeadline(t.Context(), context.DeadlineExceeded)
			s.OnWatch(kustomizations, func() {
				s.Put(kustomizations, test.next)
				if !test.reached {
					ctx.Expire()
				}
			})
			k, _ := controllers.FindKind("Kustomization")
			w := reconcile.Waiter{Watches: reconcile.NewWatches(s.Client), Progress: func(reconcile.Progress) {}}
			goal := reconcile.Goal{State: reconcile.Ready, Attempt: true, Token: "ours", Answer: true}
			result := w.Await(ctx, goal, objref.Target{Kind: k, Namespace: "apps", Name: "app", Object: before}, nil)
			if reached := result.Err == nil; reached != test.reached {
				t.Errorf("reached is %v: %v", reached, result.Err)
			}
		})
	}
}
