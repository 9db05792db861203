package rest

import (
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fluxkit/flux/internal/githost"
	"github.com/fluxkit/flux/internal/hint"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// called is a client that does not wait in real time, and records waits.
type called struct {
	*http.Client
	ctx      context.Context // of requests
	hosted   githost.Hosted
	mu       sync.Mutex // requests are concurrent
	waits    []time.Duration
	messages []string
}

func call(t *testing.T, handler http.HandlerFunc) *called {
	t.Helper()
	server := httptest.NewTLSServer(handler)
	t.Cleanup(server.Close)
	u, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	c := &called{ctx: t.Context(), hosted: githost.Hosted{Hostname: u.Host, CABundle: ca, Token: "s3cret"}}
	caller := Caller{
		UserAgent: "flux/test", Now: func() time.Time { return noon },
		Waiting: func(format string, args ...any) {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.messages = append(c.messages, fmt.Sprintf(format, args...))
		},
		Sleep: func(_ context.Context, d time.Duration) error {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.waits = append(c.waits, d)
			return nil
		},
	}
	if c.Client, err = caller.Client(c.hosted); err != nil {
		t.Fatal(err)
	}
	return c
}

// send sends a request and returns the status and the body of the response.
func (c *called) send(t *testing.T, method, body string) (string, error) {
	t.Helper()
	r, err := http.NewRequestWithContext(c.ctx, method, "https://"+c.hosted.Hostname+"/api", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+c.hosted.Token)
	response, err := c.Do(r)
	if err != nil {
		return "", (&API{Hosted: c.hosted}).Explain(t.Context(), "asking", err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	return fmt.Sprintf("%d %s", response.StatusCode, text), err
}

// rejectFirst rejects the first requests and echoes the others.
func rejectFirst(times int, reject func(http.ResponseWriter)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if times--; times >= 0 {
			reject(w)
			return
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		_, _ = fmt.Fprintf(w, "%s %s %s", r.Method, body, r.Header.Get("User-Agent"))
	}
}

func limit(status int, headers ...string) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) {
		for i := 0; i < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(status)
	}
}

func TestRateLimit(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		method string
		times  int
		reject func(http.ResponseWriter)
		want   string
		waits  []time.Duration
		until  string
	}{
		"short, in seconds":    {"POST", 1, limit(429, "Retry-After", "7"), "200 POST body flux/test", []time.Duration{7 * time.Second}, ""},
		"short, as a time":     {"POST", 1, limit(429, "Retry-After", "Fri, 20 Nov 2026 12:00:09 GMT"), "200 POST body flux/test", []time.Duration{9 * time.Second}, ""},
		"short, GitHub's":      {"GET", 1, limit(403, "X-RateLimit-Remaining", "0", "X-RateLimit-Reset", fmt.Sprint(noon.Unix()+20)), "200 GET body flux/test", []time.Duration{20 * time.Second}, ""},
		"short, GitLab's":      {"GET", 1, limit(429, "RateLimit-Reset", fmt.Sprint(noon.Unix()+20)), "200 GET body flux/test", []time.Duration{20 * time.Second}, ""},
		"in the past":          {"GET", 1, limit(429, "RateLimit-Reset", fmt.Sprint(noon.Unix()-20)), "200 GET body flux/test", []time.Duration{time.Second}, ""},
		"secondary":            {"PUT", 1, limit(403, "Retry-After", "3"), "200 PUT body flux/test", []time.Duration{3 * time.Second}, ""},
		"repeated":             {"GET", 9, limit(429, "Retry-After", "7"), "", []time.Duration{7 * time.Second, 7 * time.Second}, "12:00:07"},
		"long":                 {"GET", 1, limit(429, "Retry-After", "1800"), "", nil, "12:30:00"},
		"long, GitHub's":       {"GET", 1, limit(403, "X-RateLimit-Remaining", "0", "X-RateLimit-Reset", fmt.Sprint(noon.Unix()+60)), "", nil, "12:01:00"},
		"without a time":       {"GET", 1, limit(429), "", nil, "12:01:00"},
		"other 403":            {"GET", 1, limit(403, "X-RateLimit-Remaining", "17"), "403 ", nil, ""},
		"unavailable, GET":     {"GET", 2, limit(502), "200 GET body flux/test", []time.Duration{time.Second, time.Second}, ""},
		"unavailable for long": {"GET", 9, limit(503), "503 ", []time.Duration{time.Second, time.Second}, ""},
		"unavailable, POST":    {"POST", 1, limit(502), "502 ", nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := call(t, rejectFirst(test.times, test.reject))
			got, err := c.send(t, test.method, "body")
			if diff := cmp.Diff(test.want, got) + cmp.Diff(test.waits, c.waits); diff != "" {
				t.Error(diff)
			}
			var limited *RateLimitError
			if errors.As(err, &limited) != (test.until != "") || limited != nil && limited.Until.Format(time.TimeOnly) != test.until {
				t.Errorf("the limit is %v", err)
			}
		})
	}
}

