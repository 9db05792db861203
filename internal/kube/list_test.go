package kube_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/test/support/fakeapi"
)

// TestListReadsAllPages reads several pages with omitted fields.
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

// cutOff returns a response whose connection is lost after text.
func cutOff(text string) *http.Response {
	r := respond(http.StatusOK, "")
	r.Body = io.NopCloser(io.MultiReader(strings.NewReader(text), iotest.ErrReader(io.ErrUnexpectedEOF)))
	return r
}

// item returns an object of a list.
func item(name, version string) string {
	return fmt.Sprintf(`{"metadata":{"name":%q,"resourceVersion":%q}}`, name, version)
}

// TestListLostConnection checks that a truncated list is completed by another request, that each
// object is visited once, and that changes in the meantime are an error.
func TestListLostConnection(t *testing.T) {
	t.Parallel()
	half := `{"items":[` + item("a", "1") + "," + item("b", "2") + ","
	for name, c := range map[string]struct {
		second   string // "" truncates every response
		got      []string
		err      string
		requests int
	}{
		"the same":         {`{"items":[` + item("a", "1") + "," + item("b", "2") + "," + item("c", "3") + `],"metadata":{"resourceVersion":"9"}}`, []string{"a", "b", "c"}, "", 2},
		"one has changed":  {`{"items":[` + item("a", "1") + "," + item("b", "7") + "," + item("c", "3") + `]}`, []string{"a", "b"}, "the objects have changed since", 2},
		"one is gone":      {`{"items":[` + item("a", "1") + "," + item("c", "3") + `]}`, []string{"a", "b"}, "the objects have changed since", 2},
		"one has come":     {`{"items":[` + item("a", "1") + "," + item("aa", "7") + "," + item("b", "2") + `]}`, []string{"a", "b"}, "the objects have changed since", 2},
		"the rest is gone": {`{"items":[` + item("a", "1") + `]}`, []string{"a", "b"}, "the objects have changed since", 2},
		"lost permanently": {"", []string{"a", "b"}, "unexpected EOF", 7},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := &faulty{fault: func(n int, _ *http.Request) (*http.Response, error) {
					if n == 1 || c.second == "" {
						return cutOff(half), nil
					}
					return respond(http.StatusOK, c.second), nil
				}}
				var got []string
				_, err := f.client(t).List(t.Context(), podResource(), kube.Selection{Namespace: "web"}, func(o controllers.Object) error {
					got = append(got, controllers.Name(o))
					return nil
				})
				if diff := cmp.Diff(c.got, got); diff != "" {
					t.Error(diff)
				}
				if (err == nil) != (c.err == "") || !strings.Contains(fmt.Sprint(err), c.err) && c.err != "" || len(f.requests) != c.requests || len(f.notices) != 1 {
					t.Errorf("%v after %d requests, notices %q", err, len(f.requests), f.notices)
				}
			})
		})
	}
}

// TestListVisitorsError checks that an error of the visitor is not retried.
func TestListVisitorsError(t *testing.T) {
	t.Parallel()
	f := &faulty{fault: func(int, *http.Request) (*http.Response, error) {
		return respond(http.StatusOK, `{"items":[`+item("a", "1")+`]}`), nil
	}}
	_, err := f.client(t).List(t.Context(), podResource(), kube.Selection{}, func(controllers.Object) error { return io.ErrUnexpectedEOF })
	if !errors.Is(err, io.ErrUnexpectedEOF) || len(f.requests) != 1 {
		t.Errorf("%v after %d requests", err, len(f.requests))
	}
}

// TestListContinuesExpiredList checks that a list continues at the token of the server, without
// repeating objects.
func TestListContinuesExpiredList(t *testing.T) {
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
