package gitlab

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/xanzy/go-gitlab"

	"github.com/fluxkit/flux/internal/githost"
	"github.com/fluxkit/flux/internal/githost/rest"
	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/test/support/testgithost"
)

func openGitLab(t *testing.T, contents string) *testgithost.GitLab {
	t.Helper()
	g, err := testgithost.OpenGitLab(contents)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	})
	return g
}

func newGitLab(t *testing.T, g *testgithost.GitLab, edit func(*githost.Hosted)) githost.Host {
	t.Helper()
	h := githost.Hosted{
		Hostname: g.Hostname, Scheme: "https", BasePath: g.Base, Token: "alice-api", CABundle: g.CA,
		Owner: "acme", Name: "fleet", Visibility: "private", Branch: "main",
	}
	if edit != nil {
		edit(&h)
	}
	client, err := rest.Caller{UserAgent: "test", Now: time.Now, Waiting: t.Logf}.Client(h)
	if err != nil {
		t.Fatal(err)
	}
	host, err := New(h, client)
	if err != nil {
		t.Fatal(err)
	}
	return host
}

// TestGitLabSurveyErrors requires that Survey reports what would fail, and that it
// changes nothing.
func TestGitLabSurveyErrors(t *testing.T) {
	t.Parallel()
	push := githost.Want{Branch: "main"}
	keyed := githost.Want{Branch: "main", KeyTitle: "flux"}
	for name, test := range map[string]struct {
		contents string
		edit     func(*githost.Hosted)
		want     githost.Want
		err      string
		hint     string
	}{
		"unknown token": {
			"", func(h *githost.Hosted) { h.Token = "unknown" }, push,
			"reading the account of the token: HOST rejected the token (401)", "GITLAB_TOKEN",
		},
		"expired token": {
			"", func(h *githost.Hosted) { h.Token = "alice-old" }, push, "reading the account of the token: the token has expired", "create a new one",
		},
		"revoked token": {
			"", func(h *githost.Hosted) { h.Token = "alice-gone" }, push, "reading the account of the token: the token has been revoked", "create a new one",
		},
		"scope to read": {
			"", func(h *githost.Hosted) { h.Token = "alice-user" }, push,
			`reading the project: the token is missing the scope "api": it has read_user`, "create a token with the scope api",
		},
		"scope to push": {
			"", func(h *githost.Hosted) { h.Token = "alice-read" }, push,
			`pushing to the repository: the token is missing the scope "api": it has read_api`, "scope api",
		},
		"scope to create": {
			"", func(h *githost.Hosted) { h.Token = "alice-git" }, push,
			`to create the private project acme/fleet: the token is missing the scope "api": it has read_api, write_repository`, "scope api",
		},
		"scope for a key": {
			"project acme/fleet", func(h *githost.Hosted) { h.Token = "alice-git" }, keyed,
			`adding a deploy key: the token is missing the scope "api": it has read_api, write_repository`, "scope api",
		},
		"scope for a token": {
			"project acme/fleet", func(h *githost.Hosted) { h.Token = "alice-git" }, githost.Want{Branch: "main", DeployToken: true},
			`creating a deploy token: the token is missing the scope "api": it has read_api, write_repository`, "scope api",
		},
		"scope for a request": {
			"project acme/fleet", func(h *githost.Hosted) { h.Token = "alice-git" }, githost.Want{Branch: "main", ChangeRequest: true},
			`opening a merge request: the token is missing the scope "api": it has read_api, write_repository`, "scope api",
		},
		"scope, older version": {
			"old", func(h *githost.Hosted) { h.Token = "alice-user" }, push,
			`reading project acme/fleet: the token is missing the scope "api"`, "scope",
		},
		"top group": {
			"", func(h *githost.Hosted) { h.Owner = "acne/platform/infra" }, push,
			"group acne not found, or the token of alice cannot read it", "--owner",
		},
		"subgroup": {
			"", func(h *githost.Hosted) { h.Owner = "acme/platform/infra/eu" }, push,
			"group acme/platform has no subgroup acme/platform/infra, or the token of alice cannot read it", "create the subgroup",
		},
		"user, not group": {
			"", func(h *githost.Hosted) { h.Owner = "bob" }, push, "bob is a user, not a group", "--personal",
		},
		"group, not user": {
			"", func(h *githost.Hosted) { h.Personal = true }, push, "acme is a group, not a user", "omit --personal",
		},
		"another user": {
			"", func(h *githost.Hosted) { h.Personal, h.Owner = true, "bob" }, push,
			"project bob/fleet does not exist or the token cannot read it, and alice cannot create it for another user", "token of bob",
		},
		"group creates nothing": {
			"", func(h *githost.Hosted) { h.Owner = "closed" }, push, "group closed does not allow creating projects", "settings",
		},
		"role to create": {
			"", func(h *githost.Hosted) { h.Token = "bob-api" }, push,
			"bob has no permission to create projects in group acme: the role Maintainer is required, but the account has Developer", "role Maintainer",
		},
		"visibility": {
			"", func(h *githost.Hosted) { h.Visibility = "public" }, push,
			"group acme is private and cannot contain public projects", "--visibility=private",
		},
		"name": {
			"", func(h *githost.Hosted) { h.Name = "-fleet" }, push, `GitLab does not accept the project name "-fleet"`, "--repository",
		},
		"archived": {
			"project acme/fleet archived", nil, push, "project acme/fleet is archived and read-only", "unarchive",
		},
		"pending deletion": {
			"project acme/fleet deleting", nil, push, "project acme/fleet is scheduled for deletion", "restore",
		},
		"no repository": {
			"project acme/fleet disabled", nil, push, "the repository of project acme/fleet is disabled", "enable it",
		},
		"no requests": {
			"project acme/fleet norequests", nil, githost.Want{Branch: "main", ChangeRequest: true}, "project acme/fleet has merge requests disabled", "enable them",
		},
		"role to push": {
			"user eve\ntoken eve-api eve api\nproject acme/fleet internal eve=reporter", func(h *githost.Hosted) { h.Token = "eve-api" }, push,
			"eve has no permission to push to project acme/fleet: the role Developer is required, but the account has Reporter", "role Developer",
		},
		"no role": {
			"user eve\ntoken eve-api eve api\nproject acme/fleet public", func(h *githost.Hosted) { h.Token = "eve-api" }, push,
			"eve has no permission to push to project acme/fleet: the role Developer is required, but the account has no role", "role Developer",
		},
		"role for a key": {
			"project acme/fleet", func(h *githost.Hosted) { h.Token = "bob-api" }, keyed,
			"bob has no permission to add a deploy key to project acme/fleet: the role Maintainer is required, but the account has Developer", "role Maintainer",
		},
		"role for a key of a new project": {
			"", func(h *githost.Hosted) { h.Token, h.Owner = "bob-api", "public-acme" }, keyed,
			"bob has no permission to add a deploy key to project public-acme/fleet: the role Maintainer is required, but the account has Developer", "role Maintainer",
		},
		"no SSH": {
			"project acme/fleet\nnossh", nil, keyed, "Git over SSH is disabled on HOST", "--token-auth",
		},
		"no HTTP": {
			"project acme/fleet\nnohttp", nil, push, "Git over HTTP is disabled on HOST", "administrator",
		},
		"role to reconcile": {
			"project public-acme/fleet private", func(h *githost.Hosted) { h.Owner, h.Reconcile, h.Visibility = "public-acme", true, "public" }, push,
			"alice has no permission to change the visibility of project public-acme/fleet: the role Owner is required, but the account has Maintainer", "role Owner",
		},
		"no such team": {
			"project acme/fleet", func(h *githost.Hosted) { h.Teams = []githost.Team{{Name: "acme/unknown", Permission: "maintain"}} }, push,
			"group acme/unknown not found, or the token of alice cannot read it", "--team",
		},
		"team above": {
			"project acme/platform/fleet", func(h *githost.Hosted) {
				h.Owner, h.Teams = "acme/platform", []githost.Team{{Name: "acme", Permission: "maintain"}}
			}, push,
			"the project is in group acme, whose members already have access", "omit --team=acme",
		},
		"shares locked": {
			"", func(h *githost.Hosted) {
				h.Owner, h.Teams = "locked", []githost.Team{{Name: "acme", Permission: "maintain"}}
			}, push,
			"group locked does not allow sharing projects with other groups", "omit --team",
		},
		"rate limit": {
			"limit 3 3600", nil, push, "", "run the command again",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := openGitLab(t, testgithost.GitLabPeople+test.contents)
			before := testgithost.State(t, g)
			_, err := newGitLab(t, g, test.edit).Survey(t.Context(), test.want)
			if test.err == "" {
				var limit *rest.RateLimitError
				if !errors.As(err, &limit) || time.Until(limit.Until) < 50*time.Minute {
					t.Fatalf("no rate limit, or one without its end: %v", err)
				}
				test.err = err.Error()
			}
			testgithost.CheckError(t, err, strings.ReplaceAll(test.err, "HOST", g.Hostname), test.hint)
			if diff := cmp.Diff(before, testgithost.State(t, g)); diff != "" || len(g.Changes()) > 0 {
				t.Errorf("the survey changed %v: %s", g.Changes(), diff)
			}
			if err != nil && strings.Contains(err.Error(), "alice-") {
				t.Errorf("the token is shown: %v", err)
			}
		})
	}
}

