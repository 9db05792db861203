package gitea

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fluxkit/flux/internal/githost"
	"github.com/fluxkit/flux/internal/githost/rest"
	"github.com/fluxkit/flux/test/support/testgitea"
	"github.com/fluxkit/flux/test/support/testopenapi"
)

// server is a Gitea with alice, who owns the organization acme, and bob, who
// is a member of its team readers.
type server struct {
	*testgitea.Server
	alice, bob testgitea.Account
	// description is the one that Gitea serves of its API.
	description *testopenapi.Description
}

// giteaOperations are the operations that bootstrap uses.
var giteaOperations = []string{
	"GET /user", "GET /users/{}", "GET /users/{}/orgs/{}/permissions", "POST /user/repos", "POST /orgs/{}/repos", "GET /orgs/{}/teams",
	"GET /repos/search", "GET /repos/{}/{}", "PATCH /repos/{}/{}", "GET /repos/{}/{}/branches/{...}", "GET /repos/{}/{}/branch_protections",
	"GET /repos/{}/{}/keys", "POST /repos/{}/{}/keys", "DELETE /repos/{}/{}/keys/{}", "GET /repos/{}/{}/pulls", "POST /repos/{}/{}/pulls",
	"GET /repos/{}/{}/teams", "PUT /repos/{}/{}/teams/{}",
}

func newServer(t *testing.T) *server {
	t.Helper()
	s := &server{Server: testgitea.Start(t)}
	s.alice, s.bob = s.User(t, "alice"), s.User(t, "bob")
	s.Organization(t, s.alice, "acme")
	readers := s.Team(t, s.alice, "acme", "readers", "read")
	s.Team(t, s.alice, "acme", "writers", "write")
	s.As(t, s.alice, http.MethodPut, fmt.Sprintf("/teams/%d/members/bob", readers), nil, nil)
	var text json.RawMessage
	err := s.Call(t.Context(), "", http.MethodGet, "/swagger.v1.json", nil, &text)
	if err == nil {
		s.description, err = testopenapi.Parse(text, "/api/v1", "", giteaOperations)
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// gitea returns the repository "owner/name" with a token.
func (s *server) gitea(t *testing.T, repository, token string, change ...func(*githost.Hosted)) *rest.Host {
	t.Helper()
	owner, name, _ := strings.Cut(repository, "/")
	h := githost.Hosted{
		Hostname: s.Hostname, Scheme: "https", Token: token, CABundle: s.CA, Owner: owner, Name: name,
		Personal: owner != "acme", Visibility: "private", Branch: "main", TokenAuth: true,
	}
	for _, c := range change {
		c(&h)
	}
	client, err := rest.Caller{UserAgent: "test", Now: time.Now, Waiting: t.Logf}.Client(h)
	if err != nil {
		t.Fatal(err)
	}
	if s.description != nil { // none for a server that is no Gitea
		client.Transport = testopenapi.Transport{Next: client.Transport, Description: s.description, Report: func(err error) { t.Error(err) }}
	}
	return New(h, client)
}

// repository creates an empty repository of alice.
func (s *server) repository(t *testing.T, name string) string {
	t.Helper()
	s.make(t, name, false)
	return name
}

// make creates a repository of alice, with or without a commit.
func (s *server) make(t *testing.T, name string, commit bool) {
	t.Helper()
	owner, short, _ := strings.Cut(name, "/")
	path := "/user/repos"
	if owner == "acme" {
		path = "/orgs/acme/repos"
	}
	s.As(t, s.alice, http.MethodPost, path, map[string]any{"name": short, "auto_init": commit, "default_branch": "main", "private": true}, nil)
}

// seen has the compared fields of a repository.
type seen struct {
	Private       bool   `json:"private"`
	Description   string `json:"description"`
	DefaultBranch string `json:"default_branch"`
	Empty         bool   `json:"empty"`
}

func (s *server) see(t *testing.T, repository string) seen {
	t.Helper()
	var found seen
	s.As(t, s.alice, http.MethodGet, "/repos/"+repository, nil, &found)
	return found
}

func (s *server) absent(t *testing.T, repository string) {
	t.Helper()
	if err := s.Call(t.Context(), s.Admin.Token, http.MethodGet, "/api/v1/repos/"+repository, nil, nil); err == nil {
		t.Errorf("%s was created", repository)
	}
}

func ensure(t *testing.T, g *rest.Host, want githost.Want) ([]string, githost.Repository) {
	t.Helper()
	survey, err := g.Survey(t.Context(), want)
	if err != nil {
		t.Fatal(err)
	}
	repository, err := g.Ensure(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return survey.Changes, repository
}

func TestGitea(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	for name, test := range map[string]func(*testing.T, *server){
		"create": createdRepositories, "reconcile": reconciled, "teams": teamsGivenAccess, "scopes": missingScopes,
		"survey errors": surveyErrors, "keys": deployKeys, "protection": protectedBranches, "request": pullRequests,
		"ssh": sshAddresses, "renamed": renamedRepository, "cut off": cutOff,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, s)
		})
	}
}

