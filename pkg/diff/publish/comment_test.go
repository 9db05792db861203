package publish_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fluxkit/flux/internal/ci"
	"github.com/fluxkit/flux/internal/githost"
	"github.com/fluxkit/flux/internal/githost/provider"
	"github.com/fluxkit/flux/internal/githost/rest"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diff"
	"github.com/fluxkit/flux/pkg/diff/publish"
	"github.com/fluxkit/flux/test/support/testgitea"
	"github.com/fluxkit/flux/test/support/testgithost"
)

// standIn is a test Git host.
type standIn interface {
	Add(contents string) error
	State() (string, error)
	Close() error
}

// hosts start Git hosts with the pull request 1 from feature to main in acme/fleet,
// and the token s3cret of ada.
var hosts = map[string]func() (standIn, *testgithost.Server, error){
	ci.GitHub: func() (standIn, *testgithost.Server, error) {
		g, err := testgithost.OpenGitHub()
		if err != nil {
			return nil, nil, err
		}
		g.Classic("s3cret", "ada", "repo")
		return g, g.Server, nil
	},
	ci.GitLab: func() (standIn, *testgithost.Server, error) {
		g, err := testgithost.OpenGitLab("user ada\nuser bob\ntoken s3cret ada api\ngroup acme private ada=developer\n")
		if err != nil {
			return nil, nil, err
		}
		return g, g.Server, nil
	},
	ci.BitbucketServer: func() (standIn, *testgithost.Server, error) {
		b, err := testgithost.OpenBitbucket("user ada\ntoken s3cret ada read\nproject acme Acme ada=read\n")
		if err != nil {
			return nil, nil, err
		}
		return b, b.Server, nil
	},
}

// start runs a host until the end of the test and returns its pull request.
func start(t *testing.T, kind string) (standIn, *testgithost.Server, githost.PullRequest) {
	t.Helper()
	host, server, err := hosts[kind]()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := host.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := host.Add("repository acme/fleet ada=" + map[string]string{ci.GitHub: "push", ci.GitLab: "developer", ci.BitbucketServer: "read"}[kind] +
		"\ncommit acme/fleet main a one\ncommit acme/fleet feature a two\npull acme/fleet feature main\n"); err != nil {
		t.Fatal(err)
	}
	hosted := githost.Hosted{Hostname: server.Hostname, Scheme: "https", CABundle: server.CA, Token: "s3cret", TokenOrigin: "TOKEN", Owner: "acme", Name: "fleet"}
	return host, server, open(t, kind, hosted, 1)
}

func open(t *testing.T, kind string, hosted githost.Hosted, number int) githost.PullRequest {
	t.Helper()
	client, err := rest.Caller{UserAgent: "test", Now: time.Now, Waiting: t.Logf}.Client(hosted)
	if err != nil {
		t.Fatal(err)
	}
	return provider.OpenPull(kind, hosted, number, client)
}

// text is a comment with a marker.
func text(kind, key, body string) string {
	return publish.Marker(key, githost.PullRequestHosts()[kind].HTML) + "\n\n" + body
}

var marker = regexp.MustCompile(`<!-- flux diff: (\S+) -->|\[//\]: # \(flux diff: (\S+)\)`)

// comments returns the comments on a host, a line each.
func comments(t *testing.T, host standIn) []string {
	t.Helper()
	state, err := host.State()
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for line := range strings.Lines(state) {
		if author, ok := strings.CutPrefix(line, "    comment of "); ok {
			all = append(all, strings.TrimSpace(author)+":")
		} else if strings.HasPrefix(line, "      ") {
			all[len(all)-1] += " " + strings.TrimSpace(marker.ReplaceAllString(line, "$1$2"))
		}
	}
	return all
}

// post creates or updates a comment.
func post(t *testing.T, pull githost.PullRequest, text string) bool {
	t.Helper()
	_, created, err := publish.Comment(t.Context(), pull, text)
	if err != nil {
		t.Fatal(err)
	}
	return created
}

