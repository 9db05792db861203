package testgithost

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// GitHub is a stand-in for GitHub Enterprise Server. Its state is set before its first
// use, or by Edit.
type GitHub struct {
	*Server

	mu sync.Mutex
	// Tokens are keyed by their secrets, Organizations by their logins.
	Tokens        map[string]*GitHubToken
	Users         []string
	Organizations map[string]*GitHubOrganization
	// Repositories are keyed by full names.
	Repositories map[string]*GitHubRepository
	// Renamed redirects from an old full name of a repository to its new one.
	Renamed map[string]string
	// UserKeys are SSH keys that belong to users.
	UserKeys []string
	// Limit rejects requests; the zero value does not.
	Limit GitHubLimit

	ids int64
}

// GitHubToken is a token with its permissions.
type GitHubToken struct {
	// Login is the account, "" for the installation of an app.
	Login string
	// Classic tokens have Scopes, others Permissions such as "administration": "write".
	Classic     bool
	Scopes      []string
	Permissions map[string]string
	// Sees are the repositories that a fine-grained token can read; nil for all.
	Sees []string
	// Expires is when the token expires, zero for never.
	Expires time.Time
	// SignOn are organisations with single sign-on for which the token is not authorised.
	SignOn []string
}

// GitHubOrganization is an organisation.
type GitHubOrganization struct {
	// Roles are "admin", "member" or "pending" by login.
	Roles map[string]string
	// Teams are the members by slug.
	Teams map[string][]string
	// NoDeployKeys is the policy that forbids deploy keys.
	NoDeployKeys bool
	// MembersCannotCreate are the visibilities that members cannot create.
	MembersCannotCreate []string
}

// GitHubRepository is the state of a repository outside of Git.
type GitHubRepository struct {
	Owner, Name             string
	Visibility, Description string
	Archived, Disabled      bool
	// Roles are the permissions of users by login, Teams those of teams by slug.
	Roles, Teams map[string]string
	Keys         []*GitHubKey
	Pulls        []*GitHubPull
	// Protection and Rules protect branches.
	Protection map[string]*GitHubProtection
	Rules      map[string][]GitHubRule
}

// GitHubKey is a deploy key.
type GitHubKey struct {
	ID       int64
	Title    string
	Key      string
	ReadOnly bool
}

// GitHubPull is a pull request.
type GitHubPull struct {
	Number      int
	Title, Body string
	Head, Base  string
	Merged      bool
}

// GitHubProtection is the classic protection of a branch.
type GitHubProtection struct {
	Reviews, Checks, Locked, EnforceAdmins bool
	// Pushers are the only users who can push; nil for all.
	Pushers []string
}

// GitHubRule is a rule of a ruleset on a branch.
type GitHubRule struct {
	Type    string
	Ruleset int64
	// Bypass are the logins that can bypass the rule.
	Bypass []string
}

// GitHubLimit is an exceeded rate limit.
type GitHubLimit struct {
	// Until is the end of the limit; RetryAfter sends it in seconds instead, as the
	// secondary limit of GitHub does.
	Until      time.Time
	RetryAfter int
	// Times is the number of rejected requests.
	Times int
}

// OpenGitHub starts a host with the users ada and bob and the organisation
// acme, of which ada is an owner and bob a member.
func OpenGitHub() (*GitHub, error) {
	g := &GitHub{
		Tokens: map[string]*GitHubToken{}, Users: []string{"ada", "bob"}, Repositories: map[string]*GitHubRepository{}, Renamed: map[string]string{},
		Organizations: map[string]*GitHubOrganization{"acme": {
			Roles: map[string]string{"ada": "admin", "bob": "member"}, Teams: map[string][]string{"ops": {"ada"}, "dev": {"bob"}},
		}},
	}
	var err error
	g.Server, err = Open(func(s *Server) API {
		g.Server = s
		s.description = gitHubDescription().description
		return newGitHubAPI(g)
	})
	return g, err
}

