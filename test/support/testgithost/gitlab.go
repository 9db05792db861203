package testgithost

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// GitLab is a stand-in for GitLab, according to the pages of https://docs.gitlab.com/api/ on
// projects, groups, members, deploy keys, deploy tokens, protected branches, merge requests,
// personal access tokens, status codes and rate limits.
type GitLab struct {
	*store

	old    bool
	noHTTP bool
	users  []*gitlabUser
	tokens map[string]*gitlabToken
	groups []*gitlabGroup
	// userKeys holds SSH keys of users.
	userKeys []string
}

type gitlabUser struct {
	id    int64
	name  string
	admin bool
}

type gitlabToken struct {
	user   *gitlabUser
	scopes []string
	// end is the reason why the token is not valid: "expired", "revoked", or "" for a valid token.
	end string
}

type gitlabGroup struct {
	id               int64
	path, visibility string
	creation         string
	shareLock        bool
	// protects protects the default branch of new projects from developers.
	protects bool
	// members maps user names to roles.
	members map[string]string
}

type gitlabDeployToken struct {
	id                     int64
	name, username, secret string
	scopes                 []string
}

// gitlabRoles lists the roles in ascending order. The access level of a role is ten times its
// index.
var gitlabRoles = []string{"noone", "guest", "reporter", "developer", "maintainer", "owner", "admin"}

// gitlabLevel returns the access level of a role.
func gitlabLevel(role string) int { return 10 * max(slices.Index(gitlabRoles, role), 0) }

// OpenGitLab starts a GitLab with lines of contents. Besides those of [GitLab.Add]
// they are
//
//	user NAME [admin]
//	token SECRET USER SCOPE,SCOPE [expired|revoked]
//	group PATH [VISIBILITY] [creation=LEVEL] [sharelock] [protects] [USER=ROLE…]
//	project …         is repository …
//	protect PROJECT BRANCH ROLE
//	userkey PUBLIC KEY
//	nohttp            disable Git over HTTP
//	old               do not serve /personal_access_tokens/self
func OpenGitLab(contents string) (*GitLab, error) {
	g := &GitLab{store: &store{}, tokens: map[string]*gitlabToken{}}
	err := g.open(g, g, map[string]setting{
		"user":    simple(1, func(w []string) { g.users = append(g.users, &gitlabUser{g.id(), w[0], slices.Contains(w, "admin")}) }),
		"token":   simple(3, g.addToken),
		"group":   simple(1, g.addGroup),
		"project": {1, g.addRepository},
		"protect": g.change(3, func(p *Repository, w []string) { g.protect(p, w[0], w[1]) }),
		"userkey": simple(1, func(w []string) { g.userKeys = append(g.userKeys, bareKey(strings.Join(w, " "))) }),
		"nohttp":  simple(0, func([]string) { g.noHTTP = true }),
		"old":     simple(0, func([]string) { g.old = true }),
	}, contents)
	if err != nil {
		return nil, err
	}
	g.handle()
	return g, nil
}

// row implements vendor.
func (g *GitLab) row() row {
	return row{
		roles: gitlabRoles, team: "group", pull: "merge request !",
		noKey:  gitlabRefusal(http.StatusNotFound, "404 Deploy Key Not Found"),
		badKey: gitlabRefusal(http.StatusBadRequest, map[string]any{"deploy_key.key": []string{"is invalid"}}),
		noBranch: func(branch string) refusal {
			return gitlabRefusal(http.StatusUnprocessableEntity, map[string]any{"base": []string{"branch " + branch + " does not exist"}})
		},
		pullExists: func(_ *Repository, p *Pull) refusal {
			return gitlabRefusal(http.StatusConflict, []string{fmt.Sprintf("Another open merge request already exists for this source branch: !%d", p.Number)})
		},
	}
}

// keyObject implements vendor.
func (g *GitLab) keyObject(_ *Repository, k *Key) any {
	body := map[string]any{"id": k.ID, "title": k.Title, "key": k.Key, "can_push": !k.ReadOnly, "expires_at": nil}
	if k.expired {
		body["expires_at"] = "2001-01-01T00:00:00.000Z"
	}
	return body
}

// pullObject implements vendor.
func (g *GitLab) pullObject(p *Repository, m *Pull, _ bool) any {
	return map[string]any{
		"id": m.Number, "iid": m.Number, "title": m.Title, "state": map[bool]string{true: "merged", false: "opened"}[m.Merged],
		"source_branch": m.Head, "target_branch": m.Base, "project_id": p.id, "source_project_id": p.id, "target_project_id": p.id,
		"web_url": g.web("/" + p.FullName() + "/-/merge_requests/" + strconv.Itoa(m.Number)),
	}
}

