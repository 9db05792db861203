package kube

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"mime"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/http2"
	"k8s.io/apimachinery/pkg/types"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
)

// Notifier is a rest.WarningHandler that is also told what the client itself
// has to tell its user: that it retries, and after what. It may be called
// concurrently.
type Notifier interface {
	Notice(text string)
}

const (
	// firstBackoff is doubled with each retry up to lastBackoff. A server that
	// asks for more by Retry-After gets it, up to longestBackoff.
	firstBackoff   = 250 * time.Millisecond
	lastBackoff    = 4 * time.Second
	longestBackoff = 30 * time.Second
	// statusBytes is how much of a refusal is read for its message.
	statusBytes = 64 << 10
)

// retriesAfter returns how often a request is repeated after an answer, or after
// a lost connection for 0. A 500 is often permanent, such as a conversion webhook
// that fails: it is reported after two seconds. What a server or a load balancer
// answers while it restarts is not.
func retriesAfter(code int) int {
	switch code {
	case http.StatusTooManyRequests:
		return 10
	case http.StatusInternalServerError:
		return 3
	case 0, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return 6
	default:
		return 0
	}
}

// retry repeats requests after what passes by itself: a busy or restarting
// server, a connection that was lost. It is the only place that does, so that
// nothing is repeated by two at once, and it repeats only what may arrive twice
// (see idempotent). The time of the request's context bounds it.
type retry struct {
	next   http.RoundTripper
	notify func(string)

	mu sync.Mutex
	// failing has the requests that fail, by what they fail of: each cause is
	// told once, however many requests and attempts there are.
	failing map[string]map[string]bool
}

func notifier(cfg *rest.Config) func(string) {
	if n, ok := cfg.WarningHandler.(Notifier); ok {
		return n.Notice
	}
	return func(string) {}
}

// wrapRetry adds retries to the transport of a configuration, around another
// wrapper. A configuration that has them already keeps those.
func wrapRetry(cfg *rest.Config, inner func(http.RoundTripper) http.RoundTripper) {
	notify := notifier(cfg)
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper {
		if _, already := next.(*retry); already {
			return next
		}
		return &retry{next: inner(next), notify: notify, failing: map[string]map[string]bool{}}
	})
}

// WrappedRoundTripper lets client-go reach the transport below.
func (t *retry) WrappedRoundTripper() http.RoundTripper { return t.next }

// RoundTrip implements http.RoundTripper.
func (t *retry) RoundTrip(r *http.Request) (*http.Response, error) {
	attempt := r
	for n := 0; ; n++ {
		response, err := t.next.RoundTrip(attempt)
		f := failureOf(r, response, err)
		if f == nil {
			if err == nil {
				t.passed(r)
			}
			return response, err
		}
		pause := f.pause(n)
		if !f.again(r, n) || !inTime(r.Context(), pause) {
			return f.final(response, err)
		}
		if attempt = repeated(r); attempt == nil {
			return f.final(response, err)
		}
		t.tell(r, f.cause, message(response))
		if !sleep(r.Context(), pause) {
			return nil, context.Cause(r.Context())
		}
	}
}

// failure is why a request may be worth repeating.
type failure struct {
	code  int // 0 for a lost connection
	cause string
	asked time.Duration
}

// failureOf returns nil for what repeating does not change.
func failureOf(r *http.Request, response *http.Response, err error) *failure {
	switch {
	case r.Context().Err() != nil:
		return nil
	case err != nil && lost(err):
		return &failure{cause: lostError{err}.Error()}
	case err != nil || retriesAfter(response.StatusCode) == 0 || invalidForSchema(r, response):
		return nil
	}
	code := response.StatusCode
	f := &failure{code: code, cause: fmt.Sprintf("%d %s from the API server", code, http.StatusText(code))}
	if seconds, err := strconv.Atoi(response.Header.Get("Retry-After")); err == nil && seconds > 0 {
		f.asked = time.Duration(min(seconds, int(longestBackoff/time.Second)+1)) * time.Second
	}
	return f
}

// invalidForSchema reports whether the API server answered a server-side apply with
// a 500 because the object does not match the schema of its kind: a field that is not
// declared, or of another type. This is an answer about the object, whatever its code.
func invalidForSchema(r *http.Request, response *http.Response) bool {
	if r.Method != http.MethodPatch || response.StatusCode != http.StatusInternalServerError {
		return false
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, statusBytes))
	response.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(body), response.Body), response.Body}
	var status struct{ Kind, Message string }
	return err == nil && json.Unmarshal(body, &status) == nil && status.Kind == "Status" && strings.HasPrefix(status.Message, "failed to create typed ")
}

