package provider

import (
	"context"
	"errors"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fluxkit/flux/internal/ci"
	"github.com/fluxkit/flux/internal/githost"
	"github.com/fluxkit/flux/internal/githost/rest"
	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/test/support/testgithost"
)

// standIn is a test Git host.
type standIn interface {
	testgithost.Keyed
	Inject(testgithost.Fault)
	Add(contents string) error
	State() (string, error)
	Changes() []string
	Forget()
	Close() error
}

// hostCase is a host in the tests that apply to all hosts.
type hostCase struct {
	// kind is the name of package ci.
	kind string
	// start runs a test host and returns a repository on it that does not exist,
	// nil for a host that other tests run.
	start func() (standIn, githost.Hosted, error)
	// state is the state of the test host after a bootstrap.
	state string
	// permits are the HTTP methods that change the permission of a deploy key.
	permits string
	// request is the path of the web page of pull request 1, and requestState its
	// line in the state.
	request, requestState string
}

// open runs a test host until the end of the test, and returns a repository on it.
func (c hostCase) open(t *testing.T) (standIn, githost.Hosted) {
	t.Helper()
	s, hosted, err := c.start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s, hosted
}

var hostCases = map[string]hostCase{
	"GitHub": {
		ci.GitHub,
		func() (standIn, githost.Hosted, error) {
			g, err := testgithost.OpenGitHub()
			if err != nil {
				return nil, githost.Hosted{}, err
			}
			g.Classic("t0k3n", "ada", "repo", "read:org")
			return g, githost.Hosted{Hostname: g.Hostname, CABundle: g.CA, Token: "t0k3n", Owner: "acme", Teams: []githost.Team{{Name: "ops", Permission: "maintain"}}}, nil
		},
		"acme/fleet private empty\n  user ada admin\n  team ops maintain\n  key ro flux ssh-ed25519\n",
		"DELETE POST", "/acme/fleet/pull/1", "pull request #1",
	},
	"GitLab": {
		ci.GitLab,
		func() (standIn, githost.Hosted, error) {
			g, err := testgithost.OpenGitLab(testgithost.GitLabPeople)
			if err != nil {
				return nil, githost.Hosted{}, err
			}
			return g, githost.Hosted{Hostname: g.Hostname, CABundle: g.CA, Token: "alice-api", Owner: "acme", Teams: []githost.Team{{Name: "acme/operators", Permission: "maintain"}}}, nil
		},
		"acme/fleet private empty\n  group acme/operators maintainer\n  key ro flux ssh-ed25519\n",
		"PUT", "/acme/fleet/-/merge_requests/1", "merge request !1",
	},
	"Bitbucket": {
		ci.BitbucketServer,
		func() (standIn, githost.Hosted, error) {
			b, err := testgithost.OpenBitbucket(testgithost.BitbucketPeople)
			if err != nil {
				return nil, githost.Hosted{}, err
			}
			return b, githost.Hosted{Hostname: b.Hostname, CABundle: b.CA, Token: "alice-admin", Owner: "PLAT", Teams: []githost.Team{{Name: "operators", Permission: "write"}}}, nil
		},
		"PLAT/fleet private empty\n  group operators write\n  key ro flux ssh-ed25519\n",
		"PUT", "/projects/PLAT/repos/fleet/pull-requests/1", "pull request #1",
	},
	// A real Gitea runs in TestGitea, which also interrupts it.
	"Gitea": {kind: ci.Gitea},
}

// host returns a host for a repository.
func (c hostCase) host(t *testing.T, h githost.Hosted) githost.Host {
	t.Helper()
	h.Scheme, h.Name, h.Visibility, h.Branch = "https", "fleet", "private", "main"
	client, err := caller(nil).Client(h)
	if err != nil {
		t.Fatal(err)
	}
	host, err := Hosts()[c.kind].Open(h, client)
	if err != nil {
		t.Fatal(err)
	}
	return host
}

// caller configures clients that do not wait in real time.
func caller(sleep func(context.Context, time.Duration) error) rest.Caller {
	return rest.Caller{UserAgent: "test", Now: time.Now, Waiting: func(string, ...any) {}, Sleep: sleep}
}

// TestLostConnections closes the connection at each of the three writes of a
// bootstrap, before and after the write: the next run has to reach the same state.
func TestLostConnections(t *testing.T) {
	t.Parallel()
	for name, c := range hostCases {
		if c.start == nil {
			continue
		}
		for write := 1; write <= 3; write++ {
			for _, late := range []bool{false, true} {
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					server, hosted := c.open(t)
					server.Inject(func(r testgithost.Request, done bool) bool { return r.Change == write && done == late })
					var known *hint.Error
					if err := bootstrap(t, c.host(t, hosted)); !errors.As(err, &known) || known.Hint == "" {
						t.Errorf("write %d, late %t: %v", write, late, err)
					}
					server.Inject(nil)
					if err := bootstrap(t, c.host(t, hosted)); err != nil {
						t.Errorf("write %d, late %t: %v", write, late, err)
					}
					if diff := cmp.Diff(c.state, testgithost.State(t, server)); diff != "" {
						t.Errorf("write %d, late %t: %s", write, late, diff)
					}
				})
			}
		}
	}
}

// bootstrap creates the repository and adds a deploy key.
func bootstrap(t *testing.T, host githost.Host) error {
	t.Helper()
	if _, err := host.Survey(t.Context(), githost.Want{Branch: "main", KeyTitle: "flux"}); err != nil {
		return err
	}
	if _, err := host.Ensure(t.Context()); err != nil {
		return err
	}
	return host.DeployKey(t.Context(), githost.DeployKey{Title: "flux", Public: testgithost.KeyOne})
}

