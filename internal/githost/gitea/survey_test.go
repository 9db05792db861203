package gitea

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/fluxkit/flux/internal/githost"
	"github.com/fluxkit/flux/internal/githost/rest"
	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/test/support/testgitea"
)

// missingScopes checks that an error names all missing scopes.
func missingScopes(t *testing.T, s *server) {
	s.repository(t, "alice/scoped")
	for name, test := range map[string]struct {
		repository string
		scopes     []string
		teams      []githost.Team
		lacks      string
	}{
		"no scope":                 {"alice/scoped", []string{"read:misc"}, nil, "the token is missing the scope write:repository"},
		"read scope":               {"alice/scoped", []string{"read:repository"}, nil, "the token is missing the scope write:repository"},
		"no personal repositories": {"alice/unmade", []string{"write:repository"}, nil, "the token is missing the scope write:user"},
		"read scopes, to create":   {"alice/unmade", []string{"read:repository", "read:user"}, nil, "the token is missing the scopes write:repository and write:user"},
		"no organization":          {"acme/unmade", []string{"write:repository"}, nil, "the token is missing the scope write:organization"},
		"no writing, organization": {"acme/unmade", []string{"read:repository", "write:organization"}, nil, "the token is missing the scope write:repository"},
		"no teams":                 {"acme/scoped", []string{"write:repository"}, []githost.Team{{Name: "readers", Permission: "read"}}, "the token is missing the scope read:organization"},
		"enough for an existing":   {"alice/scoped", []string{"write:repository"}, nil, ""},
		"enough for a personal":    {"alice/unmade", []string{"write:repository", "write:user"}, nil, ""},
		"enough for a common":      {"acme/unmade", []string{"write:repository", "write:organization"}, []githost.Team{{Name: "readers", Permission: "read"}}, ""},
	} {
		if test.repository == "acme/scoped" {
			s.repository(t, test.repository)
		}
		g := s.gitea(t, test.repository, s.Token(t, s.alice, test.scopes...), func(h *githost.Hosted) { h.Teams = test.teams })
		_, err := g.Survey(t.Context(), githost.Want{Branch: "main", KeyTitle: "flux"})
		if test.lacks == "" && err != nil || test.lacks != "" && (err == nil || err.Error() != test.lacks) {
			t.Errorf("%s: %v, want %q", name, err, test.lacks)
		}
		var known *hint.Error
		if errors.As(err, &known) && !strings.Contains(known.Hint, "https://"+s.Hostname+"/user/settings/applications") {
			t.Errorf("%s: the remedy is %q", name, known.Hint)
		}
	}
	s.absent(t, "alice/unmade")
	s.absent(t, "acme/unmade")
}

// TestGiteaScopes checks the messages about scopes of several versions.
func TestGiteaScopes(t *testing.T) {
	t.Parallel()
	for message, want := range map[string]string{
		"token does not have at least one of required scope(s): [write:repository]":                                            "the token is missing the scope write:repository",
		"token does not have at least one of required scope(s): [read:repository]":                                             "the token is missing the scope write:repository",
		"token does not have at least one of required scope(s): [read:user]":                                                   "the token is missing the scope read:user",
		"token does not have at least one of required scope(s), required=[write:user], token scope=read:user":                  "the token is missing the scopes write:repository and write:user",
		"token does not have at least one of required scope(s), required=[write:user], token scope=read:user,write:repository": "the token is missing the scope write:user",
	} {
		d := New(githost.Hosted{Hostname: "git.example.com", Owner: "me", Name: "fleet", Personal: true}, nil).Driver.(*driver)
		d.absent = strings.Contains(message, "write:user")
		err := d.API.Explain(t.Context(), "looking", &rest.StatusError{Code: http.StatusForbidden, Message: message})
		if err.Error() != want {
			t.Errorf("%s: %v, want %q", message, err, want)
		}
	}
	api := New(githost.Hosted{Hostname: "git.example.com"}, nil).API
	if err := api.Explain(t.Context(), "looking", &rest.StatusError{Code: http.StatusForbidden, Message: "only admins"}); err.Error() != "looking: no permission (403): only admins" {
		t.Error(err)
	}
}

