package testgithost

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// GitLab is a stand-in for GitLab, written after the pages of
// https://docs.gitlab.com/api/ on projects, groups, members, deploy keys,
// deploy tokens, protected branches, merge requests, personal access tokens,
// status codes and rate limits.
type GitLab struct {
	*Server
	// Base is the base path, as in "gitlab".
	Base string

	mux *http.ServeMux

	mu       sync.Mutex
	ids      int
	old      bool
	noSSH    bool
	noHTTP   bool
	limit    *quota
	users    []*gitlabUser
	tokens   map[string]*gitlabToken
	groups   []*gitlabGroup
	projects []*gitlabProject
	keys     []*gitlabKey
}

type gitlabUser struct {
	id    int
	name  string
	admin bool
}

type gitlabToken struct {
	user   *gitlabUser
	scopes []string
	// end is why the token is not valid: "expired", "revoked" or "".
	end string
}

type gitlabGroup struct {
	id               int
	path, visibility string
	creation         string
	shareLock        bool
	// protects protects the default branch of new projects from developers.
	protects bool
	members  map[*gitlabUser]int
}

type gitlabProject struct {
	id                            int
	path, visibility, description string
	archived, deleting            bool
	repository, requests          string // "enabled" or "disabled"
	members                       map[*gitlabUser]int
	shares                        []*gitlabShared
	protected                     map[string]int
	keys                          map[*gitlabKey]bool // and whether it may push
	tokens                        []*gitlabDeployToken
	merges                        []*gitlabMerge
}

type gitlabShared struct {
	group *gitlabGroup
	level int
}

// gitlabKey is an SSH key of projects or of a user.
type gitlabKey struct {
	id          int
	title, text string
	user        *gitlabUser
	expired     bool
}

type gitlabDeployToken struct {
	id                     int
	name, username, secret string
	scopes                 []string
}

type gitlabMerge struct {
	number            int
	head, base, title string
	open              bool
	// remove deletes the branch after the merge.
	remove bool
}

var gitlabLevels = map[string]int{"noone": 0, "guest": 10, "reporter": 20, "developer": 30, "maintainer": 40, "owner": 50}

// OpenGitLab starts a GitLab. Each line of contents is a verb and its arguments:
//
//	user NAME [admin]
//	token SECRET USER SCOPE,SCOPE [expired|revoked]
//	group PATH [VISIBILITY] [creation=LEVEL] [sharelock] [protects] [USER=ROLE…]
//	project PATH [VISIBILITY] [archived] [deleting] [norepository] [norequests] [USER=ROLE…]
//	protect PROJECT BRANCH ROLE
//	key PROJECT ro|rw|expired TITLE PUBLIC KEY
//	userkey USER PUBLIC KEY
//	share PROJECT GROUP ROLE
//	base PATH         serve below a path
//	nossh, nohttp     disable Git over SSH or HTTP
//	old               do not serve /personal_access_tokens/self
//	limit N SECONDS   accept N requests, then none for a time
func OpenGitLab(contents string) (*GitLab, error) {
	g := &GitLab{tokens: map[string]*gitlabToken{}}
	server, err := Open(func(s *Server) API {
		g.Server = s
		return g
	})
	if err != nil {
		return nil, err
	}
	if err := g.Add(contents); err != nil {
		return nil, fmt.Errorf("%w (closing: %w)", err, server.Close())
	}
	return g, nil
}

// Add applies further lines of contents.
func (g *GitLab) Add(contents string) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := eachLine(contents, g.add); err != nil {
		return err
	}
	g.mux = g.routes()
	return nil
}