// TestRateLimitBeyondDeadline requires that a client does not wait longer than the deadline of the operation.
func TestRateLimitBeyondDeadline(t *testing.T) {
	t.Parallel()
	for _, wait := range []struct {
		deadline time.Duration
		waits    int
	}{{10 * time.Second, 0}, {time.Hour, 1}} {
		c := call(t, rejectFirst(1, limit(429, "Retry-After", "20")))
		ctx, cancel := context.WithTimeout(t.Context(), wait.deadline)
		defer cancel()
		c.ctx = ctx
		var limited *RateLimitError
		if _, err := c.send(t, "GET", ""); errors.As(err, &limited) != (wait.waits == 0) || len(c.waits) != wait.waits {
			t.Errorf("with a deadline in %s: %v, waits %v", wait.deadline, err, c.waits)
		}
	}
}

// TestRateLimitNotice requires a notice of a wait.
func TestRateLimitNotice(t *testing.T) {
	t.Parallel()
	c := call(t, rejectFirst(1, limit(429, "Retry-After", "20")))
	if _, err := c.send(t, "GET", ""); err != nil || cmp.Diff([]string{c.hosted.Hostname + " has rate-limited the token: waiting 20s"}, c.messages) != "" {
		t.Errorf("%v, messages %q", err, c.messages)
	}
}

// TestRedirects requires that credentials are not sent to another host, and that a
// write is not turned into a GET.
func TestRedirects(t *testing.T) {
	t.Parallel()
	other := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the other host got a request") }))
	defer other.Close()
	for name, test := range map[string]struct{ method, to, want, err string }{
		"other host":       {"GET", other.URL + "/api", "", "asking: the host redirects to another address, " + other.URL},
		"other host, POST": {"POST", other.URL + "/api", "", "asking: the host redirects to another address, " + other.URL},
		"without TLS":      {"GET", "http://HOST/api/new", "", "asking: the host redirects to another address, http://HOST"},
		"same host":        {"GET", "/api/new", "200 GET at the new path", ""},
		"same host, POST":  {"POST", "/api/new", "", "asking: the host redirects a POST request to https://HOST/api/new"},
		"loop":             {"GET", "/api", "", "asking: more than 10 redirects"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := call(t, func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/api/new" {
					_, _ = fmt.Fprint(w, r.Method+" at the new path")
					return
				}
				http.Redirect(w, r, strings.ReplaceAll(test.to, "HOST", r.Host), http.StatusFound)
			})
			got, err := c.send(t, test.method, "")
			message := ""
			if err != nil {
				message = strings.ReplaceAll(err.Error(), c.hosted.Hostname, "HOST")
			}
			if diff := cmp.Diff(test.want, got) + cmp.Diff(test.err, message); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestUnreachable requires a remedy and no token in the errors of connections.
func TestUnreachable(t *testing.T) {
	t.Parallel()
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	closing := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	closing.StartTLS()
	defer closing.Close()
	trusted := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: closing.Certificate().Raw})
	for name, test := range map[string]struct {
		hosted      githost.Hosted
		want, hint  string
		interrupted bool
	}{
		"no server":         {githost.Hosted{Hostname: "127.0.0.1:1"}, "asking: cannot reach HOST: connect: connection refused", "check --hostname, and that the host is reachable from this machine", false},
		"no TLS":            {githost.Hosted{Hostname: strings.TrimPrefix(plain.URL, "http://")}, "asking: HOST does not serve TLS", "check the port in --hostname", false},
		"not trusted":       {githost.Hosted{Hostname: strings.TrimPrefix(closing.URL, "https://")}, "asking: the certificate of HOST is signed by an unknown authority", "set --ca-file to the CA certificate", false},
		"closed connection": {githost.Hosted{Hostname: strings.TrimPrefix(closing.URL, "https://"), CABundle: trusted}, "asking: EOF", "check --hostname, and try again", false},
		"timeout":           {githost.Hosted{Hostname: strings.TrimPrefix(closing.URL, "https://"), CABundle: trusted}, "asking: no response from HOST: timeout", "check that the host is reachable, or increase --timeout", true},
	} {
		t.Run(name, func(t *testing.T) {
			client, err := Caller{Now: time.Now}.Client(test.hosted)
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			if test.interrupted {
				cancel(errors.New("timeout"))
			}
			r, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+test.hosted.Hostname+"/", strings.NewReader("x"))
			if err != nil {
				t.Fatal(err)
			}
			response, err := client.Do(r)
			if err == nil {
				_ = response.Body.Close()
				t.Fatal("it got a response")
			}
			var known *hint.Error
			if !errors.As((&API{Hosted: test.hosted}).Explain(ctx, "asking", err), &known) {
				t.Fatalf("no remedy for %v", err)
			}
			if diff := cmp.Diff(test.want, strings.ReplaceAll(known.Error(), test.hosted.Hostname, "HOST")) + cmp.Diff(test.hint, known.Hint); diff != "" {
				t.Error(diff)
			}
		})
	}
	if _, err := (Caller{}).Client(githost.Hosted{CABundle: []byte("nothing")}); err == nil {
		t.Error("a bundle without a certificate was accepted")
	}
}