// again reports whether a request is repeated after n retries. A server that
// answers 429 has not begun with the request, so that it may be any.
func (f *failure) again(r *http.Request, n int) bool {
	return n < retriesAfter(f.code) && f.asked <= longestBackoff && (f.code == http.StatusTooManyRequests || idempotent(r))
}

// pause returns how long to wait before the next attempt: between half and the
// whole of a doubling time, so that many clients do not come back together.
func (f *failure) pause(n int) time.Duration {
	if f.asked > 0 {
		return f.asked
	}
	whole := min(firstBackoff<<min(n, 10), lastBackoff)
	return whole/2 + rand.N(whole/2) //nolint:gosec // nothing secret depends on it
}

// message takes what the API server says of itself from an answer that is not
// used any more, and frees its connection.
func message(response *http.Response) string {
	if response == nil {
		return ""
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, statusBytes))
	_ = response.Body.Close() // what is not read is not needed
	var status struct{ Kind, Message string }
	if err != nil || json.Unmarshal(body, &status) != nil || status.Kind != "Status" || status.Message == "" {
		return ""
	}
	return ": " + status.Message
}

// final is what the caller gets. Without Retry-After, and with the connection's
// error in words, client-go does not repeat the request once more.
func (f *failure) final(response *http.Response, err error) (*http.Response, error) {
	if err != nil {
		return nil, lostError{err}
	}
	response.Header.Del("Retry-After")
	return response, nil
}

// lostError says that a connection ended before the answer.
type lostError struct{ err error }

func (e lostError) Error() string {
	if utilnet.IsConnectionReset(e.err) {
		return "the API server reset the connection"
	}
	return "the API server closed the connection without an answer"
}

// lost reports whether a connection that had been made has ended. One that
// cannot be made is reported at once: the address may be wrong.
func lost(err error) bool {
	var dial *net.OpError
	if errors.As(err, &dial) && dial.Op == "dial" {
		return false
	}
	var stream http2.StreamError
	return errors.As(err, &stream) || utilnet.IsConnectionReset(err) || utilnet.IsProbableEOF(err) || utilnet.IsHTTP2ConnectionLost(err) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}

// idempotent reports whether a request that may have been done already can be
// sent once more. Reading is (lists, the start of a watch). So are server-side
// apply and a merge patch: they say what fields are to be, so that a second one
// changes nothing (one that names a resourceVersion is answered with a conflict,
// which its caller expects anyway). A request for a reconciliation is a merge
// patch with a token that the controller handles once. Access reviews and dry
// runs store nothing. JSON patches, creation and deletion are not: the second
// one may meet another object of that name.
func idempotent(r *http.Request) bool {
	if r.Header.Get("Upgrade") != "" {
		return false
	}
	switch r.Method {
	case http.MethodGet, http.MethodHead:
		return true
	case http.MethodPatch:
		media, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
		if media == string(types.ApplyPatchType) || media == string(types.MergePatchType) {
			return true
		}
	case http.MethodPost:
		if strings.HasSuffix(r.URL.Path, "/selfsubjectaccessreviews") || strings.HasSuffix(r.URL.Path, "/selfsubjectreviews") {
			return true
		}
	}
	return r.URL.Query().Get("dryRun") == "All"
}

// repeated returns a request to be sent once more, nil if its body is gone.
func repeated(r *http.Request) *http.Request {
	again := r.Clone(r.Context())
	if r.Body == nil || r.Body == http.NoBody {
		return again
	}
	if r.GetBody == nil {
		return nil
	}
	body, err := r.GetBody()
	if err != nil {
		return nil
	}
	again.Body = body
	return again
}

// tell says once that requests are repeated and why.
func (t *retry) tell(r *http.Request, cause, message string) {
	t.mu.Lock()
	first := len(t.failing[cause]) == 0
	if first {
		t.failing[cause] = map[string]bool{}
	}
	t.failing[cause][target(r)] = true
	t.mu.Unlock()
	if first {
		t.notify(fmt.Sprintf("retrying after %s (%s)%s", cause, target(r), message))
	}
}

// passed forgets that a request has failed: when it does once more, that is told.
func (t *retry) passed(r *http.Request) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for cause, targets := range t.failing {
		if delete(targets, target(r)); len(targets) == 0 {
			delete(t.failing, cause)
		}
	}
}

// target names a request for people.
func target(r *http.Request) string { return r.Method + " " + r.URL.Path }

// inTime reports whether a pause ends before the time of the context does: if
// not, the answer that is there says more than that the time is over.
func inTime(ctx context.Context, pause time.Duration) bool {
	deadline, bounded := ctx.Deadline()
	return !bounded || time.Until(deadline) > pause
}

func sleep(ctx context.Context, pause time.Duration) bool {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
