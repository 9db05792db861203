package testgithost

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// gitlabCall is an authenticated request.
type gitlabCall struct {
	call
	gitlab *GitLab
	user   *gitlabUser
	token  *gitlabToken
}

// gitlabProject is an authenticated request on a project, which the user can read.
type gitlabProject struct {
	*gitlabCall
	// level is the access level of the user in the project.
	level int
}

// gitlabRefusal returns an error response. Its message may be structured.
func gitlabRefusal(status int, message any) refusal {
	return refusal{status, map[string]any{"message": message}}
}

// fail responds with an error.
func (c *gitlabCall) fail(status int, message any) { c.refuse(gitlabRefusal(status, message)) }

func (c *gitlabCall) forbidden() { c.fail(http.StatusForbidden, "403 Forbidden") }

// handle registers the routes. A token requires one of the scopes. least is the role that a request
// on a project requires.
func (g *GitLab) handle() {
	read, write := []string{"api", "read_api"}, []string{"api"}
	for _, route := range []struct {
		pattern string
		scopes  []string
		answer  func(*gitlabCall)
	}{
		{"GET /user", []string{"api", "read_api", "read_user"}, (*gitlabCall).account},
		{"GET /users", read, (*gitlabCall).listUsers},
		{"GET /personal_access_tokens/self", nil, (*gitlabCall).ownToken},
		{"GET /groups/{group}", read, (*gitlabCall).getGroup},
		{"GET /groups/{group}/members/all/{user}", read, (*gitlabCall).groupMember},
		{"GET /projects", read, (*gitlabCall).listProjects},
		{"POST /projects", write, (*gitlabCall).createProject},
	} {
		g.route(route.pattern, "", route.scopes, route.answer)
	}
	for _, route := range []struct {
		pattern string
		scopes  []string
		least   string
		answer  func(*gitlabProject)
	}{
		{"GET ", read, "noone", (*gitlabProject).getProject},
		{"PUT ", write, "maintainer", (*gitlabProject).editProject},
		{"GET /members/all/{user}", read, "noone", (*gitlabProject).member},
		{"POST /share", write, "maintainer", (*gitlabProject).share},
		{"DELETE /share/{group}", write, "maintainer", (*gitlabProject).unshare},
		{"GET /repository/branches/{branch}", read, "noone", (*gitlabProject).branch},
		{"GET /protected_branches", read, "developer", (*gitlabProject).protectedBranches},
		{"GET /deploy_keys", read, "maintainer", (*gitlabProject).listKeys},
		{"POST /deploy_keys", write, "maintainer", (*gitlabProject).addKey},
		{"PUT /deploy_keys/{id}", write, "maintainer", (*gitlabProject).editKey},
		{"DELETE /deploy_keys/{id}", write, "maintainer", (*gitlabProject).removeKey},
		{"GET /deploy_tokens", read, "maintainer", (*gitlabProject).deployTokens},
		{"POST /deploy_tokens", write, "maintainer", (*gitlabProject).addDeployToken},
		{"DELETE /deploy_tokens/{id}", write, "maintainer", (*gitlabProject).removeDeployToken},
		{"GET /merge_requests", read, "noone", (*gitlabProject).merges},
		{"POST /merge_requests", write, "developer", (*gitlabProject).addMerge},
		{"GET /merge_requests/{number}/notes", read, "noone", (*gitlabProject).notes},
		{"POST /merge_requests/{number}/notes", write, "reporter", (*gitlabProject).createNote},
		{"PUT /merge_requests/{number}/notes/{note}", write, "reporter", (*gitlabProject).editNote},
		{"DELETE /merge_requests/{number}/notes/{note}", write, "reporter", (*gitlabProject).removeNote},
		{"POST /statuses/{sha}", write, "developer", (*gitlabProject).status},
	} {
		g.route(route.pattern, "/projects/{project}", route.scopes, func(c *gitlabCall) {
			if p := c.admit(gitlabLevel(route.least)); p != nil {
				route.answer(p)
			}
		})
	}
}

// route registers a route for authenticated requests.
func (g *GitLab) route(pattern, prefix string, scopes []string, answer func(*gitlabCall)) {
	method, path, _ := strings.Cut(pattern, " ")
	g.mux.HandleFunc(method+" /api/v4"+prefix+path, func(w http.ResponseWriter, r *http.Request) {
		c := &gitlabCall{call: call{store: g.store, w: w, r: r}, gitlab: g}
		if c.authenticate(scopes) {
			answer(c)
		}
	})
}

