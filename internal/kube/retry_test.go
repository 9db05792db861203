package kube_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/controllers"
)

// faulty is an in-process server that fails some requests and responds to the others. Time is that
// of a synctest bubble.
type faulty struct {
	// fault returns a response or an error for the nth request, or nothing for success.
	fault func(n int, r *http.Request) (*http.Response, error)

	mu       sync.Mutex
	requests []string
	notices  []string
}

func (f *faulty) RoundTrip(r *http.Request) (*http.Response, error) {
	body := ""
	if r.Body != nil {
		read, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		body = " " + string(read)
	}
	f.mu.Lock()
	f.requests = append(f.requests, r.Method+" "+r.URL.Path+body)
	n := len(f.requests)
	f.mu.Unlock()
	if response, err := f.fault(n, r); response != nil || err != nil {
		return response, err
	}
	return respond(http.StatusOK, `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","resourceVersion":"1"},"items":[],"status":{"allowed":true}}`), nil
}

func (f *faulty) Notice(text string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.notices = append(f.notices, text)
}

func (f *faulty) HandleWarningHeader(int, string, string) {}

func (f *faulty) client(t *testing.T) *kube.Client {
	t.Helper()
	client, err := kube.New(&rest.Config{Host: "http://cluster", Transport: f, WarningHandler: f})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func respond(code int, body string, headers ...string) *http.Response {
	r := &http.Response{StatusCode: code, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body))}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	return r
}

func refuse(code int, reason metav1.StatusReason, message string, headers ...string) *http.Response {
	return respond(code, fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","status":"Failure","code":%d,"reason":%q,"message":%q}`, code, reason, message), headers...)
}

// passing are temporary faults.
var passing = map[string]func() (*http.Response, error){
	"429":   func() (*http.Response, error) { return refuse(429, "TooManyRequests", "later"), nil },
	"500":   func() (*http.Response, error) { return refuse(500, "InternalError", "etcdserver: leader changed"), nil },
	"502":   func() (*http.Response, error) { return respond(502, "<html>Bad Gateway</html>"), nil },
	"503":   func() (*http.Response, error) { return refuse(503, "ServiceUnavailable", "starting"), nil },
	"504":   func() (*http.Response, error) { return refuse(504, "Timeout", "too long"), nil },
	"reset": func() (*http.Response, error) { return nil, &net.OpError{Op: "read", Err: syscall.ECONNRESET} },
	"end":   func() (*http.Response, error) { return nil, io.EOF },
}

func aPod() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"namespace": "x", "name": "a"}}}
}

// asked are requests of each sort, and whether they may be sent once more.
var asked = map[string]struct {
	repeated bool
	do       func(context.Context, *kube.Client) error
}{
	"list": {true, func(ctx context.Context, c *kube.Client) error {
		_, err := c.List(ctx, podResource(), kube.Selection{}, func(controllers.Object) error { return nil })
		return err
	}},
	"get": {true, func(ctx context.Context, c *kube.Client) error {
		_, err := c.Get(ctx, podResource(), "x", "a")
		return err
	}},
	"reconcile request": {true, func(ctx context.Context, c *kube.Client) error {
		_, err := c.Annotate(ctx, podResource(), "x", "a", map[string]any{"reconcile.fluxcd.io/requestedAt": "now"})
		return err
	}},
	"apply": {true, func(ctx context.Context, c *kube.Client) error {
		return kube.Apply(ctx, c, []*unstructured.Unstructured{aPod()})
	}},
	"access review": {true, func(ctx context.Context, c *kube.Client) error {
		_, err := c.Access().May(ctx, kube.Permission{})
		return err
	}},
	"dry run of a creation": {true, func(ctx context.Context, c *kube.Client) error {
		return create(ctx, c, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	}},
	"creation": {false, func(ctx context.Context, c *kube.Client) error { return create(ctx, c, metav1.CreateOptions{}) }},
	"deletion": {false, func(ctx context.Context, c *kube.Client) error {
		_, err := c.Delete(ctx, podResource(), "x", "a")
		return err
	}},
}

func create(ctx context.Context, c *kube.Client, options metav1.CreateOptions) error {
	dynamicClient, err := dynamic.NewForConfig(c.Config)
	if err != nil {
		return err
	}
	_, err = dynamicClient.Resource(podResource().GroupVersionResource).Namespace("x").Create(ctx, aPod(), options)
	return err
}

// TestRetryOnce checks that a fault of the first request delays idempotent requests and is
// reported once, and that other requests are retried only after a 429.
func TestRetryOnce(t *testing.T) {
	t.Parallel()
	for what, fault := range passing {
		for which, request := range asked {
			t.Run(what+" "+which, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					f := &faulty{fault: func(n int, _ *http.Request) (*http.Response, error) {
						if n == 1 {
							return fault()
						}
						return nil, nil
					}}
					err := request.do(t.Context(), f.client(t))
					if !request.repeated && what != "429" {
						if err == nil || len(f.requests) != 1 || len(f.notices) != 0 {
							t.Errorf("%v after %q, notices %q", err, f.requests, f.notices)
						}
						return
					}
					if err != nil || len(f.requests) != 2 || f.requests[0] != f.requests[1] || len(f.notices) != 1 {
						t.Errorf("%v after %q, notices %q", err, f.requests, f.notices)
					}
				})
			})
		}
	}
}