// surveyErrors checks that Survey reports what would fail.
func surveyErrors(t *testing.T, s *server) {
	s.repository(t, "alice/archived")
	s.As(t, s.alice, http.MethodPatch, "/repos/alice/archived", map[string]any{"archived": true}, nil)
	s.make(t, "alice/closed", true) // an empty one is not mirrored
	s.As(t, s.alice, http.MethodPatch, "/repos/alice/closed", map[string]any{"has_pull_requests": false}, nil)
	s.As(t, s.alice, http.MethodPost, "/repos/migrate", map[string]any{
		"clone_addr": "https://" + s.Hostname + "/alice/closed.git", "auth_token": s.alice.Token, "repo_name": "mirror", "mirror": true,
	}, nil)
	s.repository(t, "acme/read")
	s.As(t, s.alice, http.MethodPut, "/repos/acme/read/teams/readers", nil, nil)
	s.repository(t, "acme/pushed")
	s.As(t, s.alice, http.MethodPut, "/repos/acme/pushed/collaborators/bob", map[string]any{"permission": "write"}, nil)

	common := func(h *githost.Hosted) { h.Personal = false }
	for name, test := range map[string]struct {
		repository, token string
		want              githost.Want
		change            func(*githost.Hosted)
		problem           string
	}{
		"unknown token":                 {"alice/archived", strings.Repeat("0", 40), githost.Want{}, nil, "checking the token: " + s.Hostname + " rejected the token (401)"},
		"archived":                      {"alice/archived", s.alice.Token, githost.Want{}, nil, "repository alice/archived is archived and read-only"},
		"mirror":                        {"alice/mirror", s.alice.Token, githost.Want{}, nil, "repository alice/mirror is a mirror and read-only"},
		"public only":                   {"alice/closed", s.Token(t, s.alice, "public-only", "write:repository"), githost.Want{}, nil, "reading repository alice/closed: the token is for public repositories only"},
		"no pull requests":              {"alice/closed", s.alice.Token, githost.Want{ChangeRequest: true}, nil, "pull requests are disabled for repository alice/closed"},
		"no push":                       {"acme/read", s.bob.Token, githost.Want{}, nil, "bob has no permission to push to acme/read"},
		"no deploy key":                 {"acme/pushed", s.bob.Token, githost.Want{KeyTitle: "flux"}, nil, "adding a deploy key: bob is not an administrator of acme/pushed"},
		"no edit":                       {"acme/pushed", s.bob.Token, githost.Want{}, func(h *githost.Hosted) { h.Reconcile, h.Visibility = true, "public" }, "bob is not an administrator of acme/pushed and cannot make the repository acme/pushed public (it is private)"},
		"no repositories":               {"acme/bobs", s.bob.Token, githost.Want{}, nil, "bob has no permission to create repositories in organization acme"},
		"another's account":             {"alice/bobs", s.bob.Token, githost.Want{}, nil, "repository alice/bobs cannot be created: the token belongs to bob"},
		"a user, not personal":          {"alice/common", s.alice.Token, githost.Want{}, common, "alice is a user on " + s.Hostname + ", not an organization"},
		"no such organization":          {"unknown/fleet", s.alice.Token, githost.Want{}, common, "organization unknown does not exist on " + s.Hostname + ", or alice cannot read it"},
		"no such team":                  {"acme/read", s.alice.Token, githost.Want{}, func(h *githost.Hosted) { h.Teams = []githost.Team{{Name: "ops", Permission: "read"}} }, `organization acme has no team "ops"`},
		"a team without the permission": {"acme/read", s.alice.Token, githost.Want{}, func(h *githost.Hosted) { h.Teams = []githost.Team{{Name: "readers", Permission: "write"}} }, "team readers has read access to its repositories, not write"},
		"a team of a user":              {"alice/closed", s.alice.Token, githost.Want{}, func(h *githost.Hosted) { h.Teams = []githost.Team{{Name: "readers", Permission: "read"}} }, "repository alice/closed belongs to a user, and users have no teams"},
	} {
		test.want.Branch = "main"
		changes := []func(*githost.Hosted){}
		if test.change != nil {
			changes = append(changes, test.change)
		}
		_, err := s.gitea(t, test.repository, test.token, changes...).Survey(t.Context(), test.want)
		var known *hint.Error
		if !errors.As(err, &known) || known.Hint == "" || err.Error() != test.problem || strings.Contains(err.Error()+known.Hint, test.token) {
			t.Errorf("%s: %v, want %q", name, err, test.problem)
		}
	}
	for _, repository := range []string{"acme/bobs", "alice/bobs", "alice/common", "unknown/fleet"} {
		s.absent(t, repository)
	}
}

