package githost

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/google/go-cmp/cmp"

	"github.com/fluxkit/flux/internal/testgitea"
)

// server is a Gitea with alice, who owns the organisation acme, and bob, who
// is a member of its team readers.
type server struct {
	*testgitea.Server
	alice, bob testgitea.Account
}

func newServer(t *testing.T) *server {
	t.Helper()
	s := &server{Server: testgitea.Start(t)}
	s.alice, s.bob = s.User(t, "alice"), s.User(t, "bob")
	s.Organisation(t, s.alice, "acme")
	readers := s.Team(t, s.alice, "acme", "readers", "read")
	s.Team(t, s.alice, "acme", "writers", "write")
	s.As(t, s.alice, http.MethodPut, fmt.Sprintf("/teams/%d/members/bob", readers), nil, nil)
	return s
}

// gitea is the row for a repository "owner/name" with somebody's token.
func (s *server) gitea(t *testing.T, repository, token string, change ...func(*Hosted)) *Gitea {
	t.Helper()
	owner, name, _ := strings.Cut(repository, "/")
	h := Hosted{
		Hostname: s.Hostname, Scheme: "https", Token: token, CABundle: s.CA, Owner: owner, Name: name,
		Personal: owner != "acme", Visibility: "private", Branch: "main", TokenAuth: true,
	}
	for _, c := range change {
		c(&h)
	}
	client, err := Caller{UserAgent: "test", Now: time.Now, Waiting: t.Logf}.Client(h)
	if err != nil {
		t.Fatal(err)
	}
	return NewGitea(h, client)
}

// repository makes an empty one of alice's.
func (s *server) repository(t *testing.T, name string) string {
	t.Helper()
	s.make(t, name, false)
	return name
}

// make makes a repository of alice's, with a first commit or without.
func (s *server) make(t *testing.T, name string, commit bool) {
	t.Helper()
	owner, short, _ := strings.Cut(name, "/")
	path := "/user/repos"
	if owner == "acme" {
		path = "/orgs/acme/repos"
	}
	s.As(t, s.alice, http.MethodPost, path, map[string]any{"name": short, "auto_init": commit, "default_branch": "main", "private": true}, nil)
}

// seen is what the tests compare of a repository.
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
		t.Errorf("%s was made", repository)
	}
}

func ensure(t *testing.T, g *Gitea, want Want) ([]string, Repository) {
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
		"refusals": refusedBeforehand, "keys": deployKeys, "protection": protectedBranches, "request": pullRequests,
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
		change  func(*Hosted)
		changes string
		see     seen
	}{
		"alice/fleet": {
			func(h *Hosted) { h.Description = "What runs where" }, "create the private repository alice/fleet",
			seen{Private: true, Description: "What runs where", DefaultBranch: "main", Empty: true},
		},
		"acme/fleet": {
			func(h *Hosted) { h.Visibility, h.Branch = "public", "trunk" }, "create the public repository acme/fleet",
			seen{DefaultBranch: "trunk", Empty: true},
		},
	} {
		want := Want{Branch: test.see.DefaultBranch}
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
	// Two runs at once: the second finds that there is one when it makes it.
	first, second := s.gitea(t, "alice/twice", s.alice.Token), s.gitea(t, "alice/twice", s.alice.Token)
	if _, err := second.Survey(t.Context(), Want{Branch: "main"}); err != nil {
		t.Fatal(err)
	}
	ensure(t, first, Want{Branch: "main"})
	if _, err := second.Ensure(t.Context()); err != nil {
		t.Errorf("the second of two runs: %v", err)
	}
}

func reconciled(t *testing.T, s *server) {
	name := s.repository(t, "alice/reconciled")
	public := func(h *Hosted) { h.Visibility, h.Description = "public", "Shown" }
	if changes, _ := ensure(t, s.gitea(t, name, s.alice.Token, public), Want{Branch: "main"}); len(changes) > 0 || !s.see(t, name).Private {
		t.Errorf("changed without --reconcile: %v", changes)
	}
	changes, _ := ensure(t, s.gitea(t, name, s.alice.Token, public, func(h *Hosted) { h.Reconcile = true }), Want{Branch: "main"})
	if diff := cmp.Diff([]string{"make alice/reconciled public", "change the description of alice/reconciled"}, changes); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(seen{Description: "Shown", DefaultBranch: "main", Empty: true}, s.see(t, name)); diff != "" {
		t.Error(diff)
	}
	if changes, _ := ensure(t, s.gitea(t, name, s.alice.Token, public, func(h *Hosted) { h.Reconcile = true }), Want{Branch: "main"}); len(changes) > 0 {
		t.Errorf("changed again: %v", changes)
	}
}

