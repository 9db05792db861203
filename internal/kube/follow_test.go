package kube_test

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/test/support/fakeapi"
)

// follow follows a pod named "app" from a version and returns what it sees until the pod is
// deleted or has the label done.
func follow(ctx context.Context, s *fakeapi.Server, version string) ([]string, error) {
	var seen []string
	err := s.Client.Follow(ctx, podResource(), kube.Selection{Namespace: "web", Name: "app"}, version, func(e kube.Event) (bool, error) {
		what := "changed "
		if e.Deleted {
			what = "deleted "
		}
		seen = append(seen, what+controllers.Namespace(e.Object)+"/"+controllers.Name(e.Object))
		done := controllers.Path{"metadata.labels.done"}.String(e.Object) != ""
		return e.Deleted || done, nil
	})
	return seen, err
}

func donePod() controllers.Object {
	o := pod("app")
	o["metadata"].(map[string]any)["labels"] = map[string]any{"done": "yes"}
	return o
}

// TestFollowReopensWatch breaks the first watch in several ways: the last change must always be
// visited, also a deletion that no watch has sent.
func TestFollowReopensWatch(t *testing.T) {
	t.Parallel()
	for name, cut := range map[string]http.HandlerFunc{
		"a lost connection":   func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"no rights as yet":    status(http.StatusForbidden, "Forbidden"),
		"not served as yet":   status(http.StatusNotFound, "NotFound"),
		"a busy server":       status(http.StatusServiceUnavailable, "ServiceUnavailable"),
		"a forgotten version": status(http.StatusGone, "Expired"),
		"a version forgotten later": func(w http.ResponseWriter, _ *http.Request) {
			fakeapi.Reply(w, `{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","status":"Failure","code":410,"reason":"Expired"}}`)
		},
		"a version of the future": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusGatewayTimeout)
			fakeapi.Reply(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","code":504,"reason":"Timeout","details":{"causes":[{"reason":"ResourceVersionTooLarge"}]}}`)
		},
	} {
		for what, end := range map[string]struct {
			happens func(*fakeapi.Server)
			seen    []string
		}{
			"changed": {func(s *fakeapi.Server) { s.Put(pods, donePod()) }, []string{"changed web/app"}},
			"deleted": {func(s *fakeapi.Server) { s.Take(pods, "app") }, []string{"deleted web/app"}},
		} {
			t.Run(name+", "+what, func(t *testing.T) {
				t.Parallel()
				s := fakeapi.New(t)
				s.Put(pods, pod("app"))
				version := controllers.Path{"metadata.resourceVersion"}.String(s.Object(pods, "app"))
				s.Handle("WATCH "+pods, func(w http.ResponseWriter, r *http.Request) {
					s.Handle("WATCH "+pods, nil)
					end.happens(s)
					cut(w, r)
				})
				seen, err := follow(t.Context(), s, version)
				if err != nil {
					t.Error(err)
				}
				if diff := cmp.Diff(end.seen, seen); diff != "" {
					t.Error(diff)
				}
			})
		}
	}
}

// TestRelistVisitsChangesOnly checks that an unchanged object is not visited again after a watch
// has expired.
func TestRelistVisitsChangesOnly(t *testing.T) {
	t.Parallel()
	s := fakeapi.New(t)
	s.Put(pods, pod("app"))
	s.Handle("WATCH "+pods, func(w http.ResponseWriter, r *http.Request) {
		s.Handle("WATCH "+pods, nil)
		s.OnWatch(pods, func() { s.Put(pods, donePod()) })
		status(http.StatusGone, "Expired")(w, r)
	})
	seen, err := follow(t.Context(), s, "")
	if diff := cmp.Diff([]string{"changed web/app", "changed web/app"}, seen); diff != "" || err != nil {
		t.Error(diff, err)
	}
}

// TestFollowRejected checks that a watch that is always rejected fails.
func TestFollowRejected(t *testing.T) {
	t.Parallel()
	s := fakeapi.New(t)
	s.Put(pods, pod("app"))
	s.Handle("WATCH "+pods, status(http.StatusForbidden, "Forbidden"))
	if _, err := follow(t.Context(), s, "1"); !apierrors.IsForbidden(err) {
		t.Errorf("got %v", err)
	}
}

// TestUnreachableServerEndsTheFirstList checks that a wrong address is an error and is not
// retried.
func TestUnreachableServerEndsTheFirstList(t *testing.T) {
	t.Parallel()
	s := fakeapi.New(t)
	s.Handle("GET "+pods, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	if _, err := follow(t.Context(), s, ""); err == nil {
		t.Error("no error")
	}
}

// TestBusyServerIsRetried responds to the first request of each kind with 429 and a Retry-After.
func TestBusyServerIsRetried(t *testing.T) {
	t.Parallel()
	s := fakeapi.New(t)
	s.Put(pods, donePod())
	once := func(request string) *atomic.Int32 {
		var refused atomic.Int32
		s.Handle(request, func(w http.ResponseWriter, _ *http.Request) {
			refused.Add(1)
			s.Handle(request, nil)
			w.Header().Set("Retry-After", "1")
			fakeapi.Status(w, http.StatusTooManyRequests, "TooManyRequests", "later")
		})
		return &refused
	}
	list, watch, get := once("GET "+pods), once("WATCH "+pods), once("GET "+pods+"/app")
	if seen, err := follow(t.Context(), s, ""); err != nil || len(seen) != 1 {
		t.Errorf("list: %v %v", seen, err)
	}
	if seen, err := follow(t.Context(), s, "1"); err != nil || len(seen) != 1 {
		t.Errorf("watch: %v %v", seen, err)
	}
	if _, err := s.Client.Get(t.Context(), podResource(), "web", "app"); err != nil {
		t.Errorf("get: %v", err)
	}
	if list.Load() != 1 || watch.Load() != 1 || get.Load() != 1 {
		t.Errorf("rejected %d lists, %d watches, %d reads", list.Load(), watch.Load(), get.Load())
	}
}

// TestFollowReturnsVisitorError checks that an error of the visitor is returned unchanged.
func TestFollowReturnsVisitorError(t *testing.T) {
	t.Parallel()
	s := fakeapi.New(t)
	s.Put(pods, pod("app"))
	for _, version := range []string{"", "1"} {
		err := s.Client.Follow(t.Context(), podResource(), kube.Selection{Namespace: "web"}, version, func(kube.Event) (bool, error) {
			return false, errEnough
		})
		if !errors.Is(err, errEnough) || err.Error() != errEnough.Error() {
			t.Errorf("from %q: %v", version, err)
		}
	}
}