func (g *GitLab) add(verb string, args []string) error {
	least := map[string]int{"user": 1, "token": 3, "group": 1, "project": 1, "protect": 3, "key": 5, "userkey": 3, "share": 3, "base": 1, "limit": 2}[verb]
	if len(args) < least {
		return fmt.Errorf("it takes %d arguments", least)
	}
	switch verb {
	case "user":
		g.users = append(g.users, &gitlabUser{g.id(), args[0], slices.Contains(args, "admin")})
		return nil
	case "token":
		t := &gitlabToken{user: g.user(args[1]), scopes: strings.Split(args[2], ",")}
		if len(args) > 3 {
			t.end = args[3]
		}
		g.tokens[args[0]] = t
		return nil
	case "group":
		return g.addGroup(args[0], args[1:])
	case "project":
		return g.addProject(args[0], args[1:])
	case "old":
		g.old = true
		return nil
	case "nossh":
		g.noSSH = true
		return nil
	case "nohttp":
		g.noHTTP = true
		return nil
	case "base":
		g.Base = args[0]
		return nil
	case "limit":
		var err error
		g.limit, err = newQuota(args)
		return err
	case "userkey":
		g.keys = append(g.keys, &gitlabKey{id: g.id(), user: g.user(args[0]), text: strings.Join(args[1:], " ")})
		return nil
	}
	p := g.project(args[0])
	if p == nil {
		return fmt.Errorf("no project")
	}
	switch verb {
	case "protect":
		return g.protect(p, args[1], gitlabLevels[args[2]])
	case "key":
		k := &gitlabKey{id: g.id(), title: args[2], text: strings.Join(args[3:], " "), expired: args[1] == "expired"}
		g.keys = append(g.keys, k)
		p.keys[k] = args[1] == "rw"
	case "share":
		p.shares = append(p.shares, &gitlabShared{g.group(args[1]), gitlabLevels[args[2]]})
	default:
		return fmt.Errorf("unknown verb %q", verb)
	}
	return nil
}

// protect allows pushes to a branch only to a role.
func (g *GitLab) protect(p *gitlabProject, branch string, least int) error {
	p.protected[branch] = least
	return g.Git.Protect(p.path, branch, "GitLab: You are not allowed to push code to protected branches on this project.")
}

func (g *GitLab) addGroup(path string, args []string) error {
	group := &gitlabGroup{id: g.id(), path: path, visibility: "private", creation: "maintainer", members: map[*gitlabUser]int{}}
	g.groups = append(g.groups, group)
	for _, arg := range args {
		name, value, given := strings.Cut(arg, "=")
		switch {
		case arg == "sharelock":
			group.shareLock = true
		case arg == "protects":
			group.protects = true
		case name == "creation":
			group.creation = value
		case given:
			group.members[g.user(name)] = gitlabLevels[value]
		default:
			group.visibility = arg
		}
	}
	return nil
}

func (g *GitLab) addProject(path string, args []string) error {
	p, err := g.newProject(path, "private")
	for _, arg := range args {
		name, value, given := strings.Cut(arg, "=")
		switch {
		case arg == "archived":
			p.archived = true
		case arg == "deleting":
			p.deleting = true
		case arg == "norepository":
			p.repository = "disabled"
		case arg == "norequests":
			p.requests = "disabled"
		case given:
			p.members[g.user(name)] = gitlabLevels[value]
		default:
			p.visibility = arg
		}
	}
	return err
}

// newProject creates a project with an empty repository.
func (g *GitLab) newProject(path, visibility string) (*gitlabProject, error) {
	p := &gitlabProject{
		id: g.id(), path: path, visibility: visibility, repository: "enabled", requests: "enabled",
		members: map[*gitlabUser]int{}, protected: map[string]int{}, keys: map[*gitlabKey]bool{},
	}
	g.projects = append(g.projects, p)
	return p, g.Git.Create(p.path, "main")
}

// GitName implements Below: the HTTP path of a project begins with the base path.
func (g *GitLab) GitName(path string) string { return below(g.Base, path) }

// below removes a base path from a path.
func below(base, path string) string {
	return strings.TrimPrefix(strings.TrimPrefix(path, base), "/")
}

func (g *GitLab) id() int {
	g.ids++
	return g.ids
}

func (g *GitLab) user(name string) *gitlabUser {
	i := slices.IndexFunc(g.users, func(u *gitlabUser) bool { return strings.EqualFold(u.name, name) })
	if i < 0 {
		panic("there is no user " + name)
	}
	return g.users[i]
}

// group returns a group by its path or ID, nil for none.
func (g *GitLab) group(name string) *gitlabGroup {
	for _, group := range g.groups {
		if strings.EqualFold(group.path, name) || strconv.Itoa(group.id) == name {
			return group
		}
	}
	return nil
}

