package testgithost

import (
	"net/http"
	"slices"
	"strings"
)

// bitbucketCall is an authenticated request.
type bitbucketCall struct {
	call
	bitbucket *Bitbucket
	token     *bitbucketToken
}

func bitbucketRefusal(status int, exception, message string) refusal {
	return refusal{status, map[string]any{"errors": []map[string]any{{
		"context": nil, "message": message, "exceptionName": "com.atlassian.bitbucket." + exception,
	}}}}
}

// fail responds with an error.
func (c *bitbucketCall) fail(status int, exception, message string) {
	c.refuse(bitbucketRefusal(status, exception, message))
}

// forbidden responds with 401, as Bitbucket does to an account without permission.
func (c *bitbucketCall) forbidden() {
	c.fail(http.StatusUnauthorized, "AuthorisationException", "You are not permitted to access this resource")
}

// handle registers the routes. least is the permission that a request on a repository requires.
func (b *Bitbucket) handle() {
	const repository = "/projects/{project}/repos/{repository}"
	for _, route := range []struct {
		pattern string
		least   string
		answer  func(*bitbucketCall)
	}{
		{"GET /api/1.0/projects", "", (*bitbucketCall).projects},
		{"GET /api/1.0/projects/{project}", "", (*bitbucketCall).getProject},
		{"GET /api/1.0/groups", "", (*bitbucketCall).groups},
		{"GET /api/1.0/repos", "", (*bitbucketCall).listRepositories},
		{"POST /api/1.0/projects/{project}/repos", "", (*bitbucketCall).createRepository},
		{"GET /api/1.0" + repository, "read", (*bitbucketCall).getRepository},
		{"PUT /api/1.0" + repository, "admin", (*bitbucketCall).editRepository},
		{"GET /api/1.0" + repository + "/permissions/groups", "admin", (*bitbucketCall).grants},
		{"PUT /api/1.0" + repository + "/permissions/groups", "admin", (*bitbucketCall).grant},
		{"GET /keys/1.0" + repository + "/ssh", "admin", (*bitbucketCall).listKeys},
		{"POST /keys/1.0" + repository + "/ssh", "admin", (*bitbucketCall).addKey},
		{"DELETE /keys/1.0" + repository + "/ssh/{id}", "admin", (*bitbucketCall).removeKey},
		{"PUT /keys/1.0" + repository + "/ssh/{id}/permission/{permission}", "admin", (*bitbucketCall).permitKey},
		{"GET /branch-permissions/2.0" + repository + "/restrictions", "admin", (*bitbucketCall).listRestrictions},
		{"GET /branch-utils/1.0" + repository + "/branchmodel", "read", (*bitbucketCall).branchModel},
		{"GET /api/1.0" + repository + "/pull-requests", "read", (*bitbucketCall).pulls},
		{"POST /api/1.0" + repository + "/pull-requests", "read", (*bitbucketCall).addPull},
		{"GET /api/1.0" + repository + "/pull-requests/{number}/activities", "read", onBitbucketNotes(bitbucketNotes.activities)},
		{"POST /api/1.0" + repository + "/pull-requests/{number}/comments", "read", onBitbucketNotes(bitbucketNotes.createNote)},
		{"PUT /api/1.0" + repository + "/pull-requests/{number}/comments/{note}", "read", onBitbucketNotes(bitbucketNotes.editNote)},
		{"DELETE /api/1.0" + repository + "/pull-requests/{number}/comments/{note}", "read", onBitbucketNotes(bitbucketNotes.removeNote)},
		{"POST /api/1.0" + repository + "/commits/{sha}/builds", "read", onBitbucketNotes(bitbucketNotes.build)},
	} {
		method, path, _ := strings.Cut(route.pattern, " ")
		b.mux.HandleFunc(method+" /rest"+path, func(w http.ResponseWriter, r *http.Request) {
			c := &bitbucketCall{call: call{store: b.store, w: w, r: r}, bitbucket: b}
			if c.authenticate() && (route.least == "" || c.admit(level(route.least))) {
				route.answer(c)
			}
		})
	}
}

// authenticate reports whether the token is valid, and responds with an error otherwise.
func (c *bitbucketCall) authenticate() bool {
	secret, _ := strings.CutPrefix(c.r.Header.Get("Authorization"), "Bearer ")
	t := c.bitbucket.tokens[secret]
	if t == nil || t.expired {
		c.fail(http.StatusUnauthorized, "auth.IncorrectPasswordAuthenticationException", "Authentication failed. Please check your credentials and try again.")
		return false
	}
	c.w.Header().Set("X-AUSERNAME", t.user)
	if c.r.Method != http.MethodGet && c.r.Header.Get("X-Atlassian-Token") != "no-check" {
		http.Error(c.w, "XSRF check failed", http.StatusForbidden)
		return false
	}
	c.token = t
	return true
}

