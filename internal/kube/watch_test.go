package kube_test

import (
	"context"
	"errors"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/test/support/fakeapi"
	"github.com/fluxkit/flux/test/support/testlimit"
)

var errEnough = errors.New("seen enough")

// TestWatchSurvives breaks the first watch in several ways and changes objects in the meantime:
// every change must be visited.
func TestWatchSurvives(t *testing.T) {
	t.Parallel()
	relisted := []string{"GET " + pods, "WATCH " + pods, "GET " + pods, "WATCH " + pods}
	resumed := []string{"GET " + pods, "WATCH " + pods, "WATCH " + pods}
	for name, test := range map[string]struct {
		cut      http.HandlerFunc
		requests []string
	}{
		"a lost connection":   {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, resumed},
		"an end of the watch": {func(w http.ResponseWriter, _ *http.Request) { fakeapi.Reply(w, "") }, resumed},
		"a refusal":           {status(http.StatusForbidden, "Forbidden"), resumed},
		"a busy server":       {status(http.StatusServiceUnavailable, "ServiceUnavailable"), resumed},
		"a forgotten version": {status(http.StatusGone, "Expired"), relisted},
		"a version forgotten later": {func(w http.ResponseWriter, _ *http.Request) {
			fakeapi.Reply(w, `{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","status":"Failure","code":410,"reason":"Expired"}}`)
		}, relisted},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := fakeapi.New(t)
			s.Put(pods, pod("gone"))
			s.Handle("WATCH "+pods, func(w http.ResponseWriter, r *http.Request) {
				s.Handle("WATCH "+pods, nil)
				s.Take(pods, "gone")
				s.Put(pods, pod("other")) // after "new" in the list, before it in time
				s.Put(pods, pod("new"))
				test.cut(w, r)
			})
			var seen []string
			err := s.Client.Watch(t.Context(), context.WithCancel, podResource(), kube.Selection{Namespace: "web"},
				func(first []controllers.Object) error { seen = append(seen, names(first)...); return nil },
				func(e kube.Event) error {
					if e.Deleted {
						seen = append(seen, "deleted "+controllers.Name(e.Object))
						return nil
					}
					seen = append(seen, controllers.Name(e.Object))
					if controllers.Name(e.Object) == "new" {
						s.Put(pods, pod("last"))
					}
					if controllers.Name(e.Object) == "last" {
						return errEnough
					}
					return nil
				})
			if !errors.Is(err, errEnough) {
				t.Errorf("ended with %v", err)
			}
			if diff := cmp.Diff([]string{"gone", "deleted gone", "other", "new", "last"}, seen); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(test.requests, s.Requests()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func status(code int, reason string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { fakeapi.Status(w, code, reason, "not now") }
}

// TestWatchConnection checks that a watch reports when it begins and ends, and that changes do not have the omitted fields.
func TestWatchConnection(t *testing.T) {
	t.Parallel()
	s := fakeapi.New(t)
	s.Put(pods, pod("first"))
	s.Handle("WATCH "+pods, func(w http.ResponseWriter, _ *http.Request) {
		s.Handle("WATCH "+pods, nil)
		fakeapi.Reply(w, "") // the server ends the watch
	})
	var connections []bool
	selection := kube.Selection{Namespace: "web", Without: []string{"spec.containers.image", "metadata.managedFields"}, Connected: func(connected bool) {
		if connections = append(connections, connected); connected && len(connections) > 1 {
			changed := pod("second")
			changed["spec"] = map[string]any{"containers": []any{map[string]any{"name": "app", "image": "app:1"}}}
			s.Put(pods, changed)
		}
	}}
	var seen controllers.Object
	err := s.Client.Watch(t.Context(), context.WithCancel, podResource(), selection, func([]controllers.Object) error { return nil }, func(e kube.Event) error {
		seen = e.Object
		return errEnough
	})
	if !errors.Is(err, errEnough) {
		t.Errorf("ended with %v", err)
	}
	if diff := cmp.Diff([]bool{true, false, true, false}, connections); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]any{"containers": []any{map[string]any{"name": "app"}}}, seen["spec"]); diff != "" {
		t.Error(diff)
	}
}

func TestWatchNeedsItsFirstList(t *testing.T) {
	t.Parallel()
	s := fakeapi.New(t)
	s.Handle("GET "+pods, status(http.StatusForbidden, "Forbidden"))
	err := s.Client.Watch(t.Context(), context.WithCancel, podResource(), kube.Selection{Namespace: "web"},
		func([]controllers.Object) error { t.Error("listed"); return nil },
		func(kube.Event) error { t.Error("visited"); return nil })
	if !apierrors.IsForbidden(err) {
		t.Errorf("got %v", err)
	}
}

func TestWatchEndsWithItsContext(t *testing.T) {
	t.Parallel()
	s := fakeapi.New(t)
	s.Serve(pods)
	ctx, cancel := context.WithCancel(t.Context())
	s.OnWatch(pods, cancel)
	err := s.Client.Watch(ctx, context.WithCancel, podResource(), kube.Selection{Namespace: "web"},
		func([]controllers.Object) error { return nil }, func(kube.Event) error { return nil })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// TestWatchBound checks that the deadline of the first list does not apply to the watch that
// follows.
func TestWatchBound(t *testing.T) {
	t.Parallel()
	s := fakeapi.New(t)
	s.Serve(pods)
	var deadline *testlimit.Deadline
	bound := func(ctx context.Context) (context.Context, context.CancelFunc) {
		deadline = testlimit.NewDeadline(ctx, context.DeadlineExceeded)
		return deadline, func() {}
	}
	s.OnWatch(pods, func() {
		deadline.Expire()
		s.Put(pods, pod("late", "u"))
	})
	seen := errors.New("seen")
	err := s.Client.Watch(t.Context(), bound, podResource(), kube.Selection{Namespace: "web"},
		func([]controllers.Object) error { return nil }, func(kube.Event) error { return seen })
	if !errors.Is(err, seen) {
		t.Errorf("the watch ended with %v", err)
	}
	s.Handle("GET "+pods, func(_ http.ResponseWriter, r *http.Request) {
		deadline.Expire()
		<-r.Context().Done()
	})
	err = s.Client.Watch(t.Context(), bound, podResource(), kube.Selection{Namespace: "web"},
		func([]controllers.Object) error { t.Error("listed"); return nil }, func(kube.Event) error { return nil })
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the list ended with %v", err)
	}
}