// TestGitLabEnsure checks the state after Ensure, and that the next run changes
// nothing.
func TestGitLabEnsure(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		contents string
		edit     func(*githost.Hosted)
		changes  []string
		state    string
		http     string
		ssh      string
	}{
		"group": {
			"", nil, []string{"create the private project acme/fleet"}, "acme/fleet private empty\n", "/acme/fleet.git", "/acme/fleet",
		},
		"subgroup, described, for a team": {
			"", func(h *githost.Hosted) {
				h.Owner, h.Description, h.Teams = "acme/platform", "The fleet", []githost.Team{{Name: "acme/operators", Permission: "developer"}, {Name: "public-acme", Permission: "admin"}}
			},
			[]string{
				"create the private project acme/platform/fleet", "grant group acme/operators the role Developer in acme/platform/fleet",
				"grant group public-acme the role Owner in acme/platform/fleet",
			},
			"acme/platform/fleet private empty \"The fleet\"\n  group acme/operators developer\n  group public-acme owner\n",
			"/acme/platform/fleet.git", "/acme/platform/fleet",
		},
		"personal, internal": {
			"", func(h *githost.Hosted) { h.Personal, h.Owner, h.Visibility = true, "alice", "internal" },
			[]string{"create the internal project alice/fleet"}, "alice/fleet internal empty\n", "/alice/fleet.git", "/alice/fleet",
		},
		"public, by a developer": {
			"", func(h *githost.Hosted) { h.Token, h.Owner, h.Visibility = "bob-api", "public-acme", "public" },
			[]string{"create the public project public-acme/fleet"}, "public-acme/fleet public empty\n", "/public-acme/fleet.git", "/public-acme/fleet",
		},
		"older version, administrator": {
			"old", func(h *githost.Hosted) { h.Token = "root-api" }, []string{"create the private project acme/fleet"}, "acme/fleet private empty\n", "/acme/fleet.git", "/acme/fleet",
		},
		"below a path": {
			"base tools/gitlab", nil, []string{"create the private project acme/fleet"}, "acme/fleet private empty\n", "/tools/gitlab/acme/fleet.git", "/acme/fleet",
		},
		"existing, other settings": {
			"project acme/fleet internal\ngrant acme/fleet acme/operators guest", func(h *githost.Hosted) { h.Teams = []githost.Team{{Name: "acme/operators", Permission: "owner"}} },
			nil, "acme/fleet internal empty\n  group acme/operators guest\n", "/acme/fleet.git", "/acme/fleet",
		},
		"existing, other case": {
			"project Acme-Labs/Fleet private alice=owner", func(h *githost.Hosted) { h.Owner = "acme-labs" },
			nil, "Acme-Labs/Fleet private empty\n  user alice owner\n", "/Acme-Labs/Fleet.git", "/Acme-Labs/Fleet",
		},
		"reconciled": {
			"project public-acme/fleet public alice=owner\ngrant public-acme/fleet acme/operators guest",
			func(h *githost.Hosted) {
				h.Owner, h.Reconcile, h.Description, h.Teams = "public-acme", true, "New", []githost.Team{{Name: "acme/operators", Permission: "maintain"}}
			},
			[]string{
				"make the project public-acme/fleet private (it is public)", `set the description of the project public-acme/fleet to "New"`,
				"change the role of group acme/operators in public-acme/fleet from Guest to Maintainer",
			},
			"public-acme/fleet private empty \"New\"\n  user alice owner\n  group acme/operators maintainer\n", "/public-acme/fleet.git", "/public-acme/fleet",
		},
		"little rights for little": {
			"project acme/fleet", func(h *githost.Hosted) { h.Token, h.TokenAuth = "alice-git", true }, nil, "acme/fleet private empty\n", "/acme/fleet.git", "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := openGitLab(t, testgithost.GitLabPeople+test.contents)
			host := newGitLab(t, g, test.edit)
			survey, err := host.Survey(t.Context(), githost.Want{Branch: "main"})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.changes, survey.Changes); diff != "" || len(g.Changes()) > 0 {
				t.Errorf("the survey changed %v, and says: %s", g.Changes(), diff)
			}
			if survey.Exists != strings.Contains(test.contents, "project") {
				t.Errorf("there: %t", survey.Exists)
			}
			made, err := host.Ensure(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.state, testgithost.State(t, g)); diff != "" {
				t.Error(diff)
			}
			web, ssh := "https://"+g.Hostname+test.http, "ssh://git@"+g.SSHHostname+test.ssh
			if test.ssh == "" {
				ssh = web
			}
			if made.Access.URL != web || made.SyncURL != ssh || made.Access.Password != host.(withTokens).driver.Hosted.Token {
				t.Errorf("it is at %s and %s", made.Access.URL, made.SyncURL)
			}
			g.Forget()
			again := newGitLab(t, g, test.edit)
			if survey, err = again.Survey(t.Context(), githost.Want{Branch: "main"}); err != nil || len(survey.Changes) > 0 || !survey.Exists {
				t.Errorf("the second time: %v, %v", survey.Changes, err)
			}
			if _, err := again.Ensure(t.Context()); err != nil || len(g.Changes()) > 0 {
				t.Errorf("the second time: %v, %v", g.Changes(), err)
			}
		})
	}
}