func teamsGivenAccess(t *testing.T, s *server) {
	both := func(h *Hosted) { h.Teams = []Team{{"readers", "read"}, {"Writers", "push"}} }
	changes, _ := ensure(t, s.gitea(t, "acme/teams", s.alice.Token, both), Want{Branch: "main"})
	want := []string{"create the private repository acme/teams", "give team readers access to acme/teams", "give team writers access to acme/teams"}
	if diff := cmp.Diff(want, changes); diff != "" {
		t.Error(diff)
	}
	var teams []struct{ Name string }
	s.As(t, s.alice, http.MethodGet, "/repos/acme/teams/teams", nil, &teams)
	if names := fmt.Sprint(teams); names != "[{Owners} {readers} {writers}]" {
		t.Errorf("teams with access: %s", names)
	}
	if changes, _ := ensure(t, s.gitea(t, "acme/teams", s.alice.Token, both), Want{Branch: "main"}); len(changes) > 0 {
		t.Errorf("changed again: %v", changes)
	}
}

// missingScopes names every scope that is missing at once.
func missingScopes(t *testing.T, s *server) {
	s.repository(t, "alice/scoped")
	for name, test := range map[string]struct {
		repository string
		scopes     []string
		teams      []Team
		lacks      string
	}{
		"nothing at all":            {"alice/scoped", []string{"read:misc"}, nil, "the token lacks the scope write:repository"},
		"reading only":              {"alice/scoped", []string{"read:repository"}, nil, "the token lacks the scope write:repository"},
		"no personal repositories":  {"alice/unmade", []string{"write:repository"}, nil, "the token lacks the scope write:user"},
		"reading, to make one":      {"alice/unmade", []string{"read:repository", "read:user"}, nil, "the token lacks the scopes write:repository and write:user"},
		"no organisation":           {"acme/unmade", []string{"write:repository"}, nil, "the token lacks the scope write:organization"},
		"no writing, organisation":  {"acme/unmade", []string{"read:repository", "write:organization"}, nil, "the token lacks the scope write:repository"},
		"no teams":                  {"acme/scoped", []string{"write:repository"}, []Team{{"readers", "read"}}, "the token lacks the scope read:organization"},
		"enough for what is there":  {"alice/scoped", []string{"write:repository"}, nil, ""},
		"enough to make a personal": {"alice/unmade", []string{"write:repository", "write:user"}, nil, ""},
		"enough to make a common":   {"acme/unmade", []string{"write:repository", "write:organization"}, []Team{{"readers", "read"}}, ""},
	} {
		if test.repository == "acme/scoped" {
			s.repository(t, test.repository)
		}
		g := s.gitea(t, test.repository, s.Token(t, s.alice, test.scopes...), func(h *Hosted) { h.Teams = test.teams })
		_, err := g.Survey(t.Context(), Want{Branch: "main", KeyTitle: "flux"})
		if test.lacks == "" && err != nil || test.lacks != "" && (err == nil || err.Error() != test.lacks) {
			t.Errorf("%s: %v, want %q", name, err, test.lacks)
		}
		var known *Error
		if errors.As(err, &known) && !strings.Contains(known.Hint, "https://"+s.Hostname+"/user/settings/applications") {
			t.Errorf("%s: the way out is %q", name, known.Hint)
		}
	}
	s.absent(t, "alice/unmade")
	s.absent(t, "acme/unmade")
}

