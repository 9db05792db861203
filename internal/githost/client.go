package githost

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/fluxkit/flux/internal/budget"
	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/internal/secrets/redact"
)

const (
	// connectTimeout is the maximum time to connect to a host.
	connectTimeout = 10 * time.Second
	// responseTimeout is the maximum time until the header of a response.
	responseTimeout = 30 * time.Second
	// requestTimeout is the maximum time of a request with redirects, retries
	// and the body.
	requestTimeout = 2 * time.Minute
	// maxRateLimitWait is the longest wait for a rate limit; a longer one is an
	// error.
	maxRateLimitWait = 30 * time.Second
	// maxAttempts bounds the attempts of a request without side effects while
	// the host is unavailable.
	maxAttempts = 3
	// retryDelay is the time between two attempts.
	retryDelay = time.Second
	// maxRedirects bounds the redirects of a request.
	maxRedirects = 5
	// maxResponse bounds the body of a response in bytes.
	maxResponse = 16 << 20
	// maxRequests bounds the requests of a client, and so the pages of a list.
	maxRequests = 2000
)

// Caller configures the clients of Git hosts.
type Caller struct {
	// UserAgent is the User-Agent header.
	UserAgent string
	// Now is the clock.
	Now func() time.Time
	// Waiting reports waits for rate limits.
	Waiting func(format string, args ...any)

	// sleep waits for a duration or the end of ctx; nil for the real clock.
	sleep func(ctx context.Context, d time.Duration) error
}

// Client returns the HTTP client for a host. It trusts the host's CA
// certificates, does not follow redirects to another host, which would receive
// the credentials, waits for short rate limits and returns a [RateLimitError]
// for others. Every request has a timeout. It adds no credentials.
func (c Caller) Client(h Hosted) (*http.Client, error) {
	roots, err := x509.SystemCertPool()
	if err != nil {
		roots = x509.NewCertPool()
	}
	if len(h.CABundle) > 0 && !roots.AppendCertsFromPEM(h.CABundle) {
		return nil, hint.Errorf("use PEM format", "no certificate in the CA bundle for %s", h.Hostname)
	}
	if c.sleep == nil {
		c.sleep = sleep
	}
	transport := &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: connectTimeout}).DialContext,
		TLSClientConfig:       &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout:   connectTimeout,
		ResponseHeaderTimeout: responseTimeout,
		ForceAttemptHTTP2:     true,
		MaxIdleConns:          4,
		IdleConnTimeout:       time.Minute,
	}
	return &http.Client{
		Transport: &retryTransport{caller: c, host: h.Hostname, next: &boundedTransport{next: transport}}, CheckRedirect: sameHost, Timeout: requestTimeout,
	}, nil
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}

// redirectError is returned for a redirect that is not followed.
type redirectError struct {
	to     string
	method string // of a request whose method the redirect would change
}

func (e *redirectError) Error() string {
	if e.method != "" {
		return fmt.Sprintf("the host redirects a %s request to %s", e.method, e.to)
	}
	return "the host redirects to another address, " + e.to
}

// sameHost follows redirects on the same host. It does not follow a redirect
// that turns a write into a GET, which would change nothing.
func sameHost(next *http.Request, via []*http.Request) error {
	first, to := via[0], next.URL.Scheme+"://"+next.URL.Host
	switch {
	case next.URL.Host != first.URL.Host || next.URL.Scheme != first.URL.Scheme:
		return &redirectError{to: to}
	case next.Method != first.Method:
		return &redirectError{to: to + next.URL.Path, method: first.Method}
	case len(via) >= maxRedirects:
		return errors.New("too many redirects")
	}
	return nil
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
	return fmt.Sprintf("%s accepts no requests with this token until %s: rate limit exceeded", e.Host, e.Until.UTC().Format(time.RFC3339))
}