func protectedBranches(t *testing.T, s *server) {
	s.make(t, "acme/protected", true)
	s.As(t, s.alice, http.MethodPut, "/repos/acme/protected/collaborators/bob", map[string]any{"permission": "write"}, nil)
	for _, rule := range []map[string]any{
		{"rule_name": "main", "enable_push": true, "enable_push_whitelist": true, "push_whitelist_usernames": []string{"alice"}},
		{"rule_name": "release/*", "enable_push": false},
	} {
		s.As(t, s.alice, http.MethodPost, "/repos/acme/protected/branch_protections", rule, nil)
	}
	for name, test := range map[string]struct {
		token, branch, want string
	}{
		"one of the list":     {s.alice.Token, "main", ""},
		"not of the list":     {s.bob.Token, "main", "branch main is protected, and bob is not allowed to push to it"},
		"no such branch yet":  {s.alice.Token, "release/1.0", "branch release/1.0 is protected by rule release/*, and alice is not allowed to push to it"},
		"another branch":      {s.alice.Token, "release", ""},
		"rules are not shown": {s.bob.Token, "release/1.0", ""},
	} {
		survey, err := s.gitea(t, "acme/protected", test.token).Survey(t.Context(), githost.Want{Branch: test.branch})
		if err != nil || survey.Protected != test.want {
			t.Errorf("%s: %q, %v, want %q", name, survey.Protected, err, test.want)
		}
	}
}

// sshAddresses come from the server, which listens on another port.
func sshAddresses(t *testing.T, s *server) {
	s.repository(t, "alice/there")
	bySSH := func(h *githost.Hosted) { h.TokenAuth = false }
	for name, want := range map[string]string{
		"alice/there":     "ssh://git@" + s.SSH + "/alice/there",
		"alice/not-there": "ssh://git@" + s.SSH + "/alice/not-there",
	} {
		survey, err := s.gitea(t, name, s.alice.Token, bySSH).Survey(t.Context(), githost.Want{Branch: "main", KeyTitle: "flux"})
		if err != nil || survey.Repository.SyncURL != want || survey.Repository.Access.URL != "https://"+s.Hostname+"/"+name+".git" {
			t.Errorf("%s: %+v, %v", name, survey.Repository, err)
		}
	}
	named := func(h *githost.Hosted) { h.TokenAuth, h.SSHHostname = false, "ssh.example.com:443" }
	survey, err := s.gitea(t, "alice/there", s.alice.Token, named).Survey(t.Context(), githost.Want{Branch: "main"})
	if err != nil || survey.Repository.SyncURL != "ssh://git@ssh.example.com:443/alice/there" {
		t.Errorf("with --ssh-hostname: %s, %v", survey.Repository.SyncURL, err)
	}
}

func renamedRepository(t *testing.T, s *server) {
	s.repository(t, "alice/old-name")
	s.As(t, s.alice, http.MethodPatch, "/repos/alice/old-name", map[string]any{"name": "new-name"}, nil)
	_, repository := ensure(t, s.gitea(t, "alice/old-name", s.alice.Token), githost.Want{Branch: "main"})
	if want := "https://" + s.Hostname + "/alice/new-name.git"; repository.SyncURL != want {
		t.Errorf("the cluster fetches %s, not %s", repository.SyncURL, want)
	}
}

// TestGiteaUnreachable checks the errors of connections to a server that is not Gitea.
func TestGiteaUnreachable(t *testing.T) {
	t.Parallel()
	s := &server{Server: testgitea.Start(t)}
	for name, test := range map[string]struct {
		change  func(*githost.Hosted)
		problem string
	}{
		"unknown authority": {func(h *githost.Hosted) { h.CABundle = nil }, "checking the token: the certificate of " + s.Hostname + " is signed by an unknown authority"},
		"not plain HTTP":    {func(h *githost.Hosted) { h.Scheme = "http" }, "checking the token: " + s.Hostname + " does not accept HTTP requests"},
		"not HTTP":          {func(h *githost.Hosted) { h.Hostname = s.SSH }, "checking the token: " + s.SSH + " does not serve TLS"},
	} {
		_, err := s.gitea(t, "alice/fleet", s.Admin.Token, test.change).Survey(t.Context(), githost.Want{Branch: "main"})
		if err == nil || err.Error() != test.problem {
			t.Errorf("%s: %v, want %q", name, err, test.problem)
		}
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("interrupted"))
	if _, err := s.gitea(t, "alice/fleet", s.Admin.Token).Survey(ctx, githost.Want{Branch: "main"}); err == nil || !strings.Contains(err.Error(), "interrupted") {
		t.Errorf("interrupted: %v", err)
	}
}