func TestComment(t *testing.T) {
	t.Parallel()
	for kind := range hosts {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			host, server, pull := start(t, kind)
			// Others write comments, also with the same first line.
			foreign := strings.ReplaceAll(text(kind, "a", "forged"), "\n", `\n`)
			if err := host.Add("note acme/fleet 1 bob hello\nnote acme/fleet 1 bob " + foreign + "\n"); err != nil {
				t.Fatal(err)
			}
			if !post(t, pull, text(kind, "a", "one")) || !post(t, pull, text(kind, "b", "one")) {
				t.Error("a comment is not created")
			}
			if post(t, pull, text(kind, "a", "two")) {
				t.Error("a comment is not updated")
			}
			want := []string{"bob: hello", "bob: a forged", "ada: a two", "ada: b one"}
			if diff := cmp.Diff(want, comments(t, host)); diff != "" {
				t.Error(diff)
			}
			server.Forget()
			post(t, pull, text(kind, "a", "two"))
			if changes := server.Changes(); len(changes) > 0 {
				t.Errorf("the same comment: %v", changes)
			}
		})
	}
}

// TestCommentPages finds a comment after hundreds of others.
func TestCommentPages(t *testing.T) {
	t.Parallel()
	for kind := range hosts {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			host, _, pull := start(t, kind)
			const others = 230
			for i := range others {
				if err := host.Add(fmt.Sprintf("note acme/fleet 1 bob %d\n", i)); err != nil {
					t.Fatal(err)
				}
			}
			post(t, pull, text(kind, "a", "one"))
			post(t, pull, text(kind, "a", "two"))
			if all := comments(t, host); len(all) != others+1 || all[others] != "ada: a two" {
				t.Errorf("%d comments, the last is %q", len(all), all[len(all)-1])
			}
		})
	}
}

// TestConcurrent runs two pipelines at once: one comment is left, and its text is of
// one of them.
func TestConcurrent(t *testing.T) {
	t.Parallel()
	for kind := range hosts {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			host, server, pull := start(t, kind)
			// Both have listed the comments before one creates its own.
			var listed sync.WaitGroup
			const runs = 2
			listed.Add(runs)
			seen := 0
			var mu sync.Mutex
			server.Inject(func(r testgithost.Request, done bool) bool {
				if !done && r.Method == http.MethodPost {
					mu.Lock()
					first := seen < runs
					seen++
					mu.Unlock()
					if first {
						listed.Done()
						listed.Wait()
					}
				}
				return false
			})
			var running sync.WaitGroup
			errs := make([]error, runs)
			for i := range runs {
				running.Go(func() { _, _, errs[i] = publish.Comment(t.Context(), pull, text(kind, "a", fmt.Sprint("run ", i))) })
			}
			running.Wait()
			if err := errors.Join(errs...); err != nil {
				t.Error(err)
			}
			if all := comments(t, host); len(all) != 1 || all[0] != "ada: a run 0" && all[0] != "ada: a run 1" {
				t.Errorf("comments: %q", all)
			}
		})
	}
}

// TestMeanwhile deletes and edits the comment between the requests of a run.
func TestMeanwhile(t *testing.T) {
	t.Parallel()
	for kind := range hosts {
		for name, change := range map[string]string{"deleted": "unnote acme/fleet 1\n", "edited": "edit acme/fleet 1\n"} {
			t.Run(kind+" "+name, func(t *testing.T) {
				t.Parallel()
				host, server, pull := start(t, kind)
				post(t, pull, text(kind, "a", "one"))
				once := sync.OnceFunc(func() {
					if err := host.Add(change); err != nil {
						t.Error(err)
					}
				})
				server.Inject(func(r testgithost.Request, done bool) bool {
					if !done && (r.Method == http.MethodPatch || r.Method == http.MethodPut) {
						once()
					}
					return false
				})
				post(t, pull, text(kind, "a", "two"))
				if diff := cmp.Diff([]string{"ada: a two"}, comments(t, host)); diff != "" {
					t.Error(diff)
				}
			})
		}
	}
}