// TestGitLabProtected requires that Survey reports what the server would reject.
func TestGitLabProtected(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		token, rule, want string
		empty             bool
	}{
		"open":               {"bob-api", "", "", false},
		"maintainers":        {"bob-api", "main maintainer", "project acme/fleet allows Maintainers to push, and the role of bob is Developer", false},
		"maintainer":         {"alice-api", "main maintainer", "", false},
		"administrator":      {"root-api", "main maintainer", "", false},
		"developers":         {"bob-api", "main developer", "", false},
		"no one":             {"alice-api", "main noone", "project acme/fleet allows no one to push, and the role of alice is Owner", false},
		"no branch yet":      {"bob-api", "m*n maintainer", "project acme/fleet allows Maintainers to push, and the role of bob is Developer", true},
		"none, another rule": {"bob-api", "release/* maintainer", "", true},
		"none, let in":       {"alice-api", "* maintainer", "", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := openGitLab(t, testgithost.GitLabPeople+"project acme/fleet\n")
			if !test.empty {
				if err := g.Git.Commit("acme/fleet", "main", "One", map[string]string{"a": "b"}); err != nil {
					t.Fatal(err)
				}
			}
			if test.rule != "" {
				if err := g.Add("protect acme/fleet " + test.rule); err != nil {
					t.Fatal(err)
				}
			}
			survey, err := newGitLab(t, g, func(h *githost.Hosted) { h.Token = test.token }).Survey(t.Context(), githost.Want{Branch: "main"})
			if err != nil || survey.Protected != test.want {
				t.Errorf("%q, %v", survey.Protected, err)
			}
		})
	}
}