// StartGitHub runs such a host until the end of the test.
func StartGitHub(t testing.TB) *GitHub {
	t.Helper()
	g, err := OpenGitHub()
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

// Edit changes or reads the state while the host serves.
func (g *GitHub) Edit(edit func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	edit()
}

// Classic adds a classic token.
func (g *GitHub) Classic(secret, login string, scopes ...string) {
	g.Edit(func() { g.Tokens[secret] = &GitHubToken{Login: login, Classic: true, Scopes: scopes} })
}

// Fine adds a fine-grained token with permissions such as "administration=write".
func (g *GitHub) Fine(secret, login string, permissions ...string) {
	t := &GitHubToken{Login: login, Permissions: map[string]string{"metadata": "read"}}
	for _, p := range permissions {
		name, level, _ := strings.Cut(p, "=")
		t.Permissions[name] = level
	}
	g.Edit(func() { g.Tokens[secret] = t })
}

// Add adds a repository; a user who owns it is its administrator.
func (g *GitHub) Add(fullName, visibility string) (*GitHubRepository, error) {
	var r *GitHubRepository
	var err error
	g.Edit(func() { r, err = g.add(fullName, visibility) })
	return r, err
}

func (g *GitHub) add(fullName, visibility string) (*GitHubRepository, error) {
	owner, name, _ := strings.Cut(fullName, "/")
	r := &GitHubRepository{
		Owner: owner, Name: name, Visibility: visibility, Roles: map[string]string{}, Teams: map[string]string{},
		Protection: map[string]*GitHubProtection{}, Rules: map[string][]GitHubRule{},
	}
	if g.Organizations[owner] == nil {
		r.Roles[owner] = "admin"
	}
	g.Repositories[fullName] = r
	return r, g.Git.Create(fullName, "main")
}

// FullName returns owner and name.
func (r *GitHubRepository) FullName() string { return r.Owner + "/" + r.Name }

// gitHubRoles are the roles, the highest first; each includes the lower ones.
var gitHubRoles = []string{"admin", "maintain", "push", "triage", "pull"}

// role returns the role of a login in a repository, "" for none.
func (g *GitHub) role(r *GitHubRepository, login string) string {
	best := len(gitHubRoles)
	consider := func(role string) {
		if i := slices.Index(gitHubRoles, role); i >= 0 && i < best {
			best = i
		}
	}
	consider(r.Roles[login])
	if org := g.Organizations[r.Owner]; org != nil {
		if org.Roles[login] == "admin" {
			consider("admin")
		}
		if org.Roles[login] == "member" && r.Visibility == "internal" {
			consider("pull")
		}
		for team, role := range r.Teams {
			if slices.Contains(org.Teams[team], login) {
				consider(role)
			}
		}
	}
	if r.Visibility == "public" {
		consider("pull")
	}
	if best == len(gitHubRoles) {
		return ""
	}
	return gitHubRoles[best]
}

// reaches reports whether a role includes another.
func reaches(role, needed string) bool {
	i := slices.Index(gitHubRoles, role)
	return i >= 0 && i <= slices.Index(gitHubRoles, needed)
}

// sees reports whether a token can read a repository.
func (g *GitHub) sees(t *GitHubToken, r *GitHubRepository) bool {
	if r.Visibility == "public" {
		return true
	}
	if t.Classic {
		return slices.Contains(t.Scopes, "repo") && g.role(r, t.Login) != ""
	}
	return (t.Sees == nil || slices.Contains(t.Sees, r.FullName())) && (t.Login == "" || g.role(r, t.Login) != "")
}

// GitAccess implements API.
func (g *GitHub) GitAccess(_, secret, repository string) Access {
	g.mu.Lock()
	defer g.mu.Unlock()
	t, r := g.Tokens[secret], g.Repositories[repository]
	if t == nil || r == nil || slices.Contains(t.SignOn, r.Owner) {
		return Access{Known: t != nil}
	}
	write := !r.Archived && !r.Disabled
	if t.Classic {
		write = write && (slices.Contains(t.Scopes, "repo") || slices.Contains(t.Scopes, "public_repo") && r.Visibility == "public")
	} else {
		write = write && t.Permissions["contents"] == "write"
	}
	if t.Login != "" {
		write = write && reaches(g.role(r, t.Login), "push")
	}
	g.closeBranches(r, t.Login)
	return Access{Known: true, Read: g.sees(t, r), Write: write}
}

// KeyAccess implements Keyed.
func (g *GitHub) KeyAccess(key, repository string) Access {
	g.mu.Lock()
	defer g.mu.Unlock()
	var access Access
	for name, r := range g.Repositories {
		for _, k := range r.Keys {
			if k.Key == key {
				access.Known = true
				access.Read = access.Read || name == repository
				access.Write = access.Write || name == repository && !k.ReadOnly && !r.Archived
			}
		}
	}
	return access
}

// closeBranches rejects pushes in Git that protection and rules do not allow a user.
func (g *GitHub) closeBranches(r *GitHubRepository, login string) {
	closed := map[string]string{}
	for branch, p := range r.Protection {
		admin := g.role(r, login) == "admin" && !p.EnforceAdmins && !p.Locked
		pusher := p.Pushers != nil && !slices.Contains(p.Pushers, login)
		if !admin && (p.Reviews || p.Checks || p.Locked || pusher) {
			closed[branch] = "error: GH006: Protected branch update failed for refs/heads/" + branch + "."
		}
	}
	for branch, rules := range r.Rules {
		for _, rule := range rules {
			if slices.Contains(refusingRules, rule.Type) && !slices.Contains(rule.Bypass, login) {
				closed[branch] = "error: GH013: Repository rule violations found for refs/heads/" + branch + "."
			}
		}
	}
	if err := g.Git.close(r.FullName(), closed); err != nil {
		panic(fmt.Sprintf("closing branches: %v", err)) // the temporary folder was removed
	}
}

// refusingRules are the types of rules that reject a push of an ordinary commit.
var refusingRules = []string{"pull_request", "update", "required_status_checks", "creation", "merge_queue"}

// Merge merges a pull request by fast-forward.
func (g *GitHub) Merge(fullName string, number int) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	r := g.Repositories[fullName]
	if r == nil || number < 1 || number > len(r.Pulls) {
		return fmt.Errorf("there is no pull request %d in %s", number, fullName)
	}
	p := r.Pulls[number-1]
	if err := g.Git.forward(fullName, p.Base, p.Head); err != nil {
		return err
	}
	p.Merged = true
	return nil
}