// TestLostResponse closes the connection after the comment is created: the next run
// updates it.
func TestLostResponse(t *testing.T) {
	t.Parallel()
	for kind := range hosts {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			host, server, pull := start(t, kind)
			server.Inject(func(r testgithost.Request, done bool) bool { return done && r.Method == http.MethodPost })
			if _, _, err := publish.Comment(t.Context(), pull, text(kind, "a", "one")); err == nil {
				t.Error("no error for a lost response")
			}
			server.Inject(nil)
			post(t, pull, text(kind, "a", "two"))
			if diff := cmp.Diff([]string{"ada: a two"}, comments(t, host)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestRefused requires that a rejected request is an error, and which ones are about
// permissions.
func TestRefused(t *testing.T) {
	t.Parallel()
	for kind := range hosts {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			host, _, pull := start(t, kind)
			for code, denied := range map[int]bool{400: false, 401: true, 403: true, 404: true, 409: false, 422: false, 500: false} {
				for _, request := range []string{"GET", "POST"} {
					if err := host.Add(fmt.Sprintf("fail %s %d\n", request, code)); err != nil {
						t.Fatal(err)
					}
					_, _, err := publish.Comment(t.Context(), pull, text(kind, "a", "one"))
					var permission *githost.DeniedError
					if err == nil || errors.As(err, &permission) != denied || strings.Contains(err.Error(), "s3cret") {
						t.Errorf("%s %d: %v", request, code, err)
					}
				}
			}
			if all := comments(t, host); len(all) > 0 {
				t.Errorf("comments: %q", all)
			}
		})
	}
}

// TestStatus sets a status twice on a commit of the pull request.
func TestStatus(t *testing.T) {
	t.Parallel()
	for kind, want := range map[string]string{
		ci.GitHub: `status flux success "no changes"`, ci.GitLab: `status flux success "no changes"`, ci.BitbucketServer: `status flux SUCCESSFUL "no changes"`,
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			host, server, pull := start(t, kind)
			head, err := server.Git.Head("acme/fleet", "feature")
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range []githost.Status{
				{Name: "flux", State: githost.Errored, Text: strings.Repeat("ä", 300)}, {Name: "flux", State: githost.Succeeded, Text: "no changes", URL: "https://ci.example.com/1"},
			} {
				if err := pull.SetStatus(t.Context(), head, s); err != nil {
					t.Fatal(err)
				}
			}
			state, err := host.State()
			if err != nil {
				t.Fatal(err)
			}
			if strings.Count(state, "status ") != 1 || !strings.Contains(state, want) {
				t.Errorf("not one %s:\n%s", want, state)
			}
			if err := pull.SetStatus(t.Context(), strings.Repeat("1", 40), githost.Status{Name: "flux", State: githost.Failed, Text: "x"}); err == nil {
				t.Error("no error for a commit that does not exist")
			}
		})
	}
}

