package kube_test

import (
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/internal/kube/fakeapi"
	"github.com/fluxkit/flux/pkg/controllers"
)

// TestListReadsAllPages, and leaves out what is not wanted on each.
func TestListReadsAllPages(t *testing.T) {
	t.Parallel()
	s := fakeapi.New(t)
	var asked []string
	s.Handle("GET "+pods, func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		asked = append(asked, q.Get("limit")+" "+q.Get("continue"))
		next := map[string]string{"": "second", "second": "third", "third": ""}[q.Get("continue")]
		fakeapi.Reply(w, `{"metadata":{"continue":%q,"resourceVersion":"9"},"items":[{"metadata":{"name":"after-%s"},"status":{"much":1}}]}`, next, q.Get("continue"))
	})
	var got []string
	version, err := s.Client.List(t.Context(), podResource(), kube.Selection{Namespace: "web", Without: []string{"status"}}, func(o controllers.Object) error {
		if o["status"] != nil {
			t.Errorf("not left out: %v", o)
		}
		got = append(got, controllers.Name(o))
		return nil
	})
	if err != nil || version != "9" {
		t.Errorf("version %q, %v", version, err)
	}
	if diff := cmp.Diff([]string{"after-", "after-second", "after-third"}, got); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"10000 ", "10000 second", "10000 third"}, asked); diff != "" {
		t.Error(diff)
	}
}

// TestListNoticesALostConnection: half a list is an error, not a short list.
func TestListNoticesALostConnection(t *testing.T) {
	t.Parallel()
	s := fakeapi.New(t)
	s.Handle("GET "+pods, func(w http.ResponseWriter, _ *http.Request) {
		fakeapi.Reply(w, `{"items":[{"metadata":{"name":"a"}},`)
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	})
	seen := 0
	_, err := s.Client.List(t.Context(), podResource(), kube.Selection{Namespace: "web"}, func(controllers.Object) error { seen++; return nil })
	if err == nil || seen != 1 {
		t.Errorf("saw %d objects, error %v", seen, err)
	}
}

// TestListGoesOnAfterAnExpiredPage where the server says, without showing anything twice.
func TestListGoesOnAfterAnExpiredPage(t *testing.T) {
	t.Parallel()
	s := fakeapi.New(t)
	s.Handle("GET "+pods, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Query().Get("continue") {
		case "":
			fakeapi.Reply(w, `{"metadata":{"continue":"old","resourceVersion":"9"},"items":[{"metadata":{"name":"a"}}]}`)
		case "old":
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusGone)
			fakeapi.Reply(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","code":410,"reason":"Expired","metadata":{"continue":"now"}}`)
		case "now":
			fakeapi.Reply(w, `{"metadata":{"resourceVersion":"12"},"items":[{"metadata":{"name":"b"}}]}`)
		}
	})
	var got []string
	version, err := s.Client.List(t.Context(), podResource(), kube.Selection{Namespace: "web"}, func(o controllers.Object) error {
		got = append(got, controllers.Name(o))
		return nil
	})
	if diff := cmp.Diff([]string{"a", "b"}, got); diff != "" || err != nil || version != "12" {
		t.Errorf("version %q, %v, %s", version, err, diff)
	}
}