// TestGitLabProtectedGroup requires the same of the first push to a new project.
func TestGitLabProtectedGroup(t *testing.T) {
	t.Parallel()
	const strict = "group strict private alice=maintainer bob=developer creation=developer protects\n"
	for _, contents := range []string{strict, strict + "old"} {
		g := openGitLab(t, testgithost.GitLabPeople+contents)
		for owner, protected := range map[string]string{
			"strict alice-api":    "",
			"public-acme bob-api": "",
			"strict bob-api":      "group strict protects the default branch of new projects: pushing is allowed to Maintainers, and the role of bob is Developer",
		} {
			name, token, _ := strings.Cut(owner, " ")
			survey, err := newGitLab(t, g, func(h *githost.Hosted) { h.Token, h.Owner = token, name }).Survey(t.Context(), githost.Want{Branch: "main"})
			if err != nil || survey.Protected != protected {
				t.Errorf("%s: %q, %v", owner, survey.Protected, err)
			}
		}
	}
}

// TestGitLabDeployKey checks the keys that only GitLab has.
func TestGitLabDeployKey(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		contents string
		key      githost.DeployKey
		write    bool
		state    string
		calls    int
	}{
		"expired":         {"key acme/fleet expired flux " + testgithost.KeyOne, githost.DeployKey{Title: "flux", Public: testgithost.KeyOne}, false, "  key ro flux ssh-ed25519\n", 2},
		"another project": {"project acme/other\nkey acme/other ro theirs " + testgithost.KeyOne, githost.DeployKey{Title: "flux", Public: testgithost.KeyOne}, true, "  key rw theirs ssh-ed25519\nacme/other private empty\n  key ro theirs ssh-ed25519\n", 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := openGitLab(t, testgithost.GitLabPeople+"project acme/fleet\n"+test.contents)
			edit := func(h *githost.Hosted) { h.ReadWriteKey = test.write }
			host := newGitLab(t, g, edit)
			if _, err := host.Survey(t.Context(), githost.Want{Branch: "main"}); err != nil {
				t.Fatal(err)
			}
			if err := host.DeployKey(t.Context(), test.key); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff("acme/fleet private empty\n"+test.state, testgithost.State(t, g)); diff != "" || len(g.Changes()) != test.calls {
				t.Errorf("by %v: %s", g.Changes(), diff)
			}
			g.Forget()
			if err := host.DeployKey(t.Context(), test.key); err != nil || len(g.Changes()) > 0 {
				t.Errorf("the second time: %v, %v", g.Changes(), err)
			}
		})
	}
	g := openGitLab(t, testgithost.GitLabPeople+"project acme/fleet\nuserkey "+testgithost.KeyOne)
	host := newGitLab(t, g, nil)
	if _, err := host.Survey(t.Context(), githost.Want{Branch: "main"}); err != nil {
		t.Fatal(err)
	}
	testgithost.CheckError(t, host.DeployKey(t.Context(), githost.DeployKey{Title: "flux", Public: testgithost.KeyOne}),
		"adding a deploy key to project acme/fleet: the key already belongs to a user, or to a project that alice cannot read", "--private-key-file")
}