// refusedBeforehand has what Survey refuses, in a user's words.
func refusedBeforehand(t *testing.T, s *server) {
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

	common := func(h *Hosted) { h.Personal = false }
	for name, test := range map[string]struct {
		repository, token string
		want              Want
		change            func(*Hosted)
		problem           string
	}{
		"unknown token":        {"alice/archived", strings.Repeat("0", 40), Want{}, nil, "checking the token: " + s.Hostname + " does not know the token"},
		"archived":             {"alice/archived", s.alice.Token, Want{}, nil, "repository alice/archived is archived: nobody can push to it"},
		"mirror":               {"alice/mirror", s.alice.Token, Want{}, nil, "repository alice/mirror is a mirror: nobody can push to it"},
		"public only":          {"alice/closed", s.Token(t, s.alice, "public-only", "write:repository"), Want{}, nil, "looking for repository alice/closed: the token is for public repositories only"},
		"no pull requests":     {"alice/closed", s.alice.Token, Want{ChangeRequest: true}, nil, "repository alice/closed has no pull requests"},
		"no push":              {"acme/read", s.bob.Token, Want{}, nil, "bob may not push to acme/read"},
		"no deploy key":        {"acme/pushed", s.bob.Token, Want{KeyTitle: "flux"}, nil, "adding a deploy key: bob does not administer acme/pushed"},
		"no edit":              {"acme/pushed", s.bob.Token, Want{}, func(h *Hosted) { h.Reconcile, h.Visibility = true, "public" }, "bob does not administer acme/pushed, so it may not make acme/pushed public"},
		"no repositories":      {"acme/bobs", s.bob.Token, Want{}, nil, "bob may not make repositories in organisation acme"},
		"another's account":    {"alice/bobs", s.bob.Token, Want{}, nil, "repository alice/bobs cannot be made: the token belongs to bob"},
		"a user, not personal": {"alice/common", s.alice.Token, Want{}, common, "alice is a user on " + s.Hostname + ", not an organisation"},
		"no such organisation": {"nobody/fleet", s.alice.Token, Want{}, common, "there is no organisation nobody on " + s.Hostname + ", or it is hidden from alice"},
		"no such team":         {"acme/read", s.alice.Token, Want{}, func(h *Hosted) { h.Teams = []Team{{"ops", "read"}} }, `organisation acme has no team "ops"`},
		"a team that may less": {"acme/read", s.alice.Token, Want{}, func(h *Hosted) { h.Teams = []Team{{"readers", "write"}} }, "team readers has read access to its repositories, not write"},
		"a team of a user":     {"alice/closed", s.alice.Token, Want{}, func(h *Hosted) { h.Teams = []Team{{"readers", "read"}} }, "repository alice/closed belongs to a user, who has no teams"},
	} {
		test.want.Branch = "main"
		changes := []func(*Hosted){}
		if test.change != nil {
			changes = append(changes, test.change)
		}
		_, err := s.gitea(t, test.repository, test.token, changes...).Survey(t.Context(), test.want)
		var known *Error
		if !errors.As(err, &known) || known.Hint == "" || err.Error() != test.problem || strings.Contains(err.Error()+known.Hint, test.token) {
			t.Errorf("%s: %v, want %q", name, err, test.problem)
		}
	}
	for _, repository := range []string{"acme/bobs", "alice/bobs", "alice/common", "nobody/fleet"} {
		s.absent(t, repository)
	}
}

// keys are titles, rights and kinds of the deploy keys of a repository.
func (s *server) keys(t *testing.T, repository string) (titles []string, found []giteaKey) {
	t.Helper()
	s.As(t, s.alice, http.MethodGet, "/repos/"+repository+"/keys", nil, &found)
	for _, key := range found {
		titles = append(titles, fmt.Sprintf("%s read-only=%t", key.Title, key.ReadOnly))
	}
	slices.Sort(titles)
	return titles, found
}

func publicKey(t *testing.T) string {
	t.Helper()
	raw, _, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	public, err := ssh.NewPublicKey(raw)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(public)))
}