// admit finds the repository and reports whether the account has the permission. It responds with
// an error otherwise.
func (c *bitbucketCall) admit(least int) bool {
	key, slug := c.r.PathValue("project"), c.r.PathValue("repository")
	c.target = c.repository(key + "/" + slug)
	switch {
	case c.bitbucket.project(key) == nil:
		c.fail(http.StatusNotFound, "project.NoSuchProjectException", "Project "+key+" does not exist.")
	case c.target == nil:
		c.fail(http.StatusNotFound, "repository.NoSuchRepositoryException", "Repository "+key+"/"+slug+" does not exist.")
	case c.bitbucket.inRepository(c.token, c.target) < least:
		c.forbidden()
	case c.target.Archived && c.r.Method != http.MethodGet:
		c.fail(http.StatusConflict, "repository.RepositoryArchivedException", "The repository is archived.")
	default:
		return true
	}
	return false
}

func describeProject(p *bitbucketProject) map[string]any {
	kind := "NORMAL"
	if strings.HasPrefix(p.key, "~") {
		kind = "PERSONAL"
	}
	return map[string]any{"id": p.id, "key": p.key, "name": p.name, "public": false, "type": kind}
}

// describe returns the API object of a repository.
func (b *Bitbucket) describe(r *Repository) map[string]any {
	clone := []map[string]any{{"name": "http", "href": b.web("/scm/" + r.git + ".git")}}
	if !b.noSSH {
		clone = append(clone, map[string]any{"name": "ssh", "href": "ssh://git@" + b.SSHHostname + "/" + r.git + ".git"})
	}
	branch, _ := b.standard(r)
	return map[string]any{
		"id": r.id, "slug": r.Name, "name": r.title, "description": r.Description, "scmId": "git", "public": r.Visibility == "public",
		"state":    map[bool]string{true: "INITIALISATION_FAILED", false: "AVAILABLE"}[r.Disabled],
		"archived": r.Archived, "forkable": true, "defaultBranch": branch, "project": describeProject(b.project(r.Owner)),
		"links": map[string]any{"clone": clone, "self": []map[string]any{{"href": b.repositoryURL(r) + "/browse"}}},
	}
}

// repositoryURL returns the web page of a repository.
func (b *Bitbucket) repositoryURL(r *Repository) string {
	return b.web("/projects/" + r.Owner + "/repos/" + r.Name)
}

// projects lists the projects that the account can read or has a permission in.
func (c *bitbucketCall) projects() {
	q := c.r.URL.Query()
	least := 0
	switch wanted := q.Get("permission"); wanted {
	case "":
	case "PROJECT_READ", "PROJECT_WRITE", "PROJECT_ADMIN":
		least = level(strings.TrimPrefix(wanted, "PROJECT_"))
	default:
		c.fail(http.StatusBadRequest, "validation.ArgumentValidationException", "permission is not valid")
		return
	}
	all := []any{}
	for _, p := range c.bitbucket.projects {
		if strings.Contains(strings.ToLower(p.name), strings.ToLower(q.Get("name"))) && c.sees(p) && c.bitbucket.inProject(c.token, p) >= least {
			all = append(all, describeProject(p))
		}
	}
	c.page(&c.call, all)
}

// sees reports whether the account can read a project: with a permission in the project or in one
// of its repositories.
func (c *bitbucketCall) sees(p *bitbucketProject) bool {
	return c.bitbucket.inProject(c.token, p) > 0 || slices.ContainsFunc(c.repositories, func(r *Repository) bool {
		return strings.EqualFold(r.Owner, p.key) && c.bitbucket.inRepository(c.token, r) > 0
	})
}

func (c *bitbucketCall) getProject() {
	key := c.r.PathValue("project")
	switch p := c.bitbucket.project(key); {
	case p == nil:
		c.fail(http.StatusNotFound, "project.NoSuchProjectException", "Project "+key+" does not exist.")
	case !c.sees(p):
		c.forbidden()
	default:
		c.reply(http.StatusOK, describeProject(p))
	}
}

func (c *bitbucketCall) groups() {
	found := []any{}
	for _, group := range c.bitbucket.groups {
		if strings.Contains(group, c.r.URL.Query().Get("filter")) {
			found = append(found, group)
		}
	}
	c.page(&c.call, found)
}

func (c *bitbucketCall) listRepositories() {
	q := c.r.URL.Query()
	least := level("read")
	if q.Has("permission") {
		least = level(q.Get("permission"))
	}
	all := []any{}
	for _, r := range c.repositories {
		if (!q.Has("projectkey") || strings.EqualFold(r.Owner, q.Get("projectkey"))) && strings.Contains(r.title, q.Get("name")) && c.bitbucket.inRepository(c.token, r) >= least {
			all = append(all, c.bitbucket.describe(r))
		}
	}
	c.page(&c.call, all)
}