func createdRepositories(t *testing.T, s *server) {
	for name, test := range map[string]struct {
		change  func(*githost.Hosted)
		changes string
		see     seen
	}{
		"alice/fleet": {
			func(h *githost.Hosted) { h.Description = "What runs where" }, "create the private repository alice/fleet",
			seen{Private: true, Description: "What runs where", DefaultBranch: "main", Empty: true},
		},
		"acme/fleet": {
			func(h *githost.Hosted) { h.Visibility, h.Branch = "public", "trunk" }, "create the public repository acme/fleet",
			seen{DefaultBranch: "trunk", Empty: true},
		},
	} {
		want := githost.Want{Branch: test.see.DefaultBranch}
		changes, repository := ensure(t, s.gitea(t, name, s.alice.Token, test.change), want)
		if diff := cmp.Diff([]string{test.changes}, changes); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if diff := cmp.Diff(test.see, s.see(t, name)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if address := "https://" + s.Hostname + "/" + name + ".git"; repository.Access.URL != address || repository.SyncURL != address || repository.DefaultBranch != test.see.DefaultBranch {
			t.Errorf("%s: %+v", name, repository)
		}
		again := s.gitea(t, name, s.alice.Token, test.change)
		survey, err := again.Survey(t.Context(), want)
		if err != nil || !survey.Exists || len(survey.Changes) > 0 || survey.Account != "alice" || survey.Protected != "" {
			t.Errorf("%s: a second run finds %+v, %v", name, survey, err)
		}
	}
	// Two runs at once: the second creates a repository that exists by then.
	readers := func(h *githost.Hosted) { h.Teams = []githost.Team{{Name: "readers", Permission: "read"}} }
	first, second := s.gitea(t, "acme/twice", s.alice.Token), s.gitea(t, "acme/twice", s.alice.Token, readers)
	if _, err := second.Survey(t.Context(), githost.Want{Branch: "main"}); err != nil {
		t.Fatal(err)
	}
	ensure(t, first, githost.Want{Branch: "main"})
	if _, err := second.Ensure(t.Context()); err != nil {
		t.Errorf("the second of two runs: %v", err)
	}
	if names := s.teams(t, "acme/twice"); names != "[{Owners} {readers}]" {
		t.Errorf("teams with access: %s", names)
	}
}

func reconciled(t *testing.T, s *server) {
	name := s.repository(t, "alice/reconciled")
	public := func(h *githost.Hosted) { h.Visibility, h.Description = "public", "Shown" }
	if changes, _ := ensure(t, s.gitea(t, name, s.alice.Token, public), githost.Want{Branch: "main"}); len(changes) > 0 || !s.see(t, name).Private {
		t.Errorf("changed without --reconcile: %v", changes)
	}
	changes, _ := ensure(t, s.gitea(t, name, s.alice.Token, public, func(h *githost.Hosted) { h.Reconcile = true }), githost.Want{Branch: "main"})
	if diff := cmp.Diff([]string{"make the repository alice/reconciled public (it is private)", `set the description of the repository alice/reconciled to "Shown"`}, changes); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(seen{Description: "Shown", DefaultBranch: "main", Empty: true}, s.see(t, name)); diff != "" {
		t.Error(diff)
	}
	if changes, _ := ensure(t, s.gitea(t, name, s.alice.Token, public, func(h *githost.Hosted) { h.Reconcile = true }), githost.Want{Branch: "main"}); len(changes) > 0 {
		t.Errorf("changed again: %v", changes)
	}
}

// teams returns the names of the teams with access to a repository.
func (s *server) teams(t *testing.T, repository string) string {
	t.Helper()
	var teams []struct{ Name string }
	s.As(t, s.alice, http.MethodGet, "/repos/"+repository+"/teams", nil, &teams)
	return fmt.Sprint(teams)
}

func teamsGivenAccess(t *testing.T, s *server) {
	both := func(h *githost.Hosted) {
		h.Teams = []githost.Team{{Name: "readers", Permission: "read"}, {Name: "Writers", Permission: "push"}}
	}
	changes, _ := ensure(t, s.gitea(t, "acme/teams", s.alice.Token, both), githost.Want{Branch: "main"})
	want := []string{"create the private repository acme/teams", "grant team readers access to acme/teams", "grant team Writers access to acme/teams"}
	if diff := cmp.Diff(want, changes); diff != "" {
		t.Error(diff)
	}
	if names := s.teams(t, "acme/teams"); names != "[{Owners} {readers} {writers}]" {
		t.Errorf("teams with access: %s", names)
	}
	if changes, _ := ensure(t, s.gitea(t, "acme/teams", s.alice.Token, both), githost.Want{Branch: "main"}); len(changes) > 0 {
		t.Errorf("changed again: %v", changes)
	}
}