func deployKeys(t *testing.T, s *server) {
	name := s.repository(t, "alice/keys")
	g, writer := s.gitea(t, name, s.alice.Token), s.gitea(t, name, s.alice.Token, func(h *Hosted) { h.ReadWriteKey = true })
	first, second := publicKey(t), publicKey(t)
	s.As(t, s.alice, http.MethodPost, "/repos/"+name+"/keys", map[string]any{"title": "flux by hand", "key": publicKey(t), "read_only": true}, nil)
	last := 0
	for _, step := range []struct {
		what string
		host *Gitea
		key  DeployKey
		want []string
		same bool
	}{
		{"a first key", g, DeployKey{Title: "flux", Public: first}, []string{"flux by hand read-only=true", "flux read-only=true"}, false},
		{"the same again", g, DeployKey{Title: "flux", Public: first + " comment"}, []string{"flux by hand read-only=true", "flux read-only=true"}, true},
		{"another, both", g, DeployKey{Title: "flux", Public: second, KeepOthers: true}, []string{"flux (2) read-only=true", "flux by hand read-only=true", "flux read-only=true"}, false},
		{"another alone", g, DeployKey{Title: "flux", Public: second}, []string{"flux (2) read-only=true", "flux by hand read-only=true"}, true},
		{"with other rights", writer, DeployKey{Title: "flux", Public: second}, []string{"flux by hand read-only=true", "flux read-only=false"}, false},
		{"replaced at once", g, DeployKey{Title: "flux", Public: first}, []string{"flux (2) read-only=true", "flux by hand read-only=true"}, false},
	} {
		if err := step.host.DeployKey(t.Context(), step.key); err != nil {
			t.Fatalf("%s: %v", step.what, err)
		}
		titles, found := s.keys(t, name)
		if diff := cmp.Diff(step.want, titles); diff != "" {
			t.Errorf("%s: %s", step.what, diff)
		}
		id := 0
		for _, key := range found {
			if sameKey(key.Key, step.key.Public) {
				id = key.ID
			}
		}
		if id == 0 || (id == last) != step.same {
			t.Errorf("%s: key %d, before %d", step.what, id, last)
		}
		last = id
	}
	taken := publicKey(t)
	s.As(t, s.alice, http.MethodPost, "/user/keys", map[string]any{"title": "laptop", "key": taken}, nil)
	err := g.DeployKey(t.Context(), DeployKey{Title: "flux", Public: taken})
	if err == nil || !strings.HasSuffix(err.Error(), "the key belongs to an account already") {
		t.Errorf("an account's key: %v", err)
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
		"not of the list":     {s.bob.Token, "main", "branch main is protected, and bob is not among those who may push to it"},
		"no such branch yet":  {s.alice.Token, "release/1.0", "branch release/1.0 is protected by rule release/*, and alice is not among those who may push to it"},
		"another branch":      {s.alice.Token, "release", ""},
		"rules are not shown": {s.bob.Token, "release/1.0", ""},
	} {
		survey, err := s.gitea(t, "acme/protected", test.token).Survey(t.Context(), Want{Branch: test.branch})
		if err != nil || survey.Protected != test.want {
			t.Errorf("%s: %q, %v, want %q", name, survey.Protected, err, test.want)
		}
	}
}

func pullRequests(t *testing.T, s *server) {
	const name = "alice/requests"
	s.make(t, name, true)
	for _, branch := range []string{"flux/bootstrap", "other"} {
		s.As(t, s.alice, http.MethodPost, "/repos/"+name+"/contents/"+strings.ReplaceAll(branch, "/", "-"), map[string]any{
			"content": base64.StdEncoding.EncodeToString([]byte(branch)), "new_branch": branch, "branch": "main",
		}, nil)
	}
	g := s.gitea(t, name, s.alice.Token)
	other, err := g.RequestChange(t.Context(), Change{Head: "other", Base: "main", Title: "Something else"})
	if err != nil || !other.Opened {
		t.Fatalf("another request: %+v, %v", other, err)
	}
	change := Change{Head: "flux/bootstrap", Base: "main", Title: "Add Flux", Body: "Merge **this**."}
	made, err := g.RequestChange(t.Context(), change)
	if err != nil || !made.Opened || made.Number == other.Number || made.URL != fmt.Sprintf("https://%s/%s/pulls/%d", s.Hostname, name, made.Number) {
		t.Fatalf("the request: %+v, %v", made, err)
	}
	var there struct{ Title, Body, State string }
	s.As(t, s.alice, http.MethodGet, fmt.Sprintf("/repos/%s/pulls/%d", name, made.Number), nil, &there)
	if there.Title != change.Title || there.Body != change.Body || there.State != "open" {
		t.Errorf("the request is %+v", there)
	}
	again, err := g.RequestChange(t.Context(), change)
	made.Opened = false
	if err != nil || again != made {
		t.Errorf("asked again: %+v, %v, want %+v", again, err, made)
	}
	s.As(t, s.alice, http.MethodPatch, fmt.Sprintf("/repos/%s/pulls/%d", name, made.Number), map[string]any{"state": "closed"}, nil)
	if renewed, err := g.RequestChange(t.Context(), change); err != nil || !renewed.Opened || renewed.Number == made.Number {
		t.Errorf("asked after it was closed: %+v, %v", renewed, err)
	}
}

