package testgithost

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// bitbucketCall is an authenticated request.
type bitbucketCall struct {
	w http.ResponseWriter
	r *http.Request

	token *bitbucketToken
	// project and repository are named in the path.
	project    *bitbucketProject
	repository *bitbucketRepository
}

func (c *bitbucketCall) reply(status int, body any) { reply(c.w, status, body) }

func (c *bitbucketCall) fail(status int, exception, message string) {
	c.reply(status, map[string]any{"errors": []map[string]any{{
		"context": nil, "message": message, "exceptionName": "com.atlassian.bitbucket." + exception,
	}}})
}

// refuse responds with 401, as Bitbucket does to an account without permission.
func (c *bitbucketCall) refuse() {
	c.fail(http.StatusUnauthorized, "AuthorisationException", "You are not permitted to access this resource")
}

// bitbucketPage responds with a page of a list. The pages are smaller than requested,
// as those of the server may be.
func bitbucketPage[T any](c *bitbucketCall, all []T) {
	start, _ := strconv.Atoi(c.r.URL.Query().Get("start"))
	start = min(start, len(all))
	end := min(start+2, len(all))
	body := map[string]any{"size": end - start, "limit": 2, "start": start, "isLastPage": end == len(all), "values": append([]T{}, all[start:end]...), "nextPageStart": nil}
	if end < len(all) {
		body["nextPageStart"] = end
	}
	c.reply(http.StatusOK, body)
}

// ServeHTTP implements API.
func (b *Bitbucket) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.limit.takes() {
		w.Header().Set("X-Ratelimit-Remaining", "0")
		w.Header().Set("Retry-After", strconv.Itoa(int(b.limit.pause.Seconds())))
		http.Error(w, "", http.StatusTooManyRequests)
		return
	}
	b.mux.ServeHTTP(w, r)
}

// routes returns the routes of Bitbucket; least is the permission that a request on a
// repository requires.
func (b *Bitbucket) routes() *http.ServeMux {
	mux := http.NewServeMux()
	mux.HandleFunc("/", b.unknownCall)
	const repository = "/projects/{project}/repos/{repository}"
	for _, route := range []struct {
		pattern string
		least   string
		answer  func(*bitbucketCall)
	}{
		{"GET /api/1.0/projects", "", b.getProjects},
		{"GET /api/1.0/projects/{project}", "", b.getProject},
		{"GET /api/1.0/groups", "", b.getGroups},
		{"GET /api/1.0/repos", "", b.getRepositories},
		{"POST /api/1.0/projects/{project}/repos", "", b.createRepository},
		{"GET /api/1.0" + repository, "read", b.getRepository},
		{"PUT /api/1.0" + repository, "admin", b.editRepository},
		{"GET /api/1.0" + repository + "/permissions/groups", "admin", b.getGrants},
		{"PUT /api/1.0" + repository + "/permissions/groups", "admin", b.grant},
		{"GET /keys/1.0" + repository + "/ssh", "admin", b.getKeys},
		{"POST /keys/1.0" + repository + "/ssh", "admin", b.addKey},
		{"DELETE /keys/1.0" + repository + "/ssh/{key}", "admin", b.removeKey},
		{"PUT /keys/1.0" + repository + "/ssh/{key}/permission/{permission}", "admin", b.permitKey},
		{"GET /branch-permissions/2.0" + repository + "/restrictions", "admin", b.getRules},
		{"GET /branch-utils/1.0" + repository + "/branchmodel", "read", b.getModel},
		{"GET /api/1.0" + repository + "/pull-requests", "read", b.getPulls},
		{"POST /api/1.0" + repository + "/pull-requests", "read", b.addPull},
	} {
		method, path, _ := strings.Cut(route.pattern, " ")
		prefix := "/rest"
		if b.Base != "" {
			prefix = "/" + b.Base + prefix
		}
		mux.HandleFunc(method+" "+prefix+path, func(w http.ResponseWriter, r *http.Request) {
			c := &bitbucketCall{w: w, r: r}
			if b.authenticate(c) && (route.least == "" || b.admit(c, level(route.least))) {
				route.answer(c)
			}
		})
	}
	return mux
}

