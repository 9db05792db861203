package testgithost

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// gitlabCall is an authenticated request.
type gitlabCall struct {
	w http.ResponseWriter
	r *http.Request

	user  *gitlabUser
	token *gitlabToken
	// project is named in the path and visible to the user, level is the user's role.
	project *gitlabProject
	level   int
}

func (c *gitlabCall) reply(status int, body any) { reply(c.w, status, body) }

func (c *gitlabCall) fail(status int, message any) {
	c.reply(status, map[string]any{"message": message})
}

func (c *gitlabCall) forbidden() { c.fail(http.StatusForbidden, "403 Forbidden") }

// page responds with a page of a list.
func page[T any](c *gitlabCall, all []T) {
	q := c.r.URL.Query()
	number, size := 1, 20
	if n, err := strconv.Atoi(q.Get("page")); err == nil {
		number = n
	}
	if n, err := strconv.Atoi(q.Get("per_page")); err == nil {
		size = min(n, 100)
	}
	from := min((number-1)*size, len(all))
	to := min(from+size, len(all))
	if to < len(all) {
		c.w.Header().Set("X-Next-Page", strconv.Itoa(number+1))
	}
	c.w.Header().Set("X-Total", strconv.Itoa(len(all)))
	if from == to {
		c.reply(http.StatusOK, []T{})
		return
	}
	c.reply(http.StatusOK, all[from:to])
}

// ServeHTTP implements API.
func (g *GitLab) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.limit.takes() {
		w.Header().Set("RateLimit-Remaining", "0")
		w.Header().Set("RateLimit-Reset", strconv.FormatInt(time.Now().Add(g.limit.pause).Unix(), 10))
		w.Header().Set("Retry-After", strconv.Itoa(int(g.limit.pause.Seconds())))
		http.Error(w, "Retry later", http.StatusTooManyRequests)
		return
	}
	g.mux.ServeHTTP(w, r)
}

// routes returns the routes of GitLab. A token requires one of the scopes; least is
// the role that a request on a project requires.
func (g *GitLab) routes() *http.ServeMux {
	mux := http.NewServeMux()
	mux.HandleFunc("/", g.unknownCall)
	read, write := []string{"api", "read_api"}, []string{"api"}
	for _, route := range []struct {
		pattern string
		scopes  []string
		least   string
		answer  func(*gitlabCall)
	}{
		{"GET /user", []string{"api", "read_api", "read_user"}, "", g.getUser},
		{"GET /users", read, "", g.getUsers},
		{"GET /personal_access_tokens/self", nil, "", g.getToken},
		{"GET /groups/{group}", read, "", g.getGroup},
		{"GET /groups/{group}/members/all/{user}", read, "", g.getGroupMember},
		{"GET /projects", read, "", g.getProjects},
		{"POST /projects", write, "", g.createProject},
		{"GET /projects/{project}", read, "noone", g.getProject},
		{"PUT /projects/{project}", write, "maintainer", g.editProject},
		{"GET /projects/{project}/members/all/{user}", read, "noone", g.getMember},
		{"POST /projects/{project}/share", write, "maintainer", g.share},
		{"DELETE /projects/{project}/share/{group}", write, "maintainer", g.unshare},
		{"GET /projects/{project}/repository/branches/{branch}", read, "noone", g.getBranch},
		{"GET /projects/{project}/protected_branches", read, "developer", g.getProtected},
		{"GET /projects/{project}/deploy_keys", read, "maintainer", g.getKeys},
		{"POST /projects/{project}/deploy_keys", write, "maintainer", g.addKey},
		{"PUT /projects/{project}/deploy_keys/{key}", write, "maintainer", g.editKey},
		{"DELETE /projects/{project}/deploy_keys/{key}", write, "maintainer", g.removeKey},
		{"GET /projects/{project}/deploy_tokens", read, "maintainer", g.getDeployTokens},
		{"POST /projects/{project}/deploy_tokens", write, "maintainer", g.addDeployToken},
		{"DELETE /projects/{project}/deploy_tokens/{token}", write, "maintainer", g.removeDeployToken},
		{"GET /projects/{project}/merge_requests", read, "noone", g.getMerges},
		{"POST /projects/{project}/merge_requests", write, "developer", g.addMerge},
	} {
		method, path, _ := strings.Cut(route.pattern, " ")
		prefix := "/api/v4"
		if g.Base != "" {
			prefix = "/" + g.Base + prefix
		}
		mux.HandleFunc(method+" "+prefix+path, func(w http.ResponseWriter, r *http.Request) {
			c := &gitlabCall{w: w, r: r}
			if !g.authenticate(c, route.scopes) || route.least != "" && !g.admit(c, gitlabLevels[route.least]) {
				return
			}
			route.answer(c)
		})
	}
	return mux
}

