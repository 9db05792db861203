package testgithost

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

// GitHub is a stand-in for GitHub Enterprise Server. Set its state before the first request, or
// with Edit.
type GitHub struct {
	*store

	// Tokens are keyed by their secrets, Organizations by their logins.
	Tokens        map[string]*GitHubToken
	Users         []string
	Organizations map[string]*GitHubOrganization
	// Renamed redirects from an old full name of a repository to its new one.
	Renamed map[string]string
	// UserKeys holds SSH keys of users.
	UserKeys []string
	// Limit rejects requests. The zero value rejects none.
	Limit GitHubLimit
}

// GitHubToken is a token with its permissions.
type GitHubToken struct {
	// Login is the account, or "" for the installation of an app.
	Login string
	// Classic tokens have Scopes, others Permissions such as "administration": "write".
	Classic     bool
	Scopes      []string
	Permissions map[string]string
	// Sees lists the repositories that a fine-grained token can read. Nil means all.
	Sees []string
	// Expires is the time at which the token expires. Zero means never.
	Expires time.Time
	// SignOn lists organizations with single sign-on for which the token is not authorized.
	SignOn []string
}

// GitHubOrganization is an organization.
type GitHubOrganization struct {
	// Roles maps logins to "admin", "member" or "pending".
	Roles map[string]string
	// Teams maps slugs to members.
	Teams map[string][]string
	// NoDeployKeys is the policy that forbids deploy keys.
	NoDeployKeys bool
	// MembersCannotCreate lists the visibilities of repositories that members cannot create.
	MembersCannotCreate []string
}

// GitHubProtection is the classic protection of a branch.
type GitHubProtection struct {
	Reviews, Checks, Locked, EnforceAdmins bool
	// Pushers lists the users who can push. Nil means all.
	Pushers []string
}

// GitHubRule is a rule of a ruleset on a branch.
type GitHubRule struct {
	Type    string
	Ruleset int64
	// Bypass lists the logins that can bypass the rule.
	Bypass []string
}

// GitHubLimit is an exceeded rate limit.
type GitHubLimit struct {
	// Until is the end of the limit. If RetryAfter is set, the response has the seconds until then
	// instead, like the secondary limit of GitHub.
	Until      time.Time
	RetryAfter int
	// Times is the number of rejected requests.
	Times int
}

// OpenGitHub starts a host with the users ada and bob and the organization acme. ada is an owner
// and bob a member of it.
func OpenGitHub() (*GitHub, error) {
	g := &GitHub{
		store: &store{}, Tokens: map[string]*GitHubToken{}, Users: []string{"ada", "bob"}, Renamed: map[string]string{},
		Organizations: map[string]*GitHubOrganization{"acme": {
			Roles: map[string]string{"ada": "admin", "bob": "member"}, Teams: map[string][]string{"ops": {"ada"}, "dev": {"bob"}},
		}},
	}
	if err := g.open(g, g, g.githubSettings(), ""); err != nil {
		return nil, err
	}
	g.description = gitHubDescription().description
	g.handle()
	return g, nil
}

// StartGitHub runs the host of OpenGitHub until the end of the test.
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

// Classic adds a classic token.
func (g *GitHub) Classic(secret, login string, scopes ...string) {
	g.Edit(func() { g.classic(secret, login, scopes) })
}

func (g *GitHub) classic(secret, login string, scopes []string) {
	g.Tokens[secret] = &GitHubToken{Login: login, Classic: true, Scopes: scopes}
}

// Fine adds a fine-grained token with permissions such as "administration=write".
func (g *GitHub) Fine(secret, login string, permissions ...string) {
	g.Edit(func() { g.fine(secret, login, permissions) })
}

func (g *GitHub) fine(secret, login string, permissions []string) {
	t := &GitHubToken{Login: login, Permissions: map[string]string{"metadata": "read"}}
	for _, p := range permissions {
		name, level, _ := strings.Cut(p, "=")
		t.Permissions[name] = level
	}
	g.Tokens[secret] = t
}

