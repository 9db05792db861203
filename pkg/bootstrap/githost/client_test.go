package githost

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
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// called is a caller whose waits take no time, and what was waited.
type called struct {
	*http.Client
	hosted Hosted
	waits  []time.Duration
	told   []string
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
	c := &called{hosted: Hosted{Hostname: u.Host, CABundle: ca, Token: "s3cret"}}
	caller := Caller{
		UserAgent: "flux/test", Now: func() time.Time { return noon },
		Waiting: func(format string, args ...any) { c.told = append(c.told, fmt.Sprintf(format, args...)) },
		sleep: func(_ context.Context, d time.Duration) error {
			c.waits = append(c.waits, d)
			return nil
		},
	}
	if c.Client, err = caller.Client(c.hosted); err != nil {
		t.Fatal(err)
	}
	return c
}

// send sends a request and returns what came back, in words.
func (c *called) send(t *testing.T, method, body string) (string, error) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, "https://"+c.hosted.Hostname+"/api", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+c.hosted.Token)
	answer, err := c.Do(r)
	if err != nil {
		return "", c.hosted.explain(t.Context(), "asking", err)
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	return fmt.Sprintf("%d %s", answer.StatusCode, text), err
}

// refuse answers so many requests as told and echoes the rest.
func refuse(times int, no func(http.ResponseWriter)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if times--; times >= 0 {
			no(w)
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
		no     func(http.ResponseWriter)
		want   string
		waits  []time.Duration
		until  string
	}{
		"short, in seconds":      {"POST", 1, limit(429, "Retry-After", "7"), "200 POST body flux/test", []time.Duration{7 * time.Second}, ""},
		"short, as a time":       {"POST", 1, limit(429, "Retry-After", "Fri, 20 Nov 2026 12:00:09 GMT"), "200 POST body flux/test", []time.Duration{9 * time.Second}, ""},
		"short, GitHub's":        {"GET", 1, limit(403, "X-RateLimit-Remaining", "0", "X-RateLimit-Reset", fmt.Sprint(noon.Unix()+20)), "200 GET body flux/test", []time.Duration{20 * time.Second}, ""},
		"short, GitLab's":        {"GET", 1, limit(429, "RateLimit-Reset", fmt.Sprint(noon.Unix()+20)), "200 GET body flux/test", []time.Duration{20 * time.Second}, ""},
		"over already":           {"GET", 1, limit(429, "RateLimit-Reset", fmt.Sprint(noon.Unix()-20)), "200 GET body flux/test", []time.Duration{time.Second}, ""},
		"secondary":              {"PUT", 1, limit(403, "Retry-After", "3"), "200 PUT body flux/test", []time.Duration{3 * time.Second}, ""},
		"again and again":        {"GET", 9, limit(429, "Retry-After", "7"), "", []time.Duration{7 * time.Second, 7 * time.Second}, "12:00:07"},
		"long":                   {"GET", 1, limit(429, "Retry-After", "1800"), "", nil, "12:30:00"},
		"long, GitHub's":         {"GET", 1, limit(403, "X-RateLimit-Remaining", "0", "X-RateLimit-Reset", fmt.Sprint(noon.Unix()+60)), "", nil, "12:01:00"},
		"without a time":         {"GET", 1, limit(429), "", nil, "12:01:00"},
		"a refusal":              {"GET", 1, limit(403, "X-RateLimit-Remaining", "17"), "403 ", nil, ""},
		"out of order, reading":  {"GET", 2, limit(502), "200 GET body flux/test", []time.Duration{time.Second, time.Second}, ""},
		"out of order, for long": {"GET", 9, limit(503), "503 ", []time.Duration{time.Second, time.Second}, ""},
		"out of order, writing":  {"POST", 1, limit(502), "502 ", nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := call(t, refuse(test.times, test.no))
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

// A limit beyond the end of the operation is not waited for.
func TestRateLimitBeyondDeadline(t *testing.T) {
	t.Parallel()
	c := call(t, refuse(1, limit(429, "Retry-After", "20")))
	ctx, cancel := context.WithDeadline(t.Context(), time.Now().Add(time.Hour))
	defer cancel()
	if !exceedsDeadline(ctx, time.Now(), time.Now().Add(2*time.Hour)) || exceedsDeadline(ctx, time.Now(), time.Now()) || exceedsDeadline(t.Context(), noon, noon) {
		t.Error("the deadline is ignored")
	}
	if _, err := c.send(t, "GET", ""); err != nil || cmp.Diff([]string{c.hosted.Hostname + " has rate-limited the token: waiting 20s"}, c.told) != "" {
		t.Errorf("%v, told %q", err, c.told)
	}
}

// Credentials go to no other host, and a change is not turned into a read.
func TestRedirects(t *testing.T) {
	t.Parallel()
	stranger := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the other host was asked") }))
	defer stranger.Close()
	for name, test := range map[string]struct{ method, to, want, err string }{
		"elsewhere":         {"GET", stranger.URL + "/api", "", "asking: the host redirects to another address, " + stranger.URL},
		"elsewhere, change": {"POST", stranger.URL + "/api", "", "asking: the host redirects to another address, " + stranger.URL},
		"in the open":       {"GET", "http://HOST/api/new", "", "asking: the host redirects to another address, http://HOST"},
		"here":              {"GET", "/api/new", "200 GET at the new place", ""},
		"here, change":      {"POST", "/api/new", "", "asking: the host redirects a POST request to https://HOST/api/new"},
		"in a circle":       {"GET", "/api", "", "asking: too many redirects"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := call(t, func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/api/new" {
					_, _ = fmt.Fprint(w, r.Method+" at the new place")
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

// Whatever goes wrong on the way says how to go on and shows no token.
func TestUnreachable(t *testing.T) {
	t.Parallel()
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	quiet := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	quiet.StartTLS()
	defer quiet.Close()
	trusted := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: quiet.Certificate().Raw})
	for name, test := range map[string]struct {
		hosted      Hosted
		want, hint  string
		interrupted bool
	}{
		"nobody there": {Hosted{Hostname: "127.0.0.1:1"}, "asking: cannot reach HOST: connect: connection refused", "check --hostname, and that the host is reachable from this machine", false},
		"no TLS":       {Hosted{Hostname: strings.TrimPrefix(plain.URL, "http://")}, "asking: HOST does not speak TLS", "check the port in --hostname", false},
		"not trusted":  {Hosted{Hostname: strings.TrimPrefix(quiet.URL, "https://")}, "asking: the certificate of HOST is signed by an unknown authority", "set --ca-file to the CA certificate", false},
		"hangs up":     {Hosted{Hostname: strings.TrimPrefix(quiet.URL, "https://"), CABundle: trusted}, "asking: EOF", "check --hostname, and try again", false},
		"out of time":  {Hosted{Hostname: strings.TrimPrefix(quiet.URL, "https://"), CABundle: trusted}, "asking: no response from HOST: it took too long", "check that the host is reachable, or increase --timeout", true},
	} {
		t.Run(name, func(t *testing.T) {
			client, err := Caller{Now: time.Now}.Client(test.hosted)
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			if test.interrupted {
				cancel(errors.New("it took too long"))
			}
			r, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+test.hosted.Hostname+"/", strings.NewReader("x"))
			if err != nil {
				t.Fatal(err)
			}
			answer, err := client.Do(r)
			if err == nil {
				_ = answer.Body.Close()
				t.Fatal("it was answered")
			}
			var known *Error
			if !errors.As(test.hosted.explain(ctx, "asking", err), &known) {
				t.Fatalf("no way out of %v", err)
			}
			if diff := cmp.Diff(test.want, strings.ReplaceAll(known.Error(), test.hosted.Hostname, "HOST")) + cmp.Diff(test.hint, known.Hint); diff != "" {
				t.Error(diff)
			}
		})
	}
	if _, err := (Caller{}).Client(Hosted{CABundle: []byte("nothing")}); err == nil {
		t.Error("a bundle without a certificate was taken")
	}
}
