package web_test

import (
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fluxkit/flux/internal/web"
)

// client returns a client that trusts a server.
func client(t *testing.T, server *httptest.Server, c web.Client) *http.Client {
	t.Helper()
	if server.TLS != nil {
		c.Server.CA = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	}
	h, err := c.HTTP()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.CloseIdleConnections)
	return h
}

// send sends a request with credentials, and returns the status and the body of the response.
func send(t *testing.T, c *http.Client, method, address, body string) (string, error) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, address, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.SetBasicAuth("me", "hunter2")
	response, err := c.Do(r)
	if err != nil {
		return "", web.WithoutURL(err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	return fmt.Sprintf("%d %s", response.StatusCode, text), err
}

func serve(t *testing.T, handler http.HandlerFunc) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server
}

// TestRedirects checks that credentials are sent to the server of the first request only: the other one has the same
// host name, which net/http takes for the same server.
func TestRedirects(t *testing.T) {
	t.Parallel()
	other := serve(t, func(w http.ResponseWriter, r *http.Request) {
		user, _, _ := r.BasicAuth()
		_, _ = fmt.Fprintf(w, "other %s %s", user, r.Referer())
	})
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/here":
			http.Redirect(w, r, "/end", http.StatusFound)
		case "/loop":
			http.Redirect(w, r, "/loop", http.StatusFound)
		case "/other":
			http.Redirect(w, r, other.URL+"/", http.StatusFound)
		case "/kept":
			http.Redirect(w, r, other.URL+"/", http.StatusTemporaryRedirect)
		default:
			user, _, _ := r.BasicAuth()
			_, _ = fmt.Fprintf(w, "%s %s", r.Method, user)
		}
	})
	const loop = "more than 10 redirects"
	elsewhere := "the host redirects to another address, " + other.URL
	for name, c := range map[string]struct {
		policy func(*http.Request, []*http.Request) error
		want   map[string]string
	}{
		"same server": {web.SameServer, map[string]string{
			"GET /here": "200 GET me", "GET /loop": loop, "GET /other": elsewhere, "PUT /kept": elsewhere,
			"POST /here": "the host redirects a POST request to " + server.URL + "/end",
		}},
		"other servers": {web.OtherServers, map[string]string{
			"GET /here": "200 GET me", "GET /loop": loop, "GET /other?sig=x": "200 other  ", "PUT /kept": "200 other  ", "POST /here": "200 GET me",
		}},
		"encrypted": {web.Encrypted, map[string]string{"GET /here": "200 GET me", "GET /loop": loop, "GET /other?sig=x": "200 other  "}},
		"none":      {web.NoRedirects, map[string]string{"GET /other": "302 <a href=\"" + other.URL + "/\">Found</a>.\n\n", "PUT /kept": "307 "}},
	} {
		for request, want := range c.want {
			method, path, _ := strings.Cut(request, " ")
			got, err := send(t, client(t, server, web.Client{Redirects: c.policy}), method, server.URL+path, "")
			if err != nil {
				got = err.Error()
			}
			if got != want {
				t.Errorf("%s, %s: %q, want %q", name, request, got, want)
			}
		}
	}
}

// TestNoDowngrade checks that a redirect never turns off encryption.
func TestNoDowngrade(t *testing.T) {
	t.Parallel()
	plain := serve(t, func(http.ResponseWriter, *http.Request) { t.Error("the redirect was followed") })
	server := httptest.NewTLSServer(http.RedirectHandler(plain.URL, http.StatusFound))
	t.Cleanup(server.Close)
	for _, policy := range []func(*http.Request, []*http.Request) error{web.Encrypted, web.SameServer} {
		if _, err := send(t, client(t, server, web.Client{Redirects: policy}), http.MethodGet, server.URL, ""); err == nil {
			t.Error("no error")
		}
	}
}

func TestLimits(t *testing.T) {
	t.Parallel()
	tooLarge, tooMany := errors.New("too large"), errors.New("too many")
	server := serve(t, func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) })
	for name, c := range map[string]struct {
		limits web.Limits
		sizes  []int
		want   []error
	}{
		"none":         {web.Limits{}, []int{1 << 20}, []error{nil}},
		"one response": {web.Limits{Response: 10, TooLarge: tooLarge}, []int{10, 11, 10}, []error{nil, tooLarge, nil}},
		"all":          {web.Limits{Total: 20, TooLarge: tooLarge}, []int{10, 10, 1}, []error{nil, nil, tooLarge}},
		"requests":     {web.Limits{Requests: 2, TooMany: tooMany}, []int{1, 1, 1}, []error{nil, nil, tooMany}},
	} {
		h := client(t, server, web.Client{Limits: c.limits})
		for i, size := range c.sizes {
			if _, err := send(t, h, http.MethodPost, server.URL, strings.Repeat("x", size)); !errors.Is(err, c.want[i]) {
				t.Errorf("%s, request %d: %v", name, i, err)
			}
		}
	}
}

// recorder records the pauses and notices of a Retry.
type recorder struct {
	mu     sync.Mutex
	events []string
}

func (r *recorder) add(event string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, event)
}