// authenticate sets the account of a request. It responds with an error and returns false if the
// token is invalid or has none of the scopes.
func (c *gitlabCall) authenticate(scopes []string) bool {
	secret, bearer := strings.CutPrefix(c.r.Header.Get("Authorization"), "Bearer ")
	if !bearer {
		secret = c.r.Header.Get("Private-Token")
	}
	t := c.gitlab.tokens[secret]
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

// admit returns the project. It responds with an error and returns nil if the user cannot read the
// project or does not have the role.
func (c *gitlabCall) admit(least int) *gitlabProject {
	c.target = c.repository(c.r.PathValue("project"))
	if c.target == nil {
		c.fail(http.StatusNotFound, "404 Project Not Found")
		return nil
	}
	level := c.gitlab.level(c.user, c.target)
	if c.user.admin {
		level = gitlabLevel("admin")
	}
	switch {
	case level == 0 && c.target.Visibility == "private":
		c.fail(http.StatusNotFound, "404 Project Not Found")
	case level < least || c.target.Archived && c.r.Method != http.MethodGet:
		c.forbidden()
	default:
		return &gitlabProject{c, level}
	}
	return nil
}

func (c *gitlabCall) account() {
	body := map[string]any{"id": c.user.id, "username": c.user.name, "state": "active"}
	if c.user.admin {
		body["is_admin"] = true
	}
	c.reply(http.StatusOK, body)
}

func (c *gitlabCall) listUsers() {
	found := []map[string]any{}
	for _, u := range c.gitlab.users {
		if strings.EqualFold(u.name, c.r.URL.Query().Get("username")) {
			found = append(found, map[string]any{"id": u.id, "username": u.name, "state": "active"})
		}
	}
	c.reply(http.StatusOK, found)
}

func (c *gitlabCall) ownToken() {
	if c.gitlab.old {
		c.fail(http.StatusNotFound, "404 Not Found")
		return
	}
	c.reply(http.StatusOK, map[string]any{
		"id": 1, "name": "bootstrap", "revoked": false, "active": true, "scopes": c.token.scopes, "user_id": c.user.id, "expires_at": nil,
	})
}

// seenGroup returns the group of the path. It responds with an error if the user cannot read it.
func (c *gitlabCall) seenGroup(name string) *gitlabGroup {
	group := c.gitlab.group(name)
	if group == nil || group.visibility == "private" && !c.user.admin && c.gitlab.groupLevel(c.user, group.path) == 0 {
		c.fail(http.StatusNotFound, "404 Group Not Found")
		return nil
	}
	return group
}

func (c *gitlabCall) getGroup() {
	group := c.seenGroup(c.r.PathValue("group"))
	if group == nil {
		return
	}
	_, name, _ := cutLast(group.path)
	body := map[string]any{
		"id": group.id, "name": name, "path": name, "full_path": group.path, "visibility": group.visibility,
		"project_creation_level": group.creation, "default_branch_protection": map[bool]int{true: 2, false: 0}[group.protects], "share_with_group_lock": group.shareLock,
	}
	if !c.gitlab.old { // added in version 17.0
		pushers := []map[string]any{{"access_level": gitlabLevel("maintainer")}}
		if !group.protects {
			pushers = append(pushers, map[string]any{"access_level": gitlabLevel("developer")})
		}
		body["default_branch_protection_defaults"] = map[string]any{"allowed_to_push": pushers}
	}
	c.reply(http.StatusOK, body)
}

func (c *gitlabCall) groupMember() {
	if group := c.seenGroup(c.r.PathValue("group")); group != nil {
		c.replyMember(func(u *gitlabUser) int { return c.gitlab.groupLevel(u, group.path) })
	}
}

func (c *gitlabProject) member() {
	c.replyMember(func(u *gitlabUser) int { return c.gitlab.level(u, c.target) })
}

func (c *gitlabCall) replyMember(level func(*gitlabUser) int) {
	for _, u := range c.gitlab.users {
		if l := level(u); strconv.FormatInt(u.id, 10) == c.r.PathValue("user") && l > 0 {
			c.reply(http.StatusOK, map[string]any{"id": u.id, "username": u.name, "state": "active", "access_level": l})
			return
		}
	}
	c.fail(http.StatusNotFound, "404 Not found")
}
