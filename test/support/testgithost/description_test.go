package testgithost

import (
	"net/http"
	"strings"
	"testing"
)

// TestGitHubDescription requires GitHub's OpenAPI description, with which the
// stand-in compares the requests and responses of all tests, and compares a
// successful response of each route.
func TestGitHubDescription(t *testing.T) {
	t.Parallel()
	if err := gitHubDescription().err; err != nil {
		t.Fatal(err)
	}
	g := StartGitHub(t)
	g.Classic("token", "ada", "repo", "read:org")
	r := g.AddRepository("acme/fleet", "private")
	check(t, g.Git.Commit("acme/fleet", "main", "One", map[string]string{"a": "b"}))
	check(t, g.Git.Commit("acme/fleet", "side", "Two", map[string]string{"a": "c"}))
	head, err := g.Git.Head("acme/fleet", "main")
	check(t, err)
	r.Pulls = []*Pull{{Number: 1, Title: "One", Head: "main", Base: "main", Notes: []*Note{{ID: 70, Author: gitHubBot, Text: "One"}}}}
	r.Teams["ops"] = "push"
	r.Keys = []*Key{{ID: 7, Title: "old", Key: "ssh-ed25519 AAAA"}}
	r.Protection["main"] = &GitHubProtection{Reviews: true, Checks: true, Pushers: []string{"ada"}}
	r.Rules["main"] = []GitHubRule{{Type: "pull_request", Ruleset: 9}, {Type: "update", Ruleset: 9}, {Type: "required_status_checks", Ruleset: 9}}
	routes := map[string]bool{}
	for _, route := range gitHubRoutes {
		routes[route.pattern] = true
	}
	for _, request := range []struct{ pattern, path, body string }{
		{"GET /user", "/user", ""},
		{"GET /users/{owner}", "/users/bob", ""},
		{"GET /orgs/{org}", "/orgs/acme", ""},
		{"GET /user/memberships/orgs/{org}", "/user/memberships/orgs/acme", ""},
		{"GET /orgs/{org}/teams/{team}", "/orgs/acme/teams/ops", ""},
		{"GET /orgs/{org}/teams/{team}/repos/{owner}/{repo}", "/orgs/acme/teams/ops/repos/acme/fleet", ""},
		{"PUT /orgs/{org}/teams/{team}/repos/{owner}/{repo}", "/orgs/acme/teams/dev/repos/acme/fleet", `{"permission": "pull"}`},
		{"POST /user/repos", "/user/repos", `{"name": "own", "private": true}`},
		{"POST /orgs/{org}/repos", "/orgs/acme/repos", `{"name": "other", "visibility": "internal"}`},
		{"GET /repos/{owner}/{repo}", "/repos/acme/fleet", ""},
		{"PATCH /repos/{owner}/{repo}", "/repos/acme/fleet", `{"description": "All of it"}`},
		{"GET /repos/{owner}/{repo}/keys", "/repos/acme/fleet/keys?per_page=100", ""},
		{"POST /repos/{owner}/{repo}/keys", "/repos/acme/fleet/keys", `{"title": "new", "key": "ssh-ed25519 BBBB", "read_only": true}`},
		{"DELETE /repos/{owner}/{repo}/keys/{id}", "/repos/acme/fleet/keys/7", ""},
		{"GET /repos/{owner}/{repo}/branches/{branch}", "/repos/acme/fleet/branches/main", ""},
		{"GET /repos/{owner}/{repo}/branches/{branch}/protection", "/repos/acme/fleet/branches/main/protection", ""},
		{"GET /repos/{owner}/{repo}/rules/branches/{branch}", "/repos/acme/fleet/rules/branches/main", ""},
		{"GET /repos/{owner}/{repo}/rulesets/{id}", "/repos/acme/fleet/rulesets/9?includes_parents=true", ""},
		{"POST /repos/{owner}/{repo}/pulls", "/repos/acme/fleet/pulls", `{"title": "Two", "head": "side", "base": "main"}`},
		{"GET /repos/{owner}/{repo}/pulls", "/repos/acme/fleet/pulls?state=open", ""},
		{"GET /repos/{owner}/{repo}/issues/{number}/comments", "/repos/acme/fleet/issues/1/comments?per_page=100&page=1", ""},
		{"POST /repos/{owner}/{repo}/issues/{number}/comments", "/repos/acme/fleet/issues/1/comments", `{"body": "All of it"}`},
		{"PATCH /repos/{owner}/{repo}/issues/comments/{note}", "/repos/acme/fleet/issues/comments/70", `{"body": "More"}`},
		{"DELETE /repos/{owner}/{repo}/issues/comments/{note}", "/repos/acme/fleet/issues/comments/70", ""},
		{"POST /repos/{owner}/{repo}/statuses/{sha}", "/repos/acme/fleet/statuses/" + head, `{"state": "success", "context": "flux", "description": "no changes"}`},
	} {
		method, _, _ := strings.Cut(request.pattern, " ")
		g.request(t, method, request.path, request.body)
		if !routes[request.pattern] {
			t.Errorf("the stand-in has no route %s", request.pattern)
		}
		delete(routes, request.pattern)
	}
	for route := range routes {
		t.Errorf("no request for route %s", route)
	}
}

// request sends a request of ada's that has to succeed.
func (g *GitHub) request(t *testing.T, method, path, body string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, "https://"+g.Hostname+"/api/v3"+path, strings.NewReader(body))
	check(t, err)
	if body == "" {
		r.Body = http.NoBody
	}
	r.Header.Set("Authorization", "Bearer token")
	r.Header.Set("User-Agent", "test")
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/vnd.github.v3.repository+json")
	response, err := g.http.Client().Do(r)
	check(t, err)
	check(t, response.Body.Close())
	if response.StatusCode >= http.StatusBadRequest {
		t.Errorf("%s %s: %s", method, path, response.Status)
	}
}

// TestGitHubUndocumented requires that a request or a response that differs from
// the description fails the test that uses the stand-in.
func TestGitHubUndocumented(t *testing.T) {
	t.Parallel()
	for want, test := range map[string]struct {
		query string
		edit  func(object)
	}{
		`the query parameter "visible" is not documented`: {"?visible=all", func(object) {}},
		`the field "avatar" is not documented`:            {"", func(o object) { o["avatar"] = "x" }},
		`property "full_name" is missing`:                 {"", func(o object) { delete(o, "full_name") }},
		`/private: value must be a boolean`:               {"", func(o object) { o["private"] = "yes" }},
	} {
		g, err := OpenGitHub()
		check(t, err)
		r := g.AddRepository("acme/fleet", "private")
		g.api = changed(func(w http.ResponseWriter) {
			o := gitHubView{g}.fullRepository(r, "admin")
			test.edit(o)
			reply(w, http.StatusOK, o)
		})
		g.request(t, http.MethodGet, "/repos/acme/fleet"+test.query, "")
		if err := g.Close(); err == nil || !strings.Contains(err.Error(), want) || strings.Count(err.Error(), "\n") > 0 {
			t.Errorf("%v, not %s", err, want)
		}
	}
}

// changed is an API with one response.
type changed func(http.ResponseWriter)

func (c changed) ServeHTTP(w http.ResponseWriter, _ *http.Request) { c(w) }

func (changed) GitAccess(string, string, string) Access { return Access{} }