// retry repeats requests twice while they fail.
func (r *recorder) retry(pause time.Duration, end error) web.Retry {
	return web.Retry{
		Notify: r.add,
		Sleep:  func(_ context.Context, d time.Duration) error { r.add(d.String()); return nil },
		Plan: func(*http.Request) web.Decide {
			n := 0
			return func(response *http.Response, err error) web.Step {
				if err == nil && response.StatusCode < http.StatusInternalServerError {
					return web.Step{}
				}
				n++
				return web.Step{Again: n <= 2, Pause: pause, Err: end, Cause: "status", Notice: "failed"}
			}
		},
	}
}

func TestRetry(t *testing.T) {
	t.Parallel()
	final := errors.New("final")
	for name, c := range map[string]struct {
		failures int
		pause    time.Duration
		end      error
		body     io.Reader
		want     string
		events   []string
	}{
		"success":                 {0, time.Second, nil, nil, "200 PUT body test", nil},
		"one failure":             {1, time.Second, nil, nil, "200 PUT body test", []string{"failed", "1s"}},
		"two failures":            {2, time.Second, final, nil, "200 PUT body test", []string{"failed", "1s", "1s"}},
		"three":                   {3, time.Second, nil, nil, "503 ", []string{"failed", "1s", "1s"}},
		"three, another error":    {3, time.Second, final, nil, "final", []string{"failed", "1s", "1s"}},
		"body that is read once":  {1, time.Second, nil, struct{ io.Reader }{strings.NewReader("body")}, "503 ", nil},
		"longer than the context": {1, time.Hour, final, nil, "final", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			left := c.failures
			server := serve(t, func(w http.ResponseWriter, r *http.Request) {
				text, _ := io.ReadAll(r.Body) // the comparison shows a part of it
				if left--; left >= 0 {
					w.WriteHeader(http.StatusServiceUnavailable)
					return
				}
				_, _ = fmt.Fprintf(w, "%s %s %s", r.Method, text, r.UserAgent())
			})
			var seen recorder
			h := client(t, server, web.Client{UserAgent: "test", Retry: seen.retry(c.pause, c.end)})
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			body := c.body
			if body == nil {
				body = strings.NewReader("body")
			}
			r, err := http.NewRequestWithContext(ctx, http.MethodPut, server.URL, body)
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			response, err := h.Do(r)
			if err != nil {
				got = web.WithoutURL(err).Error()
			} else {
				text, _ := io.ReadAll(response.Body) // compared
				got = fmt.Sprintf("%d %s", response.StatusCode, text)
				_ = response.Body.Close()
			}
			if diff := cmp.Diff(c.want, got) + cmp.Diff(c.events, seen.events); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestCausesAreReportedOnce checks that a cause is reported again only after the requests that failed with it succeeded.
func TestCausesAreReportedOnce(t *testing.T) {
	t.Parallel()
	failing := map[string]int{}
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if failing[r.URL.Path]--; failing[r.URL.Path] >= 0 {
			w.WriteHeader(http.StatusBadGateway)
		}
	})
	var seen recorder
	h := client(t, server, web.Client{Retry: seen.retry(time.Second, nil)})
	for _, step := range []struct {
		path     string
		failures int
		want     []string
	}{
		{"/a", 3, []string{"failed", "1s", "1s"}}, // it fails in the end
		{"/b", 1, []string{"1s"}},
		{"/a", 1, []string{"1s"}},
		{"/a", 1, []string{"failed", "1s"}}, // both succeeded before
	} {
		failing[step.path], seen.events = step.failures, nil
		if _, err := send(t, h, http.MethodGet, server.URL+step.path, ""); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(step.want, seen.events); diff != "" {
			t.Errorf("%s: %s", step.path, diff)
		}
	}
}

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	noon := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	for value, want := range map[string]time.Duration{"7": 7 * time.Second, "0": 0, "99999999999": 24 * time.Hour, "Fri, 20 Nov 2026 12:00:09 GMT": 9 * time.Second} {
		h := http.Header{"Retry-After": {value}}
		if end, ok := web.RetryAt(h, noon); !ok || end.Sub(noon) != want {
			t.Errorf("%s: %s, %t", value, end, ok)
		}
		if pause, ok := web.RetryAfter(h); ok != !strings.Contains(value, "GMT") || ok && pause != want {
			t.Errorf("%s: %s, %t", value, pause, ok)
		}
	}
	for _, value := range []string{"", "-1", "soon"} {
		if end, ok := web.RetryAt(http.Header{"Retry-After": {value}}, noon); ok {
			t.Errorf("%q: %s", value, end)
		}
	}
}

// TestCertificates checks that certificates are verified, and that a server with its own CA trusts no other.
func TestCertificates(t *testing.T) {
	t.Parallel()
	server := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(server.Close)
	h, err := web.Client{}.HTTP()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := send(t, h, http.MethodGet, server.URL, ""); err == nil || !strings.Contains(err.Error(), "unknown authority") {
		t.Errorf("without its CA: %v", err)
	}
	for want, s := range map[string]web.Server{
		"the CA certificate of the bucket contains no PEM certificate":                                         {Name: "the bucket", CA: []byte("x")},
		"reading the client certificate for the bucket: tls: failed to find any PEM data in certificate input": {Name: "the bucket", Cert: []byte("x"), Key: []byte("y")},
	} {
		if _, err := s.Transport(); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
