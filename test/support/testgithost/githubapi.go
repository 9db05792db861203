package testgithost

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/fluxkit/flux/test/support/testopenapi"
)

// gitHubCall is a request to GitHub. The state is locked.
type gitHubCall struct {
	call
	gitHubView
	token *GitHubToken
}

// gitHubRoute is a documented operation of the API.
type gitHubRoute struct {
	pattern string
	// A classic token requires one of scopes, a fine-grained token requires permission, such as
	// "administration=write".
	scopes     []string
	permission string
	// role is the role that a user requires in the repository of the path.
	role   string
	answer func(*gitHubCall)
}

var (
	repoScopes = []string{"repo"}
	orgScopes  = []string{"read:org", "write:org", "admin:org"}
)

// gitHubRoutes lists the implemented operations.
var gitHubRoutes = []gitHubRoute{
	{"GET /user", nil, "", "", (*gitHubCall).user},
	{"GET /users/{owner}", nil, "", "", (*gitHubCall).account},
	{"GET /orgs/{org}", nil, "", "", (*gitHubCall).organization},
	{"GET /user/memberships/orgs/{org}", orgScopes, "", "", (*gitHubCall).membership},
	{"GET /orgs/{org}/teams/{team}", orgScopes, "members=read", "", (*gitHubCall).team},
	{"GET /orgs/{org}/teams/{team}/repos/{owner}/{repo}", orgScopes, "members=read", "pull", (*gitHubCall).teamRepository},
	{"PUT /orgs/{org}/teams/{team}/repos/{owner}/{repo}", repoScopes, "administration=write", "admin", (*gitHubCall).giveTeam},
	{"POST /user/repos", []string{"public_repo", "repo"}, "administration=write", "", (*gitHubCall).createForUser},
	{"POST /orgs/{org}/repos", []string{"public_repo", "repo"}, "administration=write", "", (*gitHubCall).createForOrganization},
	{"GET /repos/{owner}/{repo}", []string{"repo"}, "metadata=read", "pull", (*gitHubCall).get},
	{"PATCH /repos/{owner}/{repo}", repoScopes, "administration=write", "admin", (*gitHubCall).edit},
	{"GET /repos/{owner}/{repo}/keys", repoScopes, "administration=read", "admin", (*gitHubCall).listKeys},
	{"POST /repos/{owner}/{repo}/keys", repoScopes, "administration=write", "admin", (*gitHubCall).addKey},
	{"DELETE /repos/{owner}/{repo}/keys/{id}", repoScopes, "administration=write", "admin", (*gitHubCall).removeKey},
	{"GET /repos/{owner}/{repo}/branches/{branch}", repoScopes, "contents=read", "pull", (*gitHubCall).branch},
	{"GET /repos/{owner}/{repo}/branches/{branch}/protection", repoScopes, "administration=read", "admin", (*gitHubCall).protection},
	{"GET /repos/{owner}/{repo}/rules/branches/{branch}", repoScopes, "metadata=read", "pull", (*gitHubCall).rules},
	{"GET /repos/{owner}/{repo}/rulesets/{id}", repoScopes, "metadata=read", "pull", (*gitHubCall).ruleset},
	{"GET /repos/{owner}/{repo}/pulls", repoScopes, "pull_requests=read", "pull", (*gitHubCall).pulls},
	{"POST /repos/{owner}/{repo}/pulls", repoScopes, "pull_requests=write", "pull", (*gitHubCall).addPull},
	{"GET /repos/{owner}/{repo}/issues/{number}/comments", repoScopes, "pull_requests=read", "pull", onGitHubNotes(gitHubNotes.notes)},
	{"POST /repos/{owner}/{repo}/issues/{number}/comments", repoScopes, "pull_requests=write", "pull", onGitHubNotes(gitHubNotes.createNote)},
	{"PATCH /repos/{owner}/{repo}/issues/comments/{note}", repoScopes, "pull_requests=write", "pull", onGitHubNotes(gitHubNotes.editNote)},
	{"DELETE /repos/{owner}/{repo}/issues/comments/{note}", repoScopes, "pull_requests=write", "pull", onGitHubNotes(gitHubNotes.removeNote)},
	{"POST /repos/{owner}/{repo}/statuses/{sha}", []string{"repo:status", "repo"}, "statuses=write", "push", onGitHubNotes(gitHubNotes.status)},
}

