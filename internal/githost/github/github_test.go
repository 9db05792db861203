package github_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/fluxkit/flux/internal/githost"
	"github.com/fluxkit/flux/internal/githost/github"
	"github.com/fluxkit/flux/internal/githost/rest"
	"github.com/fluxkit/flux/test/support/testgithost"
)

const (
	key1 = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
	key2 = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBB"
)

var want = githost.Want{Branch: "main", KeyTitle: "flux"}

// hub is a stand-in for GitHub with the tokens "classic" of ada and "bobs" of bob.
type hub struct {
	*testgithost.GitHub
	t *testing.T
}

func newHub(t *testing.T) *hub {
	t.Helper()
	h := &hub{testgithost.StartGitHub(t), t}
	h.Classic("classic", "ada", "repo", "read:org")
	h.Classic("bobs", "bob", "repo", "read:org")
	return h
}

// add adds a repository of acme.
func (h *hub) add(name, visibility string) *testgithost.Repository {
	h.t.Helper()
	return h.AddRepository(name, visibility)
}

// host returns acme/fleet with a token.
func (h *hub) host(token string, edit func(*githost.Hosted)) *rest.Host {
	h.t.Helper()
	hosted := githost.Hosted{
		Hostname: h.Hostname, Scheme: "https", CABundle: h.CA, Token: token,
		Owner: "acme", Name: "fleet", Visibility: "private", Branch: "main",
	}
	if edit != nil {
		edit(&hosted)
	}
	caller := rest.Caller{
		UserAgent: "flux/test", Now: func() time.Time { return time.Date(2026, 11, 20, 13, 0, 0, 0, time.UTC) },
		Waiting: func(format string, args ...any) { h.t.Errorf("unexpected wait: "+format, args...) },
	}
	client, err := caller.Client(hosted)
	if err != nil {
		h.t.Fatal(err)
	}
	return github.New(hosted, client)
}

// prepare runs Survey and Ensure, and returns the reported changes.
func (h *hub) prepare(g *rest.Host) []string {
	h.t.Helper()
	survey, err := g.Survey(h.t.Context(), want)
	if err != nil {
		h.t.Fatal(err)
	}
	if changes := h.Changes(); len(changes) > 0 {
		h.t.Errorf("the survey changed something: %v", changes)
	}
	if _, err := g.Ensure(h.t.Context()); err != nil {
		h.t.Fatal(err)
	}
	return survey.Changes
}

func (h *hub) equal(want, got any) {
	h.t.Helper()
	if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(testgithost.Repository{}, testgithost.Key{})); diff != "" {
		h.t.Error(diff)
	}
}

