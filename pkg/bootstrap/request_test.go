package bootstrap_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"

	"github.com/fluxkit/flux/internal/githost"
	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/pkg/bootstrap"
	"github.com/fluxkit/flux/test/support/testlimit"
)

// requestHost is a host with pull requests. It keeps the open one.
type requestHost struct {
	*host
	open *githost.Change
}

func (h *requestHost) RequestChange(_ context.Context, c githost.Change) (githost.Request, error) {
	request := githost.Request{URL: "https://git.example.com/pulls/1", Number: 1, Opened: h.open == nil}
	if request.Opened {
		h.do(fmt.Sprintf("request %s into %s: %s", c.Head, c.Base, c.Title))
	}
	h.open = &c
	return request, nil
}

// merge squash-merges the pull request.
func (w *world) merge(h *requestHost) {
	w.t.Helper()
	work := w.t.TempDir()
	w.git(work, "clone", "--quiet", "--branch", h.open.Base, w.bare, ".")
	w.git(work, "fetch", "--quiet", "origin", h.open.Head)
	w.git(work, "-c", "user.name=Owner", "-c", "user.email=o@example.com", "merge", "--quiet", "--squash", "FETCH_HEAD")
	w.git(work, "-c", "user.name=Owner", "-c", "user.email=o@example.com", "commit", "--quiet", "-m", h.open.Title)
	w.git(work, "push", "--quiet", "origin", h.open.Base)
	h.open = nil
}

func (w *world) request(plan bootstrap.Plan, wrap func(http.RoundTripper) http.RoundTripper) (bootstrap.Result, string, error) {
	ctx, cancel := context.WithTimeout(w.t.Context(), testlimit.Wait)
	defer cancel()
	cfg := rest.CopyConfig(w.cluster.Client.Config)
	if wrap != nil {
		cfg.Wrap(wrap)
	}
	var p progress
	result, err := bootstrap.Run(ctx, cfg, plan, &p)
	return result, p.text.String(), err
}

// requested: the pull request is opened once, and the run after the merge
// installs Flux. A later change uses the same branch, although its commits were
// squash-merged.
func requested(w *world) {
	h := &requestHost{host: w.host()}
	h.protected = "it requires a review"
	plan := w.on(h)
	plan.ChangeRequest = true
	if _, err := w.run(plan, nil); err == nil || err.Error() != `branch "main" does not exist yet: a pull request needs a base branch` {
		w.t.Errorf("a request into an empty repository: %v", err)
	}
	w.commit(map[string]string{"README.md": "ours\n"})
	var c changes
	branchOf := func() string { return w.git(w.bare, "rev-parse", "flux/bootstrap/clusters/demo") }
	result, text, err := w.request(plan, c.wrap)
	if err != nil || result.Request == nil || !result.Request.Opened {
		w.t.Fatalf("%+v, %v\n%s", result, err, text)
	}
	first := branchOf()
	if result, _, err = w.request(plan, c.wrap); err != nil || result.Request == nil || result.Request.Opened || branchOf() != first {
		w.t.Errorf("second run: %+v, %v, %s after %s", result, err, branchOf(), first)
	}
	if len(c.seen) > 0 || len(w.log()) != 1 {
		w.t.Errorf("changes before the merge: %v, %v", c.seen, w.log())
	}
	w.merge(h)
	if result, text, err = w.request(plan, nil); err != nil || result.Request != nil {
		w.t.Fatalf("after the merge: %+v, %v\n%s", result, err, text)
	}
	if w.get("source.toolkit.fluxcd.io/v1", "GitRepository", w.namespace) == nil {
		w.t.Error("Flux is not installed after the merge")
	}
	w.requestedAgain(h, plan)
}

func (w *world) requestedAgain(h *requestHost, plan bootstrap.Plan) {
	w.commit(map[string]string{"apps.yaml": "theirs\n"})
	plan.Sync.Interval *= 2
	if _, text, err := w.request(plan, nil); err != nil || h.open == nil {
		w.t.Fatalf("a second change: %v\n%s", err, text)
	}
	if diff := cmp.Diff("clusters/demo/requested/gotk-sync.yaml", w.git(w.bare, "diff", "--name-only", "main...flux/bootstrap/clusters/demo")); diff != "" {
		w.t.Errorf("the request changes: %s", diff)
	}
	w.merge(h)
	result, text, err := w.request(plan, nil)
	if err != nil || result.Request != nil {
		w.t.Errorf("after the second merge: %+v, %v\n%s", result, err, text)
	}
	if len(h.done) != 2 {
		w.t.Errorf("the host did %q", h.done)
	}
	plan.Host = w.host()
	_, err = w.run(plan, nil)
	var known *hint.Error
	if !errors.As(err, &known) || known.Hint == "" || !strings.Contains(err.Error(), "pull requests are not supported") {
		w.t.Errorf("a host without pull requests: %v", err)
	}
}