// page implements vendor.
func (g *GitLab) page(c *call, all []any) {
	size, page := c.number("per_page", 20, 1, 100), c.number("page", 1, 1, len(all))
	from := min((page-1)*size, len(all))
	to := min(from+size, len(all))
	if to < len(all) {
		c.w.Header().Set("X-Next-Page", strconv.Itoa(page+1))
	}
	c.w.Header().Set("X-Total", strconv.Itoa(len(all)))
	c.reply(http.StatusOK, append([]any{}, all[from:to]...))
}

// limited implements vendor.
func (g *GitLab) limited(w http.ResponseWriter) bool {
	if !g.quota.exceeded() {
		return false
	}
	w.Header().Set("RateLimit-Remaining", "0")
	w.Header().Set("RateLimit-Reset", strconv.FormatInt(time.Now().Add(g.quota.pause).Unix(), 10))
	w.Header().Set("Retry-After", strconv.Itoa(int(g.quota.pause.Seconds())))
	http.Error(w, "Retry later", http.StatusTooManyRequests)
	return true
}

func (g *GitLab) addToken(w []string) {
	t := &gitlabToken{user: g.user(w[1]), scopes: strings.Split(w[2], ",")}
	if len(w) > 3 {
		t.end = w[3]
	}
	g.tokens[w[0]] = t
}

func (g *GitLab) addGroup(w []string) {
	group := &gitlabGroup{id: g.id(), path: w[0], visibility: "private", creation: "maintainer", members: map[string]string{}}
	g.groups = append(g.groups, group)
	for _, arg := range w[1:] {
		name, value, given := strings.Cut(arg, "=")
		switch {
		case arg == "sharelock":
			group.shareLock = true
		case arg == "protects":
			group.protects = true
		case name == "creation":
			group.creation = value
		case given:
			group.members[name] = value
		default:
			group.visibility = arg
		}
	}
}

// protect allows pushes to a branch only to a role.
func (g *GitLab) protect(p *Repository, branch, least string) {
	p.protected[branch] = least
	g.must(g.Git.Protect(p.git, branch, "GitLab: You are not allowed to push code to protected branches on this project."))
}

func (g *GitLab) user(name string) *gitlabUser {
	i := slices.IndexFunc(g.users, func(u *gitlabUser) bool { return strings.EqualFold(u.name, name) })
	if i < 0 {
		panic("there is no user " + name)
	}
	return g.users[i]
}

// group returns a group by its path or ID, or nil if there is none.
func (g *GitLab) group(name string) *gitlabGroup {
	for _, group := range g.groups {
		if strings.EqualFold(group.path, name) || strconv.FormatInt(group.id, 10) == name {
			return group
		}
	}
	return nil
}

// groupLevel returns the access level of a user in a group, including inherited levels.
func (g *GitLab) groupLevel(u *gitlabUser, path string) int {
	level := 0
	for _, group := range g.groups {
		if strings.HasPrefix(path+"/", group.path+"/") {
			level = max(level, gitlabLevel(group.members[u.name]))
		}
	}
	return level
}

// level returns the access level of a user in a project.
func (g *GitLab) level(u *gitlabUser, p *Repository) int {
	if strings.EqualFold(p.Owner, u.name) {
		return gitlabLevel("owner")
	}
	level := max(gitlabLevel(p.Roles[u.name]), g.groupLevel(u, p.Owner))
	for group, role := range p.Teams {
		level = max(level, min(gitlabLevel(role), g.groupLevel(u, group)))
	}
	return level
}

// GitAccess implements API. Personal access tokens are valid with any user name, deploy tokens only
// with their own.
func (g *GitLab) GitAccess(username, secret, repository string) Access {
	g.mu.Lock()
	defer g.mu.Unlock()
	p := g.repository(repository)
	if p != nil {
		for _, t := range p.tokens {
			if t.username == username && t.secret == secret {
				return Access{Known: true, Read: slices.Contains(t.scopes, "read_repository")}
			}
		}
	}
	t := g.tokens[secret]
	if t == nil || t.end != "" || username == "" {
		return Access{}
	}
	access := Access{Known: true}
	if p == nil || p.Disabled {
		return access
	}
	level := g.level(t.user, p)
	writes := slices.Contains(t.scopes, "api") || slices.Contains(t.scopes, "write_repository")
	access.Read = (level > 0 || t.user.admin || p.Visibility != "private") && (writes || slices.Contains(t.scopes, "read_repository"))
	access.Write = writes && !p.Archived && (level >= gitlabLevel("developer") || t.user.admin)
	access.Bypass = true
	for _, least := range p.protected {
		access.Bypass = access.Bypass && least != "noone" && (level >= gitlabLevel(least) || t.user.admin)
	}
	return access
}