func TestGitHubCreates(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		token   string
		edit    func(*githost.Hosted)
		setup   func(*hub)
		changes []string
		want    testgithost.Repository
	}{
		"organization": {
			token: "classic",
			edit: func(h *githost.Hosted) {
				h.Description = "All of it"
				h.Teams = []githost.Team{{Name: "ops", Permission: "maintain"}, {Name: "dev", Permission: "pull"}}
			},
			changes: []string{"create the private repository acme/fleet", `grant the team acme/ops the permission "maintain"`, `grant the team acme/dev the permission "pull"`},
			want: testgithost.Repository{
				Owner: "acme", Name: "fleet", Visibility: "private", Description: "All of it",
				Roles: map[string]string{"ada": "admin"}, Teams: map[string]string{"ops": "maintain", "dev": "pull"},
			},
		},
		"member": {
			token: "bobs", changes: []string{"create the private repository acme/fleet"},
			want: testgithost.Repository{Owner: "acme", Name: "fleet", Visibility: "private", Roles: map[string]string{"bob": "admin"}},
		},
		"internal": {
			token: "classic", edit: func(h *githost.Hosted) { h.Visibility = "internal" }, changes: []string{"create the internal repository acme/fleet"},
			want: testgithost.Repository{Owner: "acme", Name: "fleet", Visibility: "internal", Roles: map[string]string{"ada": "admin"}},
		},
		"personal": {
			token: "bobs", edit: func(h *githost.Hosted) { h.Owner, h.Personal = "bob", true }, changes: []string{"create the private repository bob/fleet"},
			want: testgithost.Repository{Owner: "bob", Name: "fleet", Visibility: "private", Roles: map[string]string{"bob": "admin"}},
		},
		"public, scope public_repo": {
			token: "public", setup: func(h *hub) { h.Classic("public", "bob", "public_repo") },
			edit:    func(h *githost.Hosted) { h.Owner, h.Personal, h.Visibility = "bob", true, "public" },
			changes: []string{"create the public repository bob/fleet"},
			want:    testgithost.Repository{Owner: "bob", Name: "fleet", Visibility: "public", Roles: map[string]string{"bob": "admin"}},
		},
		"fine-grained token": {
			token: "fine", setup: func(h *hub) { h.Fine("fine", "bob", "administration=write", "contents=write") },
			changes: []string{"create the private repository acme/fleet"},
			want:    testgithost.Repository{Owner: "acme", Name: "fleet", Visibility: "private", Roles: map[string]string{"bob": "admin"}},
		},
		"app": {
			token: "ghs_app", setup: func(h *hub) { h.Fine("ghs_app", "", "administration=write", "contents=write") },
			changes: []string{"create the private repository acme/fleet"},
			want:    testgithost.Repository{Owner: "acme", Name: "fleet", Visibility: "private"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHub(t)
			if test.setup != nil {
				test.setup(h)
			}
			h.equal(test.changes, h.prepare(h.host(test.token, test.edit)))
			got := h.Repository(test.want.FullName())
			test.want.Keys = []*testgithost.Key{{ID: 2, Title: "flux", Key: key1, ReadOnly: true}}
			g := h.host(test.token, test.edit)
			if err := g.DeployKey(t.Context(), githost.DeployKey{Title: "flux", Public: key1 + " ada@laptop"}); err != nil {
				t.Error(err)
			}
			h.equal(test.want, bare(*got))
			h.Forget()
			h.equal([]string(nil), h.prepare(g))
			if err := g.DeployKey(t.Context(), githost.DeployKey{Title: "flux", Public: key1}); err != nil {
				t.Error(err)
			}
			h.equal([]string(nil), h.Changes())
		})
	}
}

// bare returns a repository without empty fields.
func bare(r testgithost.Repository) testgithost.Repository {
	r.Protection, r.Rules = nil, nil
	if len(r.Roles) == 0 {
		r.Roles = nil
	}
	if len(r.Teams) == 0 {
		r.Teams = nil
	}
	return r
}

// TestGitHubReconciles checks that existing settings change only with --reconcile.
func TestGitHubReconciles(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	r := h.add("acme/fleet", "public")
	r.Description, r.Teams["dev"] = "Theirs", "admin"
	edit := func(h *githost.Hosted) {
		h.Description, h.Teams = "Ours", []githost.Team{{Name: "dev", Permission: "pull"}}
	}
	h.equal([]string(nil), h.prepare(h.host("classic", edit)))
	h.equal([]string(nil), h.Changes())
	changes := h.prepare(h.host("classic", func(h *githost.Hosted) { edit(h); h.Reconcile = true }))
	h.equal([]string{
		"make the repository acme/fleet private (it is public)", `set the description of the repository acme/fleet to "Ours"`,
		`change the permission of the team acme/dev to "pull" (it is "admin")`,
	}, changes)
	h.equal(testgithost.Repository{Owner: "acme", Name: "fleet", Visibility: "private", Description: "Ours", Teams: map[string]string{"dev": "pull"}}, bare(*r))
}

func TestGitHubAddresses(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	h.add("acme/fleet", "private")
	end := time.Date(2026, 12, 24, 18, 0, 0, 0, time.UTC)
	h.Tokens["classic"].Expires = end
	for _, test := range []struct {
		edit func(*githost.Hosted)
		want string
	}{
		{nil, "ssh://git@127.0.0.1/acme/fleet"},
		{func(h *githost.Hosted) { h.SSHHostname = "ssh.example.com:443" }, "ssh://git@ssh.example.com:443/acme/fleet"},
		{func(h *githost.Hosted) { h.TokenAuth = true }, "https://" + h.Hostname + "/acme/fleet.git"},
	} {
		survey, err := h.host("classic", test.edit).Survey(t.Context(), want)
		if err != nil {
			t.Fatal(err)
		}
		h.equal(githost.Survey{Exists: true, Account: "ada", Expires: end, Repository: githost.Repository{
			Access:  githost.Access{URL: "https://" + h.Hostname + "/acme/fleet.git", Username: "git", Password: "classic", CABundle: h.CA},
			SyncURL: test.want, DefaultBranch: "main",
		}}, survey)
	}
}