// loaded contains a description, or the error of loading it.
type loaded struct {
	description *testopenapi.Description
	err         error
}

// gitHubDescription returns the OpenAPI description of the routes. Without a downloaded
// description, requests are not validated; TestGitHubDescription then fails.
var gitHubDescription = sync.OnceValue(func() loaded {
	var operations []string
	for _, route := range gitHubRoutes {
		operations = append(operations, route.pattern)
	}
	d, err := testopenapi.GitHub(operations)
	return loaded{d, err}
})

// handle registers the routes.
func (g *GitHub) handle() {
	for _, route := range gitHubRoutes {
		method, path, _ := strings.Cut(route.pattern, " ")
		g.mux.HandleFunc(method+" /api/v3"+path, func(w http.ResponseWriter, r *http.Request) { g.answer(route, w, r) })
	}
}

// answer responds to a request. Like GitHub, it checks the token, the rate limit, single sign-on,
// the visibility of the repository, scopes, permissions and the role before the operation.
func (g *GitHub) answer(route gitHubRoute, w http.ResponseWriter, r *http.Request) {
	c := &gitHubCall{call: call{store: g.store, w: w, r: r}, gitHubView: gitHubView{g}}
	secret := r.Header.Get("Authorization")
	for _, scheme := range []string{"Bearer ", "token "} {
		secret = strings.TrimPrefix(secret, scheme)
	}
	if c.token = g.Tokens[secret]; c.token == nil {
		c.fail(http.StatusUnauthorized, "Bad credentials")
		return
	}
	if r.Header.Get("User-Agent") == "" || strings.HasPrefix(r.Header.Get("User-Agent"), "Go-http-client") {
		c.fail(http.StatusForbidden, "Request forbidden by administrative rules. Please make sure your request has a User-Agent header")
		return
	}
	if end := c.token.Expires; !end.IsZero() {
		w.Header().Set("GitHub-Authentication-Token-Expiration", end.UTC().Format("2006-01-02 15:04:05 MST"))
	}
	if c.token.Classic {
		w.Header().Set("X-OAuth-Scopes", strings.Join(c.token.Scopes, ", "))
		w.Header().Set("X-Accepted-OAuth-Scopes", strings.Join(route.scopes, ", "))
	}
	if g.exceeded(&c.call) || !c.admitted(route) {
		return
	}
	route.answer(c)
}

// exceeded reports whether the rate limit of the token is exceeded, and responds in that case.
func (g *GitHub) exceeded(c *call) bool {
	h := c.w.Header()
	h.Set("X-RateLimit-Limit", "5000")
	h.Set("X-RateLimit-Remaining", "4999")
	if g.Limit.Times == 0 {
		return false
	}
	g.Limit.Times--
	if g.Limit.RetryAfter > 0 {
		h.Set("Retry-After", strconv.Itoa(g.Limit.RetryAfter))
		c.refuse(gitHubRefusal(http.StatusForbidden, "You have exceeded a secondary rate limit. Please wait a few minutes before you try again."))
		return true
	}
	h.Set("X-RateLimit-Remaining", "0")
	h.Set("X-RateLimit-Reset", strconv.FormatInt(g.Limit.Until.Unix(), 10))
	c.refuse(gitHubRefusal(http.StatusForbidden, "API rate limit exceeded for user ID 1."))
	return true
}