// TestRejections requires of each host that all responses that reject the first
// request, or are not of its API, are an error with a remedy, and that the error
// does not have the token or the page of a proxy.
func TestRejections(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		status  int
		headers []string
		body    string
		// message and hint are parts of the error of each host. A hint that is empty
		// for a host is the one of all.
		message, hint string
	}{
		"rate limit":          {429, []string{"Retry-After", "1800"}, "{}", "rejects requests with this token until 2026-11-20T12:30:00Z: rate limit exceeded", "run the command again after that time; it resumes"},
		"rate limit, no time": {429, nil, "{}", "until 2026-11-20T12:01:00Z: rate limit exceeded", "run the command again after that time; it resumes"},
		"secondary limit":     {403, []string{"Retry-After", "1800"}, `{"message": "You have exceeded a secondary rate limit"}`, "until 2026-11-20T12:30:00Z: rate limit exceeded", "run the command again after that time"},
		"used limit":          {403, []string{"X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "1795177800"}, "{}", "rate limit exceeded", "run the command again after that time"},
		"other 403":           {403, []string{"X-RateLimit-Remaining", "12"}, `{"message": "no t0k3n"}`, "", ""},
		"invalid token":       {401, nil, `{"message": "401 Unauthorized"}`, "rejected the token", ""},
		"server error":        {500, nil, "<html>t0k3n</html>", "responded with 500 Internal Server Error", "try again later"},
		"maintenance":         {503, nil, "<html>t0k3n</html>", "responded with 503 Service Unavailable", "try again later"},
		"not found":           {404, nil, "<html>t0k3n</html>", "", ""},
		"method not allowed":  {405, nil, "<html>t0k3n</html>", "", "--hostname"},
		"page":                {200, nil, "<html>t0k3n</html>", "", "--hostname"},
		"other JSON":          {200, nil, `{"t0k3n": "t0k3n"}`, "", ""},
		"login page":          {302, []string{"Location", "https://login.example.com/"}, "", "redirects to another address, https://login.example.com", "--hostname"},
	} {
		for host, c := range hostCases {
			t.Run(name+" "+host, func(t *testing.T) {
				t.Parallel()
				h := githost.Hosted{Token: "t0k3n", Owner: "acme", Name: "fleet", Visibility: "private", Branch: "main"}
				h.Hostname, h.CABundle = testgithost.StartHandler(t, func(w http.ResponseWriter, _ *http.Request) {
					for i := 0; i < len(test.headers); i += 2 {
						w.Header().Set(test.headers[i], test.headers[i+1])
					}
					w.WriteHeader(test.status)
					_, _ = w.Write([]byte(test.body))
				})
				noon := caller(func(context.Context, time.Duration) error { return nil })
				noon.Now = func() time.Time { return time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC) }
				client, err := noon.Client(h)
				if err != nil {
					t.Fatal(err)
				}
				repository, err := Hosts()[c.kind].Open(h, client)
				if err != nil {
					t.Fatal(err)
				}
				_, err = repository.Survey(t.Context(), githost.Want{Branch: "main"})
				var known *hint.Error
				if !errors.As(err, &known) || known.Hint == "" {
					t.Fatalf("no remedy for %v", err)
				}
				if text := err.Error() + known.Hint; strings.Contains(text, "t0k3n") || strings.Contains(text, "<html>") {
					t.Errorf("the error shows a credential or a page: %s (%s)", err, known.Hint)
				}
				if !strings.Contains(err.Error(), test.message) || !strings.Contains(known.Hint, test.hint) {
					t.Errorf("%v (%s)", err, known.Hint)
				}
			})
		}
	}
}

// TestShortRateLimit requires that each host waits for a rate limit that ends soon.
func TestShortRateLimit(t *testing.T) {
	t.Parallel()
	for name, c := range hostCases {
		if c.start == nil {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server, hosted := c.open(t)
			hosted.Hostname, hosted.CABundle = limitOnce(t, hosted)
			var waits []time.Duration
			client, err := caller(func(_ context.Context, d time.Duration) error {
				waits = append(waits, d)
				return nil
			}).Client(hosted)
			if err != nil {
				t.Fatal(err)
			}
			hosted.Scheme, hosted.Name, hosted.Visibility, hosted.Branch = "https", "fleet", "private", "main"
			host, err := Hosts()[c.kind].Open(hosted, client)
			if err != nil {
				t.Fatal(err)
			}
			if err := bootstrap(t, host); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]time.Duration{5 * time.Second}, waits, cmp.Comparer(func(a, b time.Duration) bool { return a.Round(time.Second) == b.Round(time.Second) })); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(c.state, testgithost.State(t, server)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// limitOnce runs a proxy of a host that rejects the first write because of a rate limit.
func limitOnce(t *testing.T, hosted githost.Hosted) (hostname string, ca []byte) {
	t.Helper()
	client, err := caller(nil).Client(hosted)
	if err != nil {
		t.Fatal(err)
	}
	var limited atomic.Bool
	proxy := &httputil.ReverseProxy{Transport: client.Transport, Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(&url.URL{Scheme: "https", Host: hosted.Hostname})
	}}
	return testgithost.StartHandler(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && limited.CompareAndSwap(false, true) {
			w.Header().Set("Retry-After", "5")
			w.WriteHeader(http.StatusTooManyRequests)
			return
		}
		proxy.ServeHTTP(w, r)
	})
}