func TestGitHubProtection(t *testing.T) {
	t.Parallel()
	rule := func(types ...string) func(*testgithost.Repository) {
		return func(r *testgithost.Repository) {
			for _, typ := range types {
				r.Rules["main"] = append(r.Rules["main"], testgithost.GitHubRule{Type: typ, Ruleset: 7, Bypass: []string{"bob"}})
			}
		}
	}
	classic := func(p testgithost.GitHubProtection) func(*testgithost.Repository) {
		return func(r *testgithost.Repository) { r.Protection["main"] = &p }
	}
	for name, test := range map[string]struct {
		token string
		setup func(*testgithost.Repository)
		want  string
	}{
		"open":                  {"classic", func(*testgithost.Repository) {}, ""},
		"rules":                 {"classic", rule("pull_request", "deletion", "required_status_checks", "copilot_code_review"), "changes require a pull request, status checks are required"},
		"rules, bypassed":       {"bobs", rule("pull_request"), ""},
		"harmless rules":        {"classic", rule("deletion", "non_fast_forward", "creation"), ""},
		"reviews, admin":        {"classic", classic(testgithost.GitHubProtection{Reviews: true}), ""},
		"reviews, admin too":    {"classic", classic(testgithost.GitHubProtection{Reviews: true, Checks: true, EnforceAdmins: true}), "changes require a pull request, status checks are required"},
		"locked":                {"classic", classic(testgithost.GitHubProtection{Locked: true}), "it is locked"},
		"pushers, not this one": {"classic", classic(testgithost.GitHubProtection{EnforceAdmins: true, Pushers: []string{"bob"}}), "pushes are restricted"},
		"pushers, this one":     {"classic", classic(testgithost.GitHubProtection{EnforceAdmins: true, Pushers: []string{"ada"}}), ""},
		"checks, no admin":      {"bobs", classic(testgithost.GitHubProtection{Checks: true}), "status checks are required"},
		"hidden, no admin":      {"bobs", classic(testgithost.GitHubProtection{Reviews: true}), ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHub(t)
			r := h.add("acme/fleet", "private")
			r.Roles["bob"] = "push"
			if err := h.Git.Commit("acme/fleet", "main", "One", map[string]string{"README.md": "x"}); err != nil {
				t.Fatal(err)
			}
			test.setup(r)
			survey, err := h.host(test.token, func(h *githost.Hosted) { h.TokenAuth = true }).Survey(t.Context(), githost.Want{Branch: "main"})
			if err != nil {
				t.Fatal(err)
			}
			h.equal(test.want, survey.Protected)
		})
	}
	t.Run("restricted creation", func(t *testing.T) {
		t.Parallel()
		h := newHub(t)
		r := h.add("acme/fleet", "private")
		r.Rules["main"] = []testgithost.GitHubRule{{Type: "creation", Ruleset: 1}}
		survey, err := h.host("classic", nil).Survey(t.Context(), want)
		if err != nil || survey.Protected != "creation is restricted" {
			t.Errorf("%q, %v", survey.Protected, err)
		}
	})
}

// TestGitHubMergedPull requires an error for a pull request without commits.
func TestGitHubMergedPull(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	if err := h.GitHub.Add("repository acme/fleet\ncommit acme/fleet main a b\ncommit acme/fleet flux c d"); err != nil {
		t.Fatal(err)
	}
	change := githost.Change{Head: "flux", Base: "main", Title: "Add Flux", Body: "Please."}
	if _, err := h.host("classic", nil).RequestChange(t.Context(), change); err != nil {
		t.Fatal(err)
	}
	if err := h.Merge("acme/fleet"); err != nil {
		t.Fatal(err)
	}
	_, err := h.host("classic", nil).RequestChange(t.Context(), change)
	if err == nil || strings.ReplaceAll(err.Error(), h.Hostname, "HOST") != `opening a pull request from "flux" to "main": HOST rejected the request (422): Validation Failed: No commits between main and flux` {
		t.Errorf("a pull request without commits: %v", err)
	}
}

// TestGitHubRace creates the repository between Survey and Ensure.
func TestGitHubRace(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	g := h.host("classic", nil)
	survey, err := g.Survey(t.Context(), want)
	if err != nil || survey.Exists {
		t.Fatalf("%v %v", survey, err)
	}
	h.add("acme/fleet", "private")
	if _, err := g.Ensure(t.Context()); err != nil {
		t.Error(err)
	}
	h.equal([]string(nil), h.Changes())
}
