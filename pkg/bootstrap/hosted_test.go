package bootstrap_test

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fluxkit/flux/internal/githost"
	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/pkg/bootstrap"
)

// host is an in-memory Git host API in front of the sandbox's Git server, which
// has the repository.
type host struct {
	w *world

	mu        sync.Mutex
	done      []string          // changes on the host
	keys      map[string]string // the deploy keys by title
	protected string
	refuses   error
}

func (h *host) repository() githost.Repository {
	return githost.Repository{Access: githost.Access{URL: h.w.url, Username: "ada", Password: "s3cret"}, SyncURL: h.w.url, DefaultBranch: branch}
}

func (h *host) exists() bool {
	_, err := os.Stat(h.w.bare)
	return err == nil
}

func (h *host) Survey(_ context.Context, want githost.Want) (githost.Survey, error) {
	if h.refuses != nil {
		return githost.Survey{}, h.refuses
	}
	s := githost.Survey{Repository: h.repository(), Exists: h.exists(), Protected: h.protected, Account: "ada"}
	if want.ChangeRequest {
		s.Protected = ""
	}
	if !s.Exists {
		s.Changes = []string{"create the private repository " + h.w.namespace}
	}
	return s, nil
}

func (h *host) Ensure(context.Context) (githost.Repository, error) {
	if !h.exists() {
		h.do("repository")
		h.w.sandbox("", "git", "create", h.w.namespace)
	}
	return h.repository(), nil
}

func (h *host) DeployKey(_ context.Context, key githost.DeployKey) error {
	h.mu.Lock()
	same := h.keys[key.Title] == key.Public
	h.keys[key.Title] = key.Public
	h.mu.Unlock()
	if !same {
		h.do("key " + key.Title)
	}
	return nil
}

func (h *host) do(what string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.done = append(h.done, what)
}

// tokenHost is a host with deploy tokens, which its Git server accepts.
type tokenHost struct{ *host }

func (h tokenHost) DeployToken(_ context.Context, title string) (string, string, error) {
	h.do("token " + title)
	h.w.sandbox("t0ken", "git", "credentials", "set", "--username", "deploy", "--password-stdin", "--read-only")
	return "deploy", "t0ken", nil
}

func (w *world) on(h githost.Host) bootstrap.Plan {
	plan := w.plan()
	plan.Host = h
	return plan
}

func (w *world) host() *host { return &host{w: w, keys: map[string]string{}} }

func (h *host) wantDone(t *testing.T, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, h.done); diff != "" {
		t.Error(diff)
	}
}

// created: a repository that does not exist is created, after the preflight
// checks have passed.
func created(w *world) {
	if err := os.RemoveAll(w.bare); err != nil {
		w.t.Fatal(err)
	}
	h := w.host()
	plan := w.on(h)
	plan.Commit.Sign = func([]byte) (string, error) { return "", errors.New("no key to sign with") }
	if _, err := w.run(plan, nil); err == nil {
		w.t.Error("no error for a commit that cannot be signed")
	}
	h.wantDone(w.t, "repository")
	text := w.mustRun(w.on(h))
	h.wantDone(w.t, "repository")
	if diff := cmp.Diff(history, w.log()); diff != "" {
		w.t.Errorf("%s\n%s", diff, text)
	}
	var c changes
	if text, err := w.run(w.on(h), c.wrap); err != nil || len(c.seen) > 0 {
		w.t.Errorf("the second run: %v, %v\n%s", err, c.seen, text)
	}
	h.wantDone(w.t, "repository")
}