// authenticate returns the account of a request. It responds itself if the token is
// not valid or lacks the scopes.
func (g *GitLab) authenticate(c *gitlabCall, scopes []string) bool {
	secret, bearer := strings.CutPrefix(c.r.Header.Get("Authorization"), "Bearer ")
	if !bearer {
		secret = c.r.Header.Get("Private-Token")
	}
	t := g.tokens[secret]
	switch {
	case t == nil:
		c.fail(http.StatusUnauthorized, "401 Unauthorized")
	case t.end == "expired":
		c.reply(http.StatusUnauthorized, map[string]any{
			"error": "invalid_token", "error_description": "Token is expired. You can either do re-authorization or token refresh.",
		})
	case t.end == "revoked":
		c.reply(http.StatusUnauthorized, map[string]any{
			"error": "invalid_token", "error_description": "Token was revoked. You have to re-authorize from the user.",
		})
	case scopes != nil && !slices.ContainsFunc(scopes, func(s string) bool { return slices.Contains(t.scopes, s) }):
		c.reply(http.StatusForbidden, map[string]any{
			"error": "insufficient_scope", "error_description": "The request requires higher privileges than provided by the access token.",
			"scope": strings.Join(scopes, " "),
		})
	default:
		c.user, c.token = t.user, t
		return true
	}
	return false
}

// admit finds the project. It responds itself if the user cannot read it or lacks the
// role.
func (g *GitLab) admit(c *gitlabCall, least int) bool {
	p := g.project(c.r.PathValue("project"))
	if p == nil {
		c.fail(http.StatusNotFound, "404 Project Not Found")
		return false
	}
	c.project, c.level = p, g.level(c.user, p)
	if c.user.admin {
		c.level = 60
	}
	switch {
	case c.level == 0 && p.visibility == "private":
		c.fail(http.StatusNotFound, "404 Project Not Found")
	case c.level < least:
		c.forbidden()
	case p.archived && c.r.Method != http.MethodGet:
		c.forbidden()
	default:
		return true
	}
	return false
}

func (g *GitLab) getUser(c *gitlabCall) {
	body := map[string]any{"id": c.user.id, "username": c.user.name, "state": "active"}
	if c.user.admin {
		body["is_admin"] = true
	}
	c.reply(http.StatusOK, body)
}

func (g *GitLab) getUsers(c *gitlabCall) {
	found := []map[string]any{}
	for _, u := range g.users {
		if strings.EqualFold(u.name, c.r.URL.Query().Get("username")) {
			found = append(found, map[string]any{"id": u.id, "username": u.name, "state": "active"})
		}
	}
	c.reply(http.StatusOK, found)
}

func (g *GitLab) getToken(c *gitlabCall) {
	if g.old {
		c.fail(http.StatusNotFound, "404 Not Found")
		return
	}
	c.reply(http.StatusOK, map[string]any{
		"id": 1, "name": "bootstrap", "revoked": false, "active": true, "scopes": c.token.scopes, "user_id": c.user.id, "expires_at": nil,
	})
}

// seenGroup returns the group of the path. It responds itself if the user cannot read
// it.
func (g *GitLab) seenGroup(c *gitlabCall, name string) *gitlabGroup {
	group := g.group(name)
	if group == nil || group.visibility == "private" && !c.user.admin && g.groupLevel(c.user, group.path) == 0 {
		c.fail(http.StatusNotFound, "404 Group Not Found")
		return nil
	}
	return group
}

func (g *GitLab) getGroup(c *gitlabCall) {
	group := g.seenGroup(c, c.r.PathValue("group"))
	if group == nil {
		return
	}
	_, name, _ := cutLast(group.path)
	body := map[string]any{
		"id": group.id, "name": name, "path": name, "full_path": group.path, "visibility": group.visibility,
		"project_creation_level": group.creation, "default_branch_protection": map[bool]int{true: 2, false: 0}[group.protects], "share_with_group_lock": group.shareLock,
	}
	if !g.old { // the field came with version 17.0
		pushers := []map[string]any{{"access_level": gitlabLevels["maintainer"]}}
		if !group.protects {
			pushers = append(pushers, map[string]any{"access_level": gitlabLevels["developer"]})
		}
		body["default_branch_protection_defaults"] = map[string]any{"allowed_to_push": pushers}
	}
	c.reply(http.StatusOK, body)
}

func (g *GitLab) getGroupMember(c *gitlabCall) {
	if group := g.seenGroup(c, c.r.PathValue("group")); group != nil {
		g.replyMember(c, func(u *gitlabUser) int { return g.groupLevel(u, group.path) })
	}
}

func (g *GitLab) getMember(c *gitlabCall) {
	g.replyMember(c, func(u *gitlabUser) int { return g.level(u, c.project) })
}

func (g *GitLab) replyMember(c *gitlabCall, level func(*gitlabUser) int) {
	for _, u := range g.users {
		if l := level(u); strconv.Itoa(u.id) == c.r.PathValue("user") && l > 0 {
			c.reply(http.StatusOK, map[string]any{"id": u.id, "username": u.name, "state": "active", "access_level": l})
			return
		}
	}
	c.fail(http.StatusNotFound, "404 Not found")
}