// retryTransport waits for rate limits, and retries requests without side
// effects while a host is unavailable.
type retryTransport struct {
	caller Caller
	host   string
	next   http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (t *retryTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	for attempt := 1; ; attempt++ {
		sent, err := t.prepared(r)
		if err != nil {
			return nil, err
		}
		response, err := t.next.RoundTrip(sent)
		if err != nil {
			return nil, err
		}
		limit, last := t.limited(response), attempt == maxAttempts || r.Body != nil && r.GetBody == nil
		down := r.Method == http.MethodGet && (response.StatusCode == http.StatusBadGateway || response.StatusCode == http.StatusServiceUnavailable || response.StatusCode == http.StatusGatewayTimeout)
		if limit == nil && !down || limit == nil && last {
			return response, nil
		}
		drain(response)
		wait := retryDelay
		if limit != nil {
			if wait = limit.wait; wait > maxRateLimitWait || last || exceedsDeadline(r.Context(), t.caller.Now(), limit.Until) {
				return nil, limit
			}
			t.caller.Waiting("%s has rate-limited the token: waiting %s", t.host, wait.Round(time.Second))
		}
		if err := t.caller.sleep(r.Context(), wait); err != nil {
			return nil, err
		}
	}
}

// prepared returns a copy of the request for one attempt.
func (t *retryTransport) prepared(r *http.Request) (*http.Request, error) {
	sent := r.Clone(r.Context())
	if t.caller.UserAgent != "" {
		sent.Header.Set("User-Agent", t.caller.UserAgent)
	}
	if r.GetBody == nil {
		return sent, nil
	}
	body, err := r.GetBody()
	sent.Body = body
	return sent, err
}

// drain discards a response, so that its connection can be reused.
func drain(response *http.Response) {
	_, _ = io.CopyN(io.Discard, response.Body, 64<<10)
	_ = response.Body.Close()
}

func exceedsDeadline(ctx context.Context, now, until time.Time) bool {
	deadline, bounded := ctx.Deadline()
	return bounded && deadline.Before(until) && deadline.After(now)
}

// limited returns the rate limit of a response, nil for none. Hosts respond with
// 429, GitHub also with 403.
func (t *retryTransport) limited(response *http.Response) *RateLimitError {
	h := response.Header
	used := h.Get("X-RateLimit-Remaining") == "0" || h.Get("RateLimit-Remaining") == "0"
	refused := response.StatusCode == http.StatusForbidden && (used || h.Get("Retry-After") != "")
	if response.StatusCode != http.StatusTooManyRequests && !refused {
		return nil
	}
	now := t.caller.Now()
	until := now.Add(time.Minute) // the default of the hosts
	if at, ok := headerTime(h, now); ok {
		until = at
	}
	return &RateLimitError{Host: t.host, Until: until, wait: max(until.Sub(now), retryDelay)}
}

// headerTime returns the end of a rate limit.
func headerTime(h http.Header, now time.Time) (time.Time, bool) {
	after := h.Get("Retry-After")
	if seconds, err := strconv.Atoi(after); err == nil {
		return now.Add(time.Duration(seconds) * time.Second), true
	}
	if at, err := http.ParseTime(after); err == nil {
		return at, true
	}
	for _, name := range []string{"X-RateLimit-Reset", "RateLimit-Reset"} {
		if at, err := strconv.ParseInt(h.Get(name), 10, 64); err == nil {
			return time.Unix(at, 0), true
		}
	}
	return time.Time{}, false
}

// excessError is returned for a host that sends too much.
type excessError struct{ fact string }

func (e *excessError) Error() string { return e.fact }

// boundedTransport bounds the size of responses and their number.
type boundedTransport struct {
	next http.RoundTripper
	sent atomic.Int64
}

// RoundTrip implements http.RoundTripper.
func (t *boundedTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if t.sent.Add(1) > maxRequests {
		return nil, &excessError{fmt.Sprintf("has lists with more pages than %d requests return", maxRequests)}
	}
	response, err := t.next.RoundTrip(r)
	if err == nil {
		response.Body = budget.Body(response.Body, maxResponse, &excessError{fmt.Sprintf("sends a response of more than %d MiB", maxResponse>>20)})
	}
	return response, err
}

// explain returns an Error with a hint for a request without a usable response,
// nil for a request that the host rejected.
func (h Hosted) explain(ctx context.Context, doing string, err error) error {
	var known *hint.Error
	var limit *RateLimitError
	var excess *excessError
	var redirect *redirectError
	var lookup *net.DNSError
	var dial *net.OpError
	var unknown x509.UnknownAuthorityError
	var wrongName x509.HostnameError
	var record tls.RecordHeaderError
	var request *url.Error
	origin := h.origin()
	switch {
	case err == nil:
		return nil
	case errors.As(err, &known):
		return err
	case status(err) >= http.StatusInternalServerError:
		return h.unavailable(doing, err)
	case errors.As(err, &limit):
		return hint.Errorf("run the command again then; it resumes", "%s: %w", doing, limit)
	case ctx.Err() != nil:
		return hint.Errorf("check that the host is reachable, or increase --timeout", "%s: no response from %s: %w", doing, h.Hostname, context.Cause(ctx))
	case errors.As(err, &excess):
		return hint.Errorf("check "+origin+": the API of a Git host does not respond like this", "%s: %s %w", doing, h.Hostname, excess)
	case errors.As(err, &redirect):
		return hint.Errorf("set "+origin+" to the new address, or check the names of the owner and the repository: they may have been renamed", "%s: %w", doing, redirect)
	case errors.As(err, &lookup):
		return hint.Errorf("check "+origin, "%s: host %q is not known", doing, lookup.Name)
	case errors.As(err, &unknown):
		return hint.Errorf("set "+cmp.Or(h.CAOrigin, "--ca-file")+" to the CA certificate", "%s: the certificate of %s is signed by an unknown authority", doing, h.Hostname)
	case errors.As(err, &wrongName):
		return hint.Errorf("use a host name of the server's certificate in "+origin, "%s: %w", doing, wrongName)
	case errors.As(err, &record), errors.Is(err, http.ErrSchemeMismatch):
		return hint.Errorf("check the port in "+origin, "%s: %s does not speak TLS", doing, h.Hostname)
	case errors.As(err, &dial) && dial.Op == "dial":
		return hint.Errorf("check "+origin+", and that the host is reachable from this machine", "%s: cannot reach %s: %w", doing, h.Hostname, dial.Err)
	case errors.As(err, &request) && request.Timeout():
		return hint.Errorf("check that the host is reachable, and try again", "%s: %s does not respond", doing, h.Hostname)
	case errors.As(err, &request):
		return hint.Errorf("check "+origin+", and try again", "%s: %s", doing, redact.Text(request.Err.Error(), h.Token))
	}
	return nil
}