// sshAddresses come from the server, which listens on another port.
func sshAddresses(t *testing.T, s *server) {
	s.repository(t, "alice/there")
	bySSH := func(h *Hosted) { h.TokenAuth = false }
	for name, want := range map[string]string{
		"alice/there":     "ssh://git@" + s.SSH + "/alice/there",
		"alice/not-there": "ssh://git@" + s.SSH + "/alice/not-there",
	} {
		survey, err := s.gitea(t, name, s.alice.Token, bySSH).Survey(t.Context(), Want{Branch: "main", KeyTitle: "flux"})
		if err != nil || survey.Repository.SyncURL != want || survey.Repository.Access.URL != "https://"+s.Hostname+"/"+name+".git" {
			t.Errorf("%s: %+v, %v", name, survey.Repository, err)
		}
	}
	named := func(h *Hosted) { h.TokenAuth, h.SSHHostname = false, "ssh.example.com:443" }
	survey, err := s.gitea(t, "alice/there", s.alice.Token, named).Survey(t.Context(), Want{Branch: "main"})
	if err != nil || survey.Repository.SyncURL != "ssh://git@ssh.example.com:443/alice/there" {
		t.Errorf("with --ssh-hostname: %s, %v", survey.Repository.SyncURL, err)
	}
	for address, want := range map[string]string{
		"ssh://gitea@git.example.com:2222/a/b.git": "gitea git.example.com:2222", "git@git.example.com:a/b.git": "git git.example.com",
		"ssh://git@git.example.com:22/a/b.git": "git git.example.com", "": " ", "nonsense": " ",
	} {
		if user, host := sshLogin(address); user+" "+host != want {
			t.Errorf("%q: user %q, host %q", address, user, host)
		}
	}
}

func renamedRepository(t *testing.T, s *server) {
	s.repository(t, "alice/old-name")
	s.As(t, s.alice, http.MethodPatch, "/repos/alice/old-name", map[string]any{"name": "new-name"}, nil)
	_, repository := ensure(t, s.gitea(t, "alice/old-name", s.alice.Token), Want{Branch: "main"})
	if want := "https://" + s.Hostname + "/alice/new-name.git"; repository.SyncURL != want {
		t.Errorf("the cluster fetches %s, not %s", repository.SyncURL, want)
	}
}

// TestGiteaUnreachable has what is wrong before there is a Gitea.
func TestGiteaUnreachable(t *testing.T) {
	t.Parallel()
	s := &server{Server: testgitea.Start(t)}
	for name, test := range map[string]struct {
		change  func(*Hosted)
		problem string
	}{
		"unknown authority": {func(h *Hosted) { h.CABundle = nil }, "checking the token: the certificate of " + s.Hostname + " is signed by an unknown authority"},
		"not plain HTTP":    {func(h *Hosted) { h.Scheme = "http" }, "checking the token: " + s.Hostname + " does not take requests over http"},
		"not HTTP":          {func(h *Hosted) { h.Hostname = s.SSH }, "checking the token: " + s.SSH + " does not speak TLS"},
	} {
		_, err := s.gitea(t, "alice/fleet", s.Admin.Token, test.change).Survey(t.Context(), Want{Branch: "main"})
		if err == nil || err.Error() != test.problem {
			t.Errorf("%s: %v, want %q", name, err, test.problem)
		}
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("interrupted"))
	if _, err := s.gitea(t, "alice/fleet", s.Admin.Token).Survey(ctx, Want{Branch: "main"}); err == nil || !strings.Contains(err.Error(), "interrupted") {
		t.Errorf("interrupted: %v", err)
	}
}