// project returns a project by its path or ID, nil for none.
func (g *GitLab) project(name string) *gitlabProject {
	for _, p := range g.projects {
		if strings.EqualFold(p.path, name) || strconv.Itoa(p.id) == name {
			return p
		}
	}
	return nil
}

// groupLevel returns the role of a user in a group, with inherited ones.
func (g *GitLab) groupLevel(u *gitlabUser, path string) int {
	level := 0
	for _, group := range g.groups {
		if strings.HasPrefix(path+"/", group.path+"/") {
			level = max(level, group.members[u])
		}
	}
	return level
}

// level returns the role of a user in a project.
func (g *GitLab) level(u *gitlabUser, p *gitlabProject) int {
	owner, _, _ := cutLast(p.path)
	if strings.EqualFold(owner, u.name) {
		return gitlabLevels["owner"]
	}
	level := max(p.members[u], g.groupLevel(u, owner))
	for _, s := range p.shares {
		level = max(level, min(s.level, g.groupLevel(u, s.group.path)))
	}
	return level
}

// GitAccess implements API. Personal access tokens work with any user name,
// deploy tokens with their own.
func (g *GitLab) GitAccess(username, secret, repository string) Access {
	g.mu.Lock()
	defer g.mu.Unlock()
	p := g.project(repository)
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
	if p == nil || p.repository != "enabled" {
		return access
	}
	level := g.level(t.user, p)
	writes := slices.Contains(t.scopes, "api") || slices.Contains(t.scopes, "write_repository")
	access.Read = (level > 0 || t.user.admin || p.visibility != "private") && (writes || slices.Contains(t.scopes, "read_repository"))
	access.Write = writes && !p.archived && (level >= gitlabLevels["developer"] || t.user.admin)
	access.Bypass = true
	for _, least := range p.protected {
		access.Bypass = access.Bypass && least > 0 && (level >= least || t.user.admin)
	}
	return access
}

// KeyAccess implements Keyed.
func (g *GitLab) KeyAccess(key, repository string) Access {
	g.mu.Lock()
	defer g.mu.Unlock()
	var access Access
	for _, p := range g.projects {
		for k, writes := range p.keys {
			if k.expired || bareKey(k.text) != key {
				continue
			}
			access.Known = true
			if strings.EqualFold(p.path, repository) {
				access.Read, access.Write = true, writes && !p.archived
			}
		}
	}
	return access
}

// bareKey returns a public key without its comment.
func bareKey(text string) string {
	fields := strings.Fields(text)
	return strings.Join(fields[:min(2, len(fields))], " ")
}

// Set applies a line of contents from a script; merge PROJECT merges the open merge
// requests, commit PROJECT BRANCH FILE TEXT… commits as another user.
func (g *GitLab) Set(words ...string) error {
	switch {
	case words[0] == "merge" && len(words) == 2:
		return g.Merge(words[1])
	case words[0] == "commit" && len(words) > 4:
		return g.Git.Commit(words[1], words[2], "Change "+words[3], map[string]string{words[3]: strings.Join(words[4:], " ") + "\n"})
	default:
		return g.Add(strings.Join(words, " "))
	}
}

// quota is the number of accepted requests, and the time without any after them.
type quota struct {
	left  int
	pause time.Duration
}

func newQuota(args []string) (*quota, error) {
	n, err := strconv.Atoi(args[0])
	if err != nil {
		return nil, err
	}
	seconds, err := strconv.Atoi(args[1])
	return &quota{n, time.Duration(seconds) * time.Second}, err
}

// takes counts a request and reports whether it is accepted.
func (q *quota) takes() bool {
	if q == nil {
		return true
	}
	q.left--
	return q.left >= 0
}

func cutLast(path string) (before, after string, found bool) {
	i := strings.LastIndexByte(path, '/')
	if i < 0 {
		return "", path, false
	}
	return path[:i], path[i+1:], true
}

// decode reads the body of a request. A field that is not documented is an error.
func decode(r *http.Request, into any) error {
	d := json.NewDecoder(r.Body)
	d.DisallowUnknownFields()
	return d.Decode(into)
}
