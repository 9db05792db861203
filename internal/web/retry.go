package web

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/fluxkit/flux/internal/budget"
)

// Retry repeats requests after temporary failures. The zero value repeats none.
type Retry struct {
	// Plan returns the function that decides what to do after each attempt of a request.
	Plan func(*http.Request) Decide
	// Notify receives the notices.
	Notify func(text string)
	// Sleep replaces Sleep in tests.
	Sleep func(context.Context, time.Duration) error
}

// Decide returns the step to take after an attempt with the given result.
type Decide func(*http.Response, error) Step

// Step is the action after an attempt.
type Step struct {
	// Again repeats the request after Pause, provided that its body can be read again and the context does not end
	// before.
	Again bool
	Pause time.Duration
	// Err, if set, replaces the result of the last attempt.
	Err error
	// Cause is the cause of the failure, "" for a success. Notice is reported before the pause, but not
	// again while other requests still fail with the same cause.
	Cause, Notice string
}

// Transport returns a transport that repeats requests.
func (t Retry) Transport(next http.RoundTripper) http.RoundTripper {
	if t.Plan == nil {
		return next
	}
	if t.Sleep == nil {
		t.Sleep = Sleep
	}
	failing := &causes{targets: map[string]map[string]bool{}}
	return &wrapped{next: next, repeats: true, do: func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
		decide := t.Plan(r)
		for attempt := r; ; {
			response, err := next.RoundTrip(attempt)
			step := decide(response, err)
			if step.Again = step.Again && inTime(r.Context(), step.Pause); step.Again {
				attempt = repeated(r)
			}
			switch {
			case step.Again && attempt != nil:
			case step.Err != nil:
				discard(response)
				return nil, step.Err
			default:
				if err == nil && step.Cause == "" {
					failing.passed(r)
				}
				return response, err
			}
			if step.Notice != "" && failing.first(step.Cause, r) {
				t.Notify(step.Notice)
			}
			discard(response)
			if err := t.Sleep(r.Context(), step.Pause); err != nil {
				return nil, err
			}
		}
	}}
}

// Repeats reports whether a transport was created by Retry.
func Repeats(transport http.RoundTripper) bool {
	w, ok := transport.(*wrapped)
	return ok && w.repeats
}

// Sleep waits for a duration. If the context ends earlier, it returns the cause.
func Sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}

// RetryAfter returns the pause that a response header requests in seconds, at most one day. For dates, which require a
// clock, see RetryAt.
func RetryAfter(h http.Header) (time.Duration, bool) {
	const most = 24 * 60 * 60
	seconds, err := strconv.Atoi(h.Get("Retry-After"))
	return time.Duration(min(seconds, most)) * time.Second, err == nil && seconds >= 0
}

// RetryAt returns the end of the pause that a response header requests, in seconds or as a date.
func RetryAt(h http.Header, now time.Time) (time.Time, bool) {
	if pause, ok := RetryAfter(h); ok {
		return now.Add(pause), true
	}
	at, err := http.ParseTime(h.Get("Retry-After"))
	return at, err == nil
}

// Unavailable reports whether a status means that the server is busy or restarting, which a load balancer may also
// report.
func Unavailable(code int) bool {
	return code == http.StatusBadGateway || code == http.StatusServiceUnavailable || code == http.StatusGatewayTimeout
}

// Unreachable returns the error of a connection that cannot be established, nil for other errors.
func Unreachable(err error) error {
	if dial := (*net.OpError)(nil); errors.As(err, &dial) && dial.Op == "dial" {
		return dial.Err
	}
	return nil
}

// Lost reports whether an established connection ended before the end of the response. A connection that cannot be
// established is not considered lost, because the address may be wrong.
func Lost(err error) bool {
	return Unreachable(err) == nil && (errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE))
}

// repeated returns a copy of the request, or nil if its body cannot be read again.
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

// inTime reports whether a pause ends before the deadline of the context. If not, Transport returns the failure,
// which is more informative than a timeout.
func inTime(ctx context.Context, pause time.Duration) bool {
	deadline, bounded := ctx.Deadline()
	return !bounded || time.Until(deadline) > pause //nolint:forbidigo // a context has no other clock
}

// discard closes a response body. It first reads the rest if it is short, so that the connection can be reused.
func discard(response *http.Response) {
	const most = 64 << 10
	if response != nil {
		_, _ = budget.Head(response.Body, most) // the body is not used
		_ = response.Body.Close()
	}
}

// causes maps the causes of failures to the failing requests.
type causes struct {
	mu      sync.Mutex
	targets map[string]map[string]bool
}

// first records the failure of a request, and reports whether no other request is failing with the same cause.
func (c *causes) first(cause string, r *http.Request) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	first := len(c.targets[cause]) == 0
	if first {
		c.targets[cause] = map[string]bool{}
	}
	c.targets[cause][Target(r)] = true
	return first
}

// passed records that a request succeeded, so that its next failure is reported.
func (c *causes) passed(r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for cause, targets := range c.targets {
		if delete(targets, Target(r)); len(targets) == 0 {
			delete(c.targets, cause)
		}
	}
}

// Target returns the method and path of a request.
func Target(r *http.Request) string { return r.Method + " " + r.URL.Path }