// AddRepository adds a repository of a user or an organization.
func (g *GitHub) AddRepository(fullName, visibility string) *Repository {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.add(fullName, visibility)
}

// add adds a repository. A user who owns it is its administrator.
func (g *GitHub) add(fullName, visibility string) *Repository {
	r := g.create(fullName, visibility, "main")
	if g.Organizations[r.Owner] == nil {
		r.Roles[r.Owner] = "admin"
	}
	return r
}

// Repository returns a repository, or nil if there is none.
func (g *GitHub) Repository(fullName string) *Repository {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.repository(fullName)
}

// role returns the role of a login in a repository, or "" if it has none.
func (g *GitHub) role(r *Repository, login string) string {
	held := []string{r.Roles[login]}
	if org := g.Organizations[r.Owner]; org != nil {
		if org.Roles[login] == "admin" {
			held = append(held, "admin")
		}
		if org.Roles[login] == "member" && r.Visibility == "internal" {
			held = append(held, "pull")
		}
		for team, role := range r.Teams {
			if slices.Contains(org.Teams[team], login) {
				held = append(held, role)
			}
		}
	}
	if r.Visibility == "public" {
		held = append(held, "pull")
	}
	return slices.MaxFunc(held, func(a, b string) int { return g.rank(a) - g.rank(b) })
}

// reaches reports whether a role includes another.
func reaches(role, needed string) bool {
	return slices.Index(gitHubRoles, role) >= slices.Index(gitHubRoles, needed)
}

// gitHubRoles lists the permissions in ascending order. Each includes the lower ones.
var gitHubRoles = []string{"", "pull", "triage", "push", "maintain", "admin"}

// row implements vendor.
func (g *GitHub) row() row {
	invalid := func(resource, field, code, detail string) refusal {
		return gitHubInvalid("Validation Failed", resource, field, code, detail)
	}
	return row{
		roles: gitHubRoles, team: "team", pull: "pull request #", noKey: gitHubRefusal(http.StatusNotFound, "Not Found"),
		badKey:   invalid("PublicKey", "key", "custom", "key is invalid. You must supply a key in OpenSSH public key format"),
		noBranch: func(string) refusal { return invalid("PullRequest", "head", "invalid", "") },
		pullExists: func(r *Repository, p *Pull) refusal {
			return invalid("PullRequest", "", "custom", fmt.Sprintf("A pull request already exists for %s:%s.", r.Owner, p.Head))
		},
	}
}

// keyObject implements vendor.
func (g *GitHub) keyObject(r *Repository, k *Key) any { return gitHubView{g}.keyObject(r, k) }

// pullObject implements vendor.
func (g *GitHub) pullObject(r *Repository, p *Pull, full bool) any {
	if full {
		return gitHubView{g}.fullPull(r, p)
	}
	return gitHubView{g}.pullObject(r, p)
}

// page implements vendor.
func (g *GitHub) page(c *call, all []any) {
	size, page := c.number("per_page", 30, 1, 100), c.number("page", 1, 1, len(all))
	from := min((page-1)*size, len(all))
	to := min(from+size, len(all))
	if to < len(all) {
		c.w.Header().Set("Link", fmt.Sprintf(`<https://%s%s?per_page=%d&page=%d>; rel="next"`, g.Hostname, c.r.URL.Path, size, page+1))
	}
	c.reply(http.StatusOK, append([]any{}, all[from:to]...))
}

// limited implements vendor. It returns false: GitHub counts requests by token, so calls check the
// limit themselves.
func (g *GitHub) limited(http.ResponseWriter) bool { return false }

// sees reports whether a token can read a repository.
func (g *GitHub) sees(t *GitHubToken, r *Repository) bool {
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
	t, r := g.Tokens[secret], g.repository(repository)
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

// closeBranches rejects pushes in Git that protection and rules do not allow a user.
func (g *GitHub) closeBranches(r *Repository, login string) {
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
	g.must(g.Git.close(r.git, closed))
}

// refusingRules lists the types of rules that reject a push of an ordinary commit.
var refusingRules = []string{"pull_request", "update", "required_status_checks", "creation", "merge_queue"}