func TestGitLabDeployToken(t *testing.T) {
	t.Parallel()
	g := openGitLab(t, testgithost.GitLabPeople+"project acme/fleet\n")
	host := newGitLab(t, g, nil)
	survey, err := host.Survey(t.Context(), githost.Want{Branch: "main", DeployToken: true})
	if err != nil || survey.Repository.SyncURL != "https://"+g.Hostname+"/acme/fleet.git" {
		t.Fatalf("%s, %v", survey.Repository.SyncURL, err)
	}
	first, firstToken, err := host.(githost.Tokener).DeployToken(t.Context(), "flux")
	if err != nil {
		t.Fatal(err)
	}
	second, secondToken, err := host.(githost.Tokener).DeployToken(t.Context(), "flux")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("acme/fleet private empty\n  deploy token flux read_repository\n", testgithost.State(t, g)); diff != "" {
		t.Error(diff)
	}
	if g.GitAccess(first, firstToken, "acme/fleet").Known {
		t.Error("the first token is still valid")
	}
	if access := g.GitAccess(second, secondToken, "acme/fleet"); !access.Read || access.Write {
		t.Errorf("the token allows %+v", access)
	}
}

func TestMatchesBranch(t *testing.T) {
	t.Parallel()
	for pattern, want := range map[string]bool{
		"main": true, "mai": false, "maine": false, "*": true, "m*": true, "*n": true, "m*n": true, "m*a*n": true, "x*": false, "m*x*n": false, "main*main": false,
	} {
		if got := matchesBranch(pattern, "main"); got != want {
			t.Errorf("%s: %t", pattern, got)
		}
	}
}

// TestEndless checks that listing the keys of a host that sends a response, or pages, without end stops at a limit
// that the error names.
func TestEndless(t *testing.T) {
	t.Parallel()
	for how, serve := range testgithost.Endless() {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			h := githost.Hosted{Owner: "acme", Name: "fleet", Token: "t0ken"}
			h.Hostname, h.CABundle = testgithost.StartHandler(t, serve)
			client, err := rest.Caller{Now: time.Now}.Client(h)
			if err != nil {
				t.Fatal(err)
			}
			host, err := New(h, client)
			if err != nil {
				t.Fatal(err)
			}
			host.(withTokens).driver.project = &gitlab.Project{ID: 1}
			err = host.DeployKey(t.Context(), githost.DeployKey{Title: "title", Public: testgithost.KeyOne})
			var known *hint.Error
			if !errors.As(err, &known) || !strings.Contains(err.Error(), how) {
				t.Errorf("got %v, want %q and a remedy", err, how)
			}
		})
	}
}