// TestRetryNotice checks that the notice has the cause, the request and the message of the server.
func TestRetryNotice(t *testing.T) {
	t.Parallel()
	for what, want := range map[string]string{
		"500":   "retrying after 500 Internal Server Error from the API server (GET /api/v1/namespaces/x/pods/a): etcdserver: leader changed",
		"502":   "retrying after 502 Bad Gateway from the API server (GET /api/v1/namespaces/x/pods/a)",
		"reset": "retrying after the API server reset the connection (GET /api/v1/namespaces/x/pods/a)",
		"end":   "retrying after the API server closed the connection without a response (GET /api/v1/namespaces/x/pods/a)",
	} {
		synctest.Test(t, func(t *testing.T) {
			f := &faulty{fault: func(n int, _ *http.Request) (*http.Response, error) {
				if n <= 2 {
					return passing[what]()
				}
				return nil, nil
			}}
			err := asked["get"].do(t.Context(), f.client(t))
			if err != nil || !slices.Equal(f.notices, []string{want}) {
				t.Errorf("%v, notices %q, want %q", err, f.notices, want)
			}
		})
	}
}

// TestRetryPermanent checks that retries of a permanent fault end, and soon after a 500.
func TestRetryPermanent(t *testing.T) {
	t.Parallel()
	for what, want := range map[string]struct {
		requests int
		longest  time.Duration
		err      func(error) bool
	}{
		"429":   {11, 40 * time.Second, apierrors.IsTooManyRequests},
		"500":   {4, 2 * time.Second, apierrors.IsInternalError},
		"502":   {7, 12 * time.Second, func(err error) bool { return err != nil }},
		"503":   {7, 12 * time.Second, apierrors.IsServiceUnavailable},
		"reset": {7, 12 * time.Second, func(err error) bool { return strings.Contains(fmt.Sprint(err), "the API server reset the connection") }},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := &faulty{fault: func(int, *http.Request) (*http.Response, error) { return passing[what]() }}
				client, start := f.client(t), time.Now()
				err := asked["get"].do(t.Context(), client)
				if took := time.Since(start); !want.err(err) || len(f.requests) != want.requests || took > want.longest || len(f.notices) != 1 {
					t.Errorf("%v after %d requests in %s, notices %q", err, len(f.requests), took, f.notices)
				}
			})
		})
	}
}

// TestRetryInvalidForSchema checks that a 500 for an object that does not match its
// schema is not retried, in contrast to a 500 for another reason.
func TestRetryInvalidForSchema(t *testing.T) {
	t.Parallel()
	for message, want := range map[string]int{
		"failed to create typed patch object (a/b; v1, Kind=Widget): .spec.x: field not declared in schema": 1,
		"rpc error: failed to create typed patch object":                                                    4,
		"etcdserver: request timed out":                                                                     4,
	} {
		synctest.Test(t, func(t *testing.T) {
			body := fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","status":"Failure","message":%q,"code":500}`, message)
			f := &faulty{fault: func(int, *http.Request) (*http.Response, error) {
				return respond(http.StatusInternalServerError, body), nil
			}}
			err := asked["apply"].do(t.Context(), f.client(t))
			if err == nil || !strings.Contains(err.Error(), message) || len(f.requests) != want {
				t.Errorf("%v after %d requests, want %d and the message %q", err, len(f.requests), want, message)
			}
		})
	}
}

// TestRetryLasting checks that responses which another attempt does not change are not retried.
func TestRetryLasting(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]func() (*http.Response, error){
		"400":                 func() (*http.Response, error) { return refuse(400, "BadRequest", "no"), nil },
		"401":                 func() (*http.Response, error) { return refuse(401, "Unauthorized", "no"), nil },
		"403":                 func() (*http.Response, error) { return refuse(403, "Forbidden", "no"), nil },
		"404":                 func() (*http.Response, error) { return refuse(404, "NotFound", "no"), nil },
		"409":                 func() (*http.Response, error) { return refuse(409, "Conflict", "no"), nil },
		"501":                 func() (*http.Response, error) { return respond(501, "no"), nil },
		"no server":           func() (*http.Response, error) { return nil, &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED} },
		"another certificate": func() (*http.Response, error) { return nil, errors.New("tls: failed to verify certificate") },
		"an hour": func() (*http.Response, error) {
			return refuse(503, "ServiceUnavailable", "no", "Retry-After", "3600"), nil
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			f := &faulty{fault: func(int, *http.Request) (*http.Response, error) { return fault() }}
			client, start := f.client(t), time.Now()
			err := asked["get"].do(t.Context(), client)
			if err == nil || len(f.requests) != 1 || len(f.notices) != 0 || time.Since(start) > 0 {
				t.Errorf("%s: %v after %d requests in %s, notices %q", name, err, len(f.requests), time.Since(start), f.notices)
			}
		})
	}
}

