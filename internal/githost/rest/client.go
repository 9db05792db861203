// Package rest implements the common parts of the Git hosts with an API: the HTTP client, error messages with
// hints, the bootstrap procedure ([Host]) and pull request comments ([Pull]). [Driver], [Keys], [Teams],
// [Requests] and [Notes] define the parts that differ between hosts.
package rest

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/fluxkit/flux/internal/githost"
	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/internal/web"
)

const (
	// responseTimeout is the maximum time until the response headers, and requestTimeout the maximum time of a
	// request including redirects, retries and the body.
	responseTimeout, requestTimeout = 30 * time.Second, 2 * time.Minute
	// maxRateLimitWait is the longest time to wait for a rate limit. If the host requires a longer wait, the request
	// fails.
	maxRateLimitWait = 30 * time.Second
	// maxAttempts is the maximum number of attempts per request, and retryDelay the time between two attempts.
	maxAttempts, retryDelay = 3, time.Second
	// maxResponse is the maximum size of a response in bytes, and maxRequests limits the requests of a client and thus
	// the pages of a list.
	maxResponse, maxRequests = 16 << 20, 2000
)

// Caller configures the clients of Git hosts.
type Caller struct {
	// UserAgent is the User-Agent header.
	UserAgent string
	// Now is the clock.
	Now func() time.Time
	// Waiting receives a message before each wait for a rate limit.
	Waiting func(format string, args ...any)
	// Sleep replaces web.Sleep in tests.
	Sleep func(context.Context, time.Duration) error
}

// Client returns the HTTP client for a host. It trusts the host's CA certificates in addition to the system's, and
// does not follow redirects to another host, which would receive the credentials. It waits for short rate limits and
// returns a [RateLimitError] for longer ones. It adds no credentials.
func (c Caller) Client(h githost.Hosted) (*http.Client, error) {
	client, err := web.Client{
		Server:    web.Server{Name: h.Hostname, CA: h.CABundle, SystemCA: true, ResponseTimeout: responseTimeout},
		UserAgent: c.UserAgent, Redirects: web.SameServer, Timeout: requestTimeout,
		Limits: web.Limits{
			Response: maxResponse, TooLarge: &excessError{fmt.Sprintf("sent a response larger than %d MiB", maxResponse>>20)},
			Requests: maxRequests, TooMany: &excessError{fmt.Sprintf("returned lists that require more than %d requests", maxRequests)},
		},
		Retry: web.Retry{
			Plan:   func(r *http.Request) web.Decide { return c.plan(h.Hostname, r) },
			Notify: func(text string) { c.Waiting("%s", text) }, Sleep: c.Sleep,
		},
	}.HTTP()
	if err != nil {
		return nil, hint.Errorf("use PEM format", "%w", err)
	}
	return client, nil
}

// plan waits for rate limits, and retries requests without side effects while the host is unavailable.
func (c Caller) plan(host string, r *http.Request) web.Decide {
	attempts := 0
	return func(response *http.Response, err error) web.Step {
		if err != nil {
			return web.Step{}
		}
		attempts++
		limit := c.limited(host, response)
		switch {
		case limit != nil:
			notice := fmt.Sprintf("%s has rate-limited the token: waiting %s", host, limit.wait.Round(time.Second))
			return web.Step{
				Again: attempts < maxAttempts && limit.wait <= maxRateLimitWait, Pause: limit.wait, Err: limit, Cause: notice, Notice: notice,
			}
		case r.Method == http.MethodGet && web.Unavailable(response.StatusCode):
			return web.Step{Again: attempts < maxAttempts, Pause: retryDelay}
		}
		return web.Step{}
	}
}

// RateLimitError is returned when the rate limit of a host is exceeded.
type RateLimitError struct {
	// Host is the host.
	Host string
	// Until is the end of the rate limit.
	Until time.Time
	// wait is the time until then.
	wait time.Duration
}

func (e *RateLimitError) Error() string {
	return fmt.Sprintf("%s rejects requests with this token until %s: rate limit exceeded", e.Host, e.Until.UTC().Format(time.RFC3339))
}

// limited returns the error for a response to a rate-limited request, nil for
// others. Hosts respond with 429, and GitHub also with 403.
func (c Caller) limited(host string, response *http.Response) *RateLimitError {
	h := response.Header
	used := h.Get("X-RateLimit-Remaining") == "0" || h.Get("RateLimit-Remaining") == "0"
	refused := response.StatusCode == http.StatusForbidden && (used || h.Get("Retry-After") != "")
	if response.StatusCode != http.StatusTooManyRequests && !refused {
		return nil
	}
	now := c.Now()
	until, known := web.RetryAt(h, now)
	for _, name := range []string{"X-RateLimit-Reset", "RateLimit-Reset"} {
		if at, err := strconv.ParseInt(h.Get(name), 10, 64); err == nil && !known {
			until, known = time.Unix(at, 0), true
		}
	}
	if !known {
		until = now.Add(time.Minute) // the hosts' default
	}
	return &RateLimitError{Host: host, Until: until, wait: max(until.Sub(now), retryDelay)}
}

// excessError is returned if the responses of a host exceed a limit.
type excessError struct{ fact string }

func (e *excessError) Error() string { return e.fact }