// TestGitea comments on a pull request of a real Gitea.
func TestGitea(t *testing.T) {
	t.Parallel()
	s := testgitea.Start(t)
	alice, bob := s.User(t, "alice"), s.User(t, "bob")
	s.As(t, alice, http.MethodPost, "/user/repos", map[string]any{"name": "fleet", "auto_init": true, "default_branch": "main"}, nil)
	file := map[string]any{"content": "YQo=", "branch": "main", "new_branch": "feature", "message": "Add a"}
	var made struct {
		Commit struct{ SHA string } `json:"commit"`
	}
	s.As(t, alice, http.MethodPost, "/repos/alice/fleet/contents/a", file, &made)
	s.As(t, alice, http.MethodPost, "/repos/alice/fleet/pulls", map[string]any{"head": "feature", "base": "main", "title": "Add a"}, nil)
	s.As(t, bob, http.MethodPost, "/repos/alice/fleet/issues/1/comments", map[string]any{"body": text(ci.Gitea, "a", "forged")}, nil)
	hosted := githost.Hosted{Hostname: s.Hostname, Scheme: "https", CABundle: s.CA, TokenOrigin: "GITEA_TOKEN", Owner: "alice", Name: "fleet"}
	hosted.Token = s.Token(t, alice, "write:issue", "read:user", "write:repository")
	pull := open(t, ci.Gitea, hosted, 1)
	if !post(t, pull, text(ci.Gitea, "a", "one")) || post(t, pull, text(ci.Gitea, "a", "two")) || !post(t, pull, text(ci.Gitea, "b", strings.Repeat("ä", 30_000))) {
		t.Error("the comment is not created, updated and created")
	}
	list := func() []string {
		var found []struct{ Body string }
		s.As(t, alice, http.MethodGet, "/repos/alice/fleet/issues/1/comments", nil, &found)
		var all []string
		for _, c := range found {
			all = append(all, strings.ReplaceAll(marker.ReplaceAllString(c.Body, "$1"), strings.Repeat("ä", 30_000), "long"))
		}
		return all
	}
	if diff := cmp.Diff([]string{"a\n\nforged", "a\n\ntwo", "b\n\nlong"}, list()); diff != "" {
		t.Error(diff)
	}
	status := githost.Status{Name: "flux", State: githost.Failed, Text: "1 created", URL: "https://ci.example.com/1"}
	if err := pull.SetStatus(t.Context(), made.Commit.SHA, status); err != nil {
		t.Fatal(err)
	}
	var set []struct{ Context, Status, Description string }
	s.As(t, alice, http.MethodGet, "/repos/alice/fleet/commits/"+made.Commit.SHA+"/statuses", nil, &set)
	if got := fmt.Sprint(set); got != "[{flux failure 1 created}]" {
		t.Errorf("status %s", got)
	}
	// A comment that another run deletes meanwhile, and tokens that may not write.
	found, err := pull.Comments(t.Context(), publish.Marker("b", true))
	if err != nil || len(found) != 1 {
		t.Fatalf("%v, %v", found, err)
	}
	if err := pull.DeleteComment(t.Context(), found[0]); err != nil {
		t.Fatal(err)
	}
	if _, err := pull.EditComment(t.Context(), found[0], "x"); !errors.Is(err, githost.ErrCommentDeleted) {
		t.Errorf("a deleted comment: %v", err)
	}
	for name, token := range map[string]string{
		"scopes": s.Token(t, alice, "read:issue", "read:user"), "unknown": strings.Repeat("0", 40),
	} {
		hosted.Token = token
		var denied *githost.DeniedError
		if _, _, err := publish.Comment(context.Background(), open(t, ci.Gitea, hosted, 1), text(ci.Gitea, "c", "one")); !errors.As(err, &denied) || strings.Contains(err.Error(), token) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestMarkdownSize requires that the comment of a large result fits on each host, and
// that a failure is in the comment without markup.
func TestMarkdownSize(t *testing.T) {
	t.Parallel()
	var results []*diff.Result
	for i := range 3000 {
		results = append(results, &diff.Result{Owner: controllers.VersionedID{ID: controllers.ID{Kind: "Kustomization", Namespace: "flux-system", Name: fmt.Sprint("app-", i)}}, Warnings: []string{strings.Repeat("ä", 400)}})
	}
	for kind, host := range githost.PullRequestHosts() {
		report := publish.Report{Key: "clusters/a", Results: results, Problem: "``` \x1b[2J</details>" + strings.Repeat("x", 9000), Base: "main", Head: "`h`", Run: "https://ci.example.com/1"}
		got := report.Markdown(host)
		first, _, _ := strings.Cut(got, "\n")
		if len(got) > host.MaxComment || first != publish.Marker("clusters/a", host.HTML) || !strings.HasSuffix(got, "compared with `main` ([run](https://ci.example.com/1))\n") {
			t.Errorf("%s: %d bytes, begins with %q, ends with %q", kind, len(got), first, got[max(0, len(got)-80):])
		}
		if strings.Contains(got, "\x1b") || !strings.Contains(got, "````\n``` ") {
			t.Errorf("%s: the problem is not inert: %.300q", kind, got)
		}
	}
	bad := publish.Report{Key: "a", Run: "javascript:alert(1)"}
	if got := bad.Markdown(githost.PullRequestHosts()[ci.GitHub]); strings.Contains(got, "javascript") {
		t.Errorf("%q", got)
	}
}