// TestRetryRestart checks that a server that loses a connection and refuses the next
// ones is given the time to restart, and that the refusal is the error if it does not.
func TestRetryRestart(t *testing.T) {
	t.Parallel()
	for refusals, succeeds := range map[int]bool{1: true, 10: true, 50: false} {
		synctest.Test(t, func(t *testing.T) {
			f := &faulty{fault: func(n int, _ *http.Request) (*http.Response, error) {
				switch {
				case n == 1:
					return passing["end"]()
				case n <= refusals+1:
					return nil, &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
				}
				return nil, nil
			}}
			client, start := f.client(t), time.Now()
			err := asked["reconcile request"].do(t.Context(), client)
			if succeeds != (err == nil) || err != nil && !errors.Is(err, syscall.ECONNREFUSED) || len(f.notices) != 2 {
				t.Errorf("%d refusals: %v after %d requests, notices %q", refusals, err, len(f.requests), f.notices)
			}
			if took := time.Since(start); took > 45*time.Second {
				t.Errorf("%d refusals: it took %s", refusals, took)
			}
		})
	}
}

// TestRestart checks that a request follows promptly when an API server has started: it refuses
// connections, and asks for more time than it needs until it serves all paths. The near miss is another
// message with the same code.
func TestRestart(t *testing.T) {
	t.Parallel()
	for message, latest := range map[string]time.Duration{
		"the request has been made before all known HTTP paths have been installed, please try again": time.Second,
		"the server is overloaded, please try again":                                                  5 * time.Second,
	} {
		synctest.Test(t, func(t *testing.T) {
			const down, up = 10 * time.Second, 20 * time.Second
			start := time.Now()
			f := &faulty{fault: func(n int, _ *http.Request) (*http.Response, error) {
				switch since := time.Since(start); {
				case n == 1:
					return nil, io.EOF
				case since < down:
					return nil, &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
				case since < up:
					return refuse(503, "ServiceUnavailable", message, "Retry-After", "5"), nil
				}
				return nil, nil
			}}
			_, err := f.client(t).Get(t.Context(), podResource(), "x", "a")
			if late := time.Since(start) - up; err != nil || late > latest {
				t.Errorf("%s: answered %s after the start: %v", message, late, err)
			}
		})
	}
}

// TestRetryAfter checks that the seconds of Retry-After are respected, and that a date, which some proxies send, does not
// prevent the retry.
func TestRetryAfter(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]time.Duration{"7": 7 * time.Second, "Fri, 20 Nov 2026 12:00:09 GMT": 0} {
		synctest.Test(t, func(t *testing.T) {
			f := &faulty{fault: func(n int, _ *http.Request) (*http.Response, error) {
				if n == 1 {
					return refuse(503, "ServiceUnavailable", "no", "Retry-After", value), nil
				}
				return nil, nil
			}}
			client, start := f.client(t), time.Now()
			if err := asked["get"].do(t.Context(), client); err != nil || want > 0 && time.Since(start) != want {
				t.Errorf("%s: %v after %s", value, err, time.Since(start))
			}
		})
	}
}

// TestRetryInTime checks that the response is returned if the next attempt would exceed the
// deadline, and that an interrupt ends a pause.
func TestRetryInTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &faulty{fault: func(int, *http.Request) (*http.Response, error) { return passing["503"]() }}
		client, start := f.client(t), time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := asked["get"].do(ctx, client); !apierrors.IsServiceUnavailable(err) || time.Since(start) > time.Second {
			t.Errorf("%v after %s", err, time.Since(start))
		}
	})
	synctest.Test(t, func(t *testing.T) {
		f := &faulty{fault: func(int, *http.Request) (*http.Response, error) {
			return refuse(503, "ServiceUnavailable", "no", "Retry-After", "20"), nil
		}}
		client, start := f.client(t), time.Now()
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		if err := asked["get"].do(ctx, client); !errors.Is(err, context.Canceled) || time.Since(start) != time.Second {
			t.Errorf("%v after %s", err, time.Since(start))
		}
	})
}

// TestRetryOutages checks that a cause is reported once for concurrent requests, and again when it
// recurs.
func TestRetryOutages(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var down bool
		f := &faulty{}
		f.fault = func(int, *http.Request) (*http.Response, error) {
			f.mu.Lock()
			defer f.mu.Unlock()
			if down {
				return passing["502"]()
			}
			return nil, nil
		}
		set := func(to bool) { f.mu.Lock(); down = to; f.mu.Unlock() }
		client := f.client(t)
		for range 2 {
			set(true)
			time.AfterFunc(time.Second, func() { set(false) })
			var wg sync.WaitGroup
			for _, name := range []string{"a", "b", "c"} {
				wg.Go(func() {
					if _, err := client.Get(t.Context(), podResource(), "x", name); err != nil {
						t.Error(err)
					}
				})
			}
			wg.Wait()
		}
		if len(f.notices) != 2 {
			t.Errorf("notices %q", f.notices)
		}
	})
}
