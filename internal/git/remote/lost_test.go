package remote

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/fluxkit/flux/test/support/testproxy"
)

// unexpected fails the test if a connection is lost.
func unexpected(t *testing.T) func(error) {
	return func(err error) { t.Errorf("the push has succeeded after %v", err) }
}

// onPush returns a remote behind a proxy that responds to the push itself.
// deliver forwards the push and drops the response.
func onPush(t *testing.T, s *server, answer func(w http.ResponseWriter, deliver func())) Repository {
	t.Helper()
	reverse, err := testproxy.Reverse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	remote := s.remote()
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost || !strings.HasSuffix(r.URL.Path, "/git-receive-pack") {
			reverse.ServeHTTP(w, r)
			return
		}
		answer(w, func() { reverse.ServeHTTP(&discard{header: http.Header{}}, r) })
	}))
	t.Cleanup(front.Close)
	remote.URL = front.URL + "/fleet.git"
	return remote
}

// discard is a response writer that drops the response.
type discard struct{ header http.Header }

func (d *discard) Header() http.Header         { return d.header }
func (d *discard) WriteHeader(int)             {}
func (d *discard) Write(p []byte) (int, error) { return len(p), nil }

// TestLostPush checks that after a lost connection, a push that has succeeded, one that has not,
// and one whose result is unknown are reported differently.
func TestLostPush(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		delivered bool
		status    int // 0 closes the connection, 200 answers without a report
		gone      bool
		want      string // "" where the push has arrived
	}{
		"closed after the push":      {delivered: true},
		"502 after the push":         {delivered: true, status: http.StatusBadGateway},
		"no report after the push":   {delivered: true, status: http.StatusOK},
		"closed before the push":     {want: `branch "main" does not contain the commits`},
		"502 before the push":        {status: http.StatusBadGateway, want: `branch "main" does not contain the commits`},
		"no report, and no push":     {status: http.StatusOK, want: `branch "main" does not contain the commits`},
		"closed, and the server too": {delivered: true, gone: true, want: "the push may have succeeded"},
		"refused by a rule":          {status: http.StatusUnprocessableEntity, want: "the server rejected the push"},
		"refused by a login":         {status: http.StatusForbidden, want: "permission denied (403)"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newServer(t)
			var down atomic.Bool
			remote := onPush(t, s, func(w http.ResponseWriter, deliver func()) {
				if c.delivered {
					deliver()
				}
				down.Store(c.gone)
				if c.status == 0 {
					panic(http.ErrAbortHandler)
				}
				w.WriteHeader(c.status)
			})
			gate := func(*http.Request) {
				if down.Load() {
					panic(http.ErrAbortHandler)
				}
			}
			s.before.Store(&gate)
			r, err := Open(t.Context(), remote, "main")
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := r.Close(); err != nil {
					t.Error(err)
				}
			}()
			commit(t, r, change("Mine", map[string]string{"a.yaml": "a\n"}))
			var lost error
			err = r.Push(t.Context(), func(err error) { lost = err })
			if s.hasCommits(t) != c.delivered {
				t.Fatalf("delivered: %t", !c.delivered)
			}
			if c.want == "" {
				if err != nil || lost == nil || r.Head() != run(t, s.folder, "rev-parse", "main") {
					t.Errorf("%v, lost %v", err, lost)
				}
				return
			}
			var failed *Error
			if !errors.As(err, &failed) || !strings.Contains(err.Error(), c.want) || failed.Hint == "" || lost != nil {
				t.Errorf("%v, lost %v", err, lost)
			}
		})
	}
}

// TestPushWithoutResponse checks that after a timeout the branch is not read again.
func TestPushWithoutResponse(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	remote := onPush(t, s, func(_ http.ResponseWriter, deliver func()) {
		deliver()
		cancel(errors.New("timed out after 5m"))
		<-ctx.Done()
		panic(http.ErrAbortHandler)
	})
	r, err := Open(t.Context(), remote, "main")
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}()
	commit(t, r, change("Mine", map[string]string{"a.yaml": "a\n"}))
	err = r.Push(ctx, unexpected(t))
	if err == nil || !strings.Contains(err.Error(), "timed out after 5m: the push may have succeeded") {
		t.Error(err)
	}
}