// admitted reports whether a request is allowed, and responds with an error otherwise.
func (c *gitHubCall) admitted(route gitHubRoute) bool {
	owner := c.r.PathValue("owner")
	if org := c.r.PathValue("org"); org != "" {
		owner = org
	}
	if route.pattern != "GET /users/{owner}" && slices.Contains(c.token.SignOn, owner) {
		c.w.Header().Set("X-GitHub-SSO", "required; url=https://"+c.Hostname+"/orgs/"+owner+"/sso?authorization_request=A1B2")
		c.fail(http.StatusForbidden, "Resource protected by organization SAML enforcement. You must grant your Personal Access token access to this organization.")
		return false
	}
	if strings.Contains(route.pattern, "{repo}") {
		name := c.r.PathValue("owner") + "/" + c.r.PathValue("repo")
		if to := c.github.Renamed[name]; to != "" {
			http.Redirect(c.w, c.r, strings.Replace(c.r.URL.Path, name, to, 1), http.StatusMovedPermanently)
			return false
		}
		c.target = c.github.repository(name)
		if c.target == nil || !c.github.sees(c.token, c.target) {
			c.fail(http.StatusNotFound, "Not Found")
			return false
		}
	}
	return c.scoped(route) && c.permitted(route)
}

// scoped reports whether a classic token has one of the scopes. Requests that read public
// repositories require none.
func (c *gitHubCall) scoped(route gitHubRoute) bool {
	open := c.target != nil && c.target.Visibility == "public" && (c.r.Method == http.MethodGet || slices.Contains(c.token.Scopes, "public_repo"))
	if !c.token.Classic || len(route.scopes) == 0 || open ||
		slices.ContainsFunc(route.scopes, func(scope string) bool { return slices.Contains(c.token.Scopes, scope) }) {
		return true
	}
	if c.r.Method == http.MethodGet && c.target == nil {
		c.fail(http.StatusForbidden, "You must have the read:org scope for this.")
		return false
	}
	c.fail(http.StatusNotFound, "Not Found")
	return false
}

// permitted reports whether a fine-grained token and the role of its user have the required
// permission.
func (c *gitHubCall) permitted(route gitHubRoute) bool {
	name, level, _ := strings.Cut(route.permission, "=")
	has := c.token.Permissions[name]
	if !c.token.Classic && name != "" && has != level && has != "write" {
		c.w.Header().Set("X-Accepted-GitHub-Permissions", route.permission)
		words := "Resource not accessible by personal access token"
		if c.token.Login == "" {
			words = "Resource not accessible by integration"
		}
		c.fail(http.StatusForbidden, words)
		return false
	}
	if route.role == "" || c.token.Login == "" {
		return true
	}
	switch role := c.github.role(c.target, c.token.Login); {
	case reaches(role, route.role):
		return true
	case route.role == "admin" && reaches(role, "push") && c.r.Method != http.MethodGet:
		c.fail(http.StatusForbidden, "Must have admin rights to Repository.")
	default:
		c.fail(http.StatusNotFound, "Not Found")
	}
	return false
}

const gitHubDocs = "https://docs.github.com/rest"

// gitHubRefusal returns an error.
func gitHubRefusal(status int, message string) refusal {
	return refusal{status, map[string]any{"message": message, "documentation_url": gitHubDocs, "status": strconv.Itoa(status)}}
}

// gitHubInvalid returns an error about a field of the request.
func gitHubInvalid(message, resource, field, code, detail string) refusal {
	return refusal{http.StatusUnprocessableEntity, map[string]any{
		"message": message, "documentation_url": gitHubDocs, "status": "422",
		"errors": []any{map[string]any{"resource": resource, "field": field, "code": code, "message": detail}},
	}}
}

// fail responds with an error.
func (c *gitHubCall) fail(status int, message string) { c.refuse(gitHubRefusal(status, message)) }

// stamp returns the time of all objects.
func stamp() string { return time.Date(2026, 11, 1, 10, 0, 0, 0, time.UTC).Format(time.RFC3339) }