// forbidden: errors of the host and of the cluster are reported together, and
// nothing is changed.
func forbidden(w *world) {
	h := w.host()
	h.refuses = &hint.Error{Err: errors.New("the token lacks the scope repo"), Hint: "create another"}
	var c changes
	plan := w.on(h)
	_, err := w.run(plan, c.wrap)
	var known *hint.Error
	if !errors.As(err, &known) || known.Hint != "create another" || err.Error() != "the token lacks the scope repo" {
		w.t.Errorf("an error of the host: %v", err)
	}
	w.mustRun(w.plan())
	plan.Path = "elsewhere"
	_, err = w.run(plan, c.wrap)
	var several *bootstrap.PreflightError
	if !errors.As(err, &several) || len(several.Errs) != 2 || !strings.Contains(err.Error(), "the scope repo") || !strings.Contains(err.Error(), "was bootstrapped from path") {
		w.t.Errorf("two errors: %v", err)
	}
	if len(c.seen) > 0 {
		w.t.Errorf("the cluster was changed: %v", c.seen)
	}
	h.wantDone(w.t)
}

// protected: a protected branch is reported before anything is changed, unless
// there is nothing to push.
func protected(w *world) {
	h := w.host()
	h.protected = "it requires a review"
	var c changes
	_, err := w.run(w.on(h), c.wrap)
	var known *hint.Error
	if !errors.As(err, &known) || err.Error() != `branch "main" is protected: it requires a review` || strings.Contains(known.Hint, "--pull-request") {
		w.t.Errorf("a protected branch: %v", err)
	}
	if len(c.seen) > 0 || w.log() != nil {
		w.t.Errorf("something was changed: %v, %v", c.seen, w.log())
	}
	w.mustRun(w.plan())
	w.mustRun(w.on(h))
}

// tokened: the deploy token is created once, and again if it has no access.
func tokened(w *world) {
	w.requireAuth()
	h := tokenHost{w.host()}
	plan := w.on(h)
	plan.TokenAuth, plan.DeployToken = false, true
	w.mustRun(plan)
	w.mustRun(plan)
	title := "token tokened-main-flux-system-./clusters/demo"
	h.wantDone(w.t, title)
	want := map[string]string{"username": "deploy", "password": "t0ken"}
	if diff := cmp.Diff(want, w.secret("flux-system")); diff != "" {
		w.t.Error(diff)
	}
	w.sandbox("0ther", "git", "credentials", "set", "--username", "deploy", "--password-stdin", "--read-only")
	text := w.mustRun(plan)
	h.wantDone(w.t, title, title)
	if !strings.Contains(text, "the token in Secret tokened/flux-system has no access to the repository and will be replaced") {
		w.t.Errorf("a revoked token is not reported:\n%s", text)
	}
	plan.Host = w.host()
	if _, err := w.run(plan, nil); err == nil || err.Error() != "deploy tokens are not supported for this Git host" {
		w.t.Errorf("a host without tokens: %v", err)
	}
	if slices.Contains(strings.Fields(text), "t0ken") {
		w.t.Errorf("the token is in the output:\n%s", text)
	}
}

// readonly: credentials without push access are reported before anything is changed.
func readonly(w *world) {
	w.requireAuth()
	w.sandbox("reads", "git", "credentials", "set", "--username", "reader", "--password-stdin", "--read-only")
	plan := w.plan()
	plan.Host = githost.Git{Access: githost.Access{URL: w.url, Username: "reader", Password: "reads"}, TokenAuth: true}
	ctx := w.t.Context()
	var output progress
	checks, err := bootstrap.Preflight(ctx, w.cluster.Client.Config, plan, &output)
	var known *hint.Error
	if !errors.As(err, &known) || known.Hint == "" || !strings.Contains(err.Error(), "checking push access to") || !strings.Contains(err.Error(), "(403)") {
		w.t.Errorf("read-only credentials: %v\n%s", err, output.text.String())
	}
	failed := slices.DeleteFunc(checks, func(c bootstrap.Check) bool { return c.Err == nil })
	if len(checks) != 8 || len(failed) != 1 || failed[0].Name != "the branch" {
		w.t.Errorf("the checks are %v", checks)
	}
	w.mustRun(w.plan())
	w.mustRun(plan) // nothing to push
}
