package clierr_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/clierr"
	"github.com/fluxkit/flux/test/support/testlimit"
)

// raw is a server that answers each connection with a text, or not at all.
func raw(t *testing.T, answer string) string {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			if answer != "" {
				_, _ = c.Read(make([]byte, 1))
				_, _ = c.Write([]byte(answer))
				_ = c.Close()
			}
			t.Cleanup(func() { _ = c.Close() })
		}
	}()
	return l.Addr().String()
}

// TestExplainServer requests an API path from servers that are none.
func TestExplainServer(t *testing.T) {
	t.Parallel()
	plain := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(plain.Close)
	secure := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(secure.Close)
	for name, test := range map[string]struct{ address, message, remedy string }{
		"no response":       {"http://" + raw(t, ""), "did not respond: timed out after 1s", "increase --timeout"},
		"no TLS, but HTTP":  {"https://" + strings.TrimPrefix(plain.URL, "http://"), "does not serve TLS", "points to a Kubernetes API server"},
		"no TLS, but SSH":   {"https://" + raw(t, "SSH-2.0-OpenSSH_9\r\n"), "does not serve TLS", "points to a Kubernetes API server"},
		"no HTTP":           {"http://" + raw(t, "SSH-2.0-OpenSSH_9\r\n\r\n"), "did not return an HTTP response", "points to a Kubernetes API server"},
		"unknown authority": {secure.URL, "cannot verify the certificate of the Kubernetes API at", "certificate-authority-data"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			timeout := testlimit.Wait
			if name == "no response" {
				timeout = time.Second
			}
			ctx, cancel := context.WithTimeoutCause(t.Context(), timeout, &clierr.TimeoutError{After: timeout})
			defer cancel()
			request, err := http.NewRequestWithContext(ctx, http.MethodGet, test.address+"/apis/kustomize.toolkit.fluxcd.io/v1", http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			response, err := http.DefaultClient.Do(request)
			if err == nil {
				_ = response.Body.Close()
				t.Fatal("the request succeeded")
			}
			if cause := context.Cause(ctx); cause != nil && errors.Is(err, context.DeadlineExceeded) {
				err = &timedOut{err, cause}
			}
			message, remedy := clierr.Explain(err, nil)
			if !strings.HasSuffix(message, test.message) && !strings.HasPrefix(message, test.message) || !strings.HasSuffix(remedy, test.remedy) && !strings.Contains(remedy, test.remedy) {
				t.Errorf("%q, %q", message, remedy)
			}
			if !clierr.Unreachable(err) {
				t.Errorf("another request would not fail: %v", err)
			}
		})
	}
	foreign := &http.Client{}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+strings.TrimPrefix(plain.URL, "http://")+"/v2/", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := foreign.Do(request)
	if err == nil {
		_ = response.Body.Close()
		t.Fatal("the request succeeded")
	}
	if message, _ := clierr.Explain(err, nil); strings.Contains(message, "Kubernetes") {
		t.Errorf("a registry is taken for the API server: %s", message)
	}
}

// timedOut is an error with the cause of its context, as in transports that return it.
type timedOut struct{ err, cause error }

func (e *timedOut) Error() string   { return e.err.Error() }
func (e *timedOut) Unwrap() []error { return []error{e.err, e.cause} }