func (b *Bitbucket) authenticate(c *bitbucketCall) bool {
	secret, _ := strings.CutPrefix(c.r.Header.Get("Authorization"), "Bearer ")
	t := b.tokens[secret]
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

// admit finds the repository. It responds itself if the account has no permission.
func (b *Bitbucket) admit(c *bitbucketCall, least int) bool {
	key := c.r.PathValue("project")
	c.project = b.project(key)
	if c.project == nil {
		c.fail(http.StatusNotFound, "project.NoSuchProjectException", "Project "+key+" does not exist.")
		return false
	}
	slug := c.r.PathValue("repository")
	c.repository = b.repository(key, slug)
	switch {
	case c.repository == nil:
		c.fail(http.StatusNotFound, "repository.NoSuchRepositoryException", "Repository "+key+"/"+slug+" does not exist.")
	case c.token.inRepository(c.repository) < least:
		c.refuse()
	case c.repository.archived && c.r.Method != http.MethodGet:
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

func (b *Bitbucket) describe(r *bitbucketRepository) map[string]any {
	path := b.gitName(r)
	clone := []map[string]any{{"name": "http", "href": scheme + strings.TrimSuffix(b.Hostname+"/"+b.Base, "/") + "/scm/" + path + ".git"}}
	if !b.noSSH {
		clone = append(clone, map[string]any{"name": "ssh", "href": "ssh://git@" + b.SSHHostname + "/" + path + ".git"})
	}
	branch, _ := b.standard(r)
	return map[string]any{
		"id": r.id, "slug": r.slug, "name": r.name, "description": r.description, "scmId": "git", "state": r.state, "public": r.public,
		"archived": r.archived, "forkable": true, "defaultBranch": branch, "project": describeProject(r.project),
		"links": map[string]any{"clone": clone, "self": []map[string]any{{"href": b.web(r) + "/browse"}}},
	}
}

func (b *Bitbucket) web(r *bitbucketRepository) string {
	return scheme + strings.TrimSuffix(b.Hostname+"/"+b.Base, "/") + "/projects/" + r.project.key + "/repos/" + r.slug
}

// getProjects lists the projects that the account can read, or has a permission in.
func (b *Bitbucket) getProjects(c *bitbucketCall) {
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
	all := []map[string]any{}
	for _, p := range b.projects {
		if strings.Contains(strings.ToLower(p.name), strings.ToLower(q.Get("name"))) && b.sees(c.token, p) && c.token.inProject(p) >= least {
			all = append(all, describeProject(p))
		}
	}
	bitbucketPage(c, all)
}

// sees reports whether an account can read a project: by a permission in it, or in
// one of its repositories.
func (b *Bitbucket) sees(t *bitbucketToken, p *bitbucketProject) bool {
	return t.inProject(p) > 0 || slices.ContainsFunc(p.repositories, func(r *bitbucketRepository) bool { return t.inRepository(r) > 0 })
}

func (b *Bitbucket) getProject(c *bitbucketCall) {
	key := c.r.PathValue("project")
	p := b.project(key)
	switch {
	case p == nil:
		c.fail(http.StatusNotFound, "project.NoSuchProjectException", "Project "+key+" does not exist.")
	case !b.sees(c.token, p):
		c.refuse()
	default:
		c.reply(http.StatusOK, describeProject(p))
	}
}

func (b *Bitbucket) getGroups(c *bitbucketCall) {
	found := []string{}
	for _, group := range b.groups {
		if strings.Contains(group, c.r.URL.Query().Get("filter")) {
			found = append(found, group)
		}
	}
	bitbucketPage(c, found)
}

func (b *Bitbucket) getRepositories(c *bitbucketCall) {
	q := c.r.URL.Query()
	least := level("read")
	if q.Has("permission") {
		least = level(q.Get("permission"))
	}
	all := []map[string]any{}
	for _, p := range b.projects {
		for _, r := range p.repositories {
			if (!q.Has("projectkey") || strings.EqualFold(p.key, q.Get("projectkey"))) && strings.Contains(r.name, q.Get("name")) && c.token.inRepository(r) >= least {
				all = append(all, b.describe(r))
			}
		}
	}
	bitbucketPage(c, all)
}
