package githost

import (
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
	"time"

	"github.com/fluxkit/flux/internal/redact"
)

const (
	// connectTimeout bounds how long a host that does not answer is tried.
	connectTimeout = 10 * time.Second
	// answerTimeout bounds how long a host may take to begin its answer.
	answerTimeout = 30 * time.Second
	// requestTimeout bounds a request with everything: redirects, waits, the body.
	requestTimeout = 2 * time.Minute
	// patience is how long a rate limit is waited for; a longer one is reported.
	patience = 30 * time.Second
	// attempts is how often a request that changes nothing is sent to a host
	// that is out of order for the moment.
	attempts = 3
	// breather is what lies between two attempts.
	breather = time.Second
	// mostRedirects bounds how far a host may send a request around.
	mostRedirects = 5
)

// Caller is who talks to the APIs of hosts.
type Caller struct {
	// UserAgent names the program.
	UserAgent string
	// Now is the clock.
	Now func() time.Time
	// Waiting is told what is waited for.
	Waiting func(format string, args ...any)

	// sleep returns when a time is over or ctx is; nil for the real time.
	sleep func(ctx context.Context, d time.Duration) error
}

// Client returns what talks to the API of a host: it trusts the host's
// certificate authority, follows no redirect to another host, which would see
// the credentials, waits for rate limits that end soon and reports others as a
// [RateLimitError]. Every request has a bound. It adds no credentials.
func (c Caller) Client(h Hosted) (*http.Client, error) {
	roots, err := x509.SystemCertPool()
	if err != nil {
		roots = x509.NewCertPool()
	}
	if len(h.CABundle) > 0 && !roots.AppendCertsFromPEM(h.CABundle) {
		return nil, failure("give it in PEM form", "there is no certificate in the bundle for %s", h.Hostname)
	}
	if c.sleep == nil {
		c.sleep = sleep
	}
	transport := &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: connectTimeout}).DialContext,
		TLSClientConfig:       &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout:   connectTimeout,
		ResponseHeaderTimeout: answerTimeout,
		ForceAttemptHTTP2:     true,
		MaxIdleConns:          4,
		IdleConnTimeout:       time.Minute,
	}
	return &http.Client{
		Transport: &courteous{caller: c, host: h.Hostname, next: transport}, CheckRedirect: sameHost, Timeout: requestTimeout,
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

// redirectError is a redirect that is not followed.
type redirectError struct {
	to     string
	method string // where the redirect would have changed it
}

func (e *redirectError) Error() string {
	if e.method != "" {
		return fmt.Sprintf("the host sends a %s request on to %s", e.method, e.to)
	}
	return "the host sends the request on to another address, " + e.to
}

// sameHost follows redirects within a host. A request that changes something
// is not followed: the second one would be a GET that changes nothing.
func sameHost(next *http.Request, via []*http.Request) error {
	first, to := via[0], next.URL.Scheme+"://"+next.URL.Host
	switch {
	case next.URL.Host != first.URL.Host || next.URL.Scheme != first.URL.Scheme:
		return &redirectError{to: to}
	case next.Method != first.Method:
		return &redirectError{to: to + next.URL.Path, method: first.Method}
	case len(via) >= mostRedirects:
		return errors.New("the host sends the request around in a circle")
	}
	return nil
}

// RateLimitError says that a host takes no more requests for a while.
type RateLimitError struct {
	// Host is the host.
	Host string
	// Until is when it takes requests again.
	Until time.Time
	// wait is how long that is.
	wait time.Duration
}

func (e *RateLimitError) Error() string {
	return fmt.Sprintf("%s takes no more requests with this token until %s: its rate limit is used up", e.Host, e.Until.UTC().Format(time.RFC3339))
}

// courteous keeps to a host's rate limits and does not take one refusal to
// serve for the last word.
type courteous struct {
	caller Caller
	host   string
	next   http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (t *courteous) RoundTrip(r *http.Request) (*http.Response, error) {
	for attempt := 1; ; attempt++ {
		sent, err := t.prepared(r)
		if err != nil {
			return nil, err
		}
		answer, err := t.next.RoundTrip(sent)
		if err != nil {
			return nil, err
		}
		limit, last := t.limited(answer), attempt == attempts || r.Body != nil && r.GetBody == nil
		down := r.Method == http.MethodGet && (answer.StatusCode == http.StatusBadGateway || answer.StatusCode == http.StatusServiceUnavailable || answer.StatusCode == http.StatusGatewayTimeout)
		if limit == nil && !down || limit == nil && last {
			return answer, nil
		}
		drain(answer)
		wait := breather
		if limit != nil {
			if wait = limit.wait; wait > patience || last || outOfTime(r.Context(), t.caller.Now(), limit.Until) {
				return nil, limit
			}
			t.caller.Waiting("%s takes no more requests for %s: waiting", t.host, wait.Round(time.Second))
		}
		if err := t.caller.sleep(r.Context(), wait); err != nil {
			return nil, err
		}
	}
}

// prepared returns the request as it is sent once, with its body from the start.
func (t *courteous) prepared(r *http.Request) (*http.Request, error) {
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

// drain reads an answer that nobody wants, so that its connection is used again.
func drain(answer *http.Response) {
	_, _ = io.CopyN(io.Discard, answer.Body, 64<<10)
	_ = answer.Body.Close()
}

func outOfTime(ctx context.Context, now, until time.Time) bool {
	deadline, bounded := ctx.Deadline()
	return bounded && deadline.Before(until) && deadline.After(now)
}

// limited returns the rate limit that an answer reports, nil for none. Hosts
// answer with 429, GitHub with 403 too.
func (t *courteous) limited(answer *http.Response) *RateLimitError {
	h := answer.Header
	used := h.Get("X-RateLimit-Remaining") == "0" || h.Get("RateLimit-Remaining") == "0"
	refused := answer.StatusCode == http.StatusForbidden && (used || h.Get("Retry-After") != "")
	if answer.StatusCode != http.StatusTooManyRequests && !refused {
		return nil
	}
	now := t.caller.Now()
	until := now.Add(time.Minute) // what hosts ask for where they name no time
	if at, ok := headerTime(h, now); ok {
		until = at
	}
	return &RateLimitError{Host: t.host, Until: until, wait: max(until.Sub(now), breather)}
}

// headerTime reads when a rate limit ends.
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

// explain gives a request that got no answer, or none that counts, the way
// out; nil where the error is of another kind.
func (h Hosted) explain(ctx context.Context, doing string, err error) error {
	var known *Error
	var limit *RateLimitError
	var redirect *redirectError
	var lookup *net.DNSError
	var dial *net.OpError
	var unknown x509.UnknownAuthorityError
	var wrongName x509.HostnameError
	var record tls.RecordHeaderError
	var request *url.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &known):
		return err
	case errors.As(err, &limit):
		return failure("run the command again then: it goes on where it stopped", "%s: %w", doing, limit)
	case ctx.Err() != nil:
		return failure("check that the host can be reached, or give it more time with --timeout", "%s: no answer from %s: %w", doing, h.Hostname, context.Cause(ctx))
	case errors.As(err, &redirect):
		return failure("give the address it is sent on to with --hostname, or check --owner and --repository: it may have been renamed", "%s: %w", doing, redirect)
	case errors.As(err, &lookup):
		return failure("check --hostname", "%s: host %q is not known", doing, lookup.Name)
	case errors.As(err, &unknown):
		return failure("set --ca-file to the CA certificate", "%s: the certificate of %s is signed by an unknown authority", doing, h.Hostname)
	case errors.As(err, &wrongName):
		return failure("use the name that stands in the host's certificate", "%s: %w", doing, wrongName)
	case errors.As(err, &record), errors.Is(err, http.ErrSchemeMismatch):
		return failure("check the port in --hostname", "%s: %s does not speak TLS", doing, h.Hostname)
	case errors.As(err, &dial) && dial.Op == "dial":
		return failure("check --hostname and that the host can be reached from here", "%s: cannot reach %s: %w", doing, h.Hostname, dial.Err)
	case errors.As(err, &request) && request.Timeout():
		return failure("check that the host can be reached, and try again", "%s: %s does not answer", doing, h.Hostname)
	case errors.As(err, &request):
		return failure("check --hostname, and try again", "%s: %s", doing, redact.Text(request.Err.Error(), h.Token))
	}
	return nil
}
