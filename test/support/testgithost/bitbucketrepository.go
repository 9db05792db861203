package testgithost

import (
	"cmp"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
)

func (c *bitbucketCall) getRepository() { c.reply(http.StatusOK, c.bitbucket.describe(c.target)) }

// bitbucketSettings is the body of requests that create or change a repository.
type bitbucketSettings struct {
	Name        string `json:"name"`
	ScmID       string `json:"scmId"`
	Public      bool   `json:"public"`
	Description string `json:"description"`
	Branch      string `json:"defaultBranch"`
	Project     struct {
		Key string `json:"key"`
	} `json:"project"`
}

var notInSlug = regexp.MustCompile(`[^a-z0-9_.-]`)

func (c *bitbucketCall) createRepository() {
	var in bitbucketSettings
	if !c.read(&in) {
		return
	}
	key := c.r.PathValue("project")
	p := c.bitbucket.project(key)
	if p == nil && strings.EqualFold(key, "~"+c.token.user) {
		p = c.bitbucket.addProject(key, c.token.user, nil) // the first repository of a user creates the personal project
	}
	slug := notInSlug.ReplaceAllString(strings.ToLower(in.Name), "-")
	switch {
	case p == nil:
		c.fail(http.StatusNotFound, "project.NoSuchProjectException", "Project "+key+" does not exist.")
		return
	case c.bitbucket.inProject(c.token, p) < level("admin"):
		c.forbidden()
		return
	case c.repository(p.key+"/"+slug) != nil:
		c.fail(http.StatusConflict, "DuplicateRepositoryException", "This repository URL is already taken by '"+slug+"' in '"+p.name+"'")
		return
	}
	r := c.create(p.key+"/"+slug, bitbucketVisibility[in.Public], cmp.Or(in.Branch, "master"))
	r.title, r.Description = in.Name, in.Description
	c.reply(http.StatusCreated, c.bitbucket.describe(r))
}

var bitbucketVisibility = map[bool]string{true: "public", false: "private"}

func (c *bitbucketCall) editRepository() {
	var in bitbucketSettings
	if !c.read(&in) {
		return
	}
	if in.Project.Key != c.target.Owner || in.Name != c.target.title {
		c.unknownCall(c.w, c.r) // changing the project or name would move or rename it
		return
	}
	c.target.Visibility, c.target.Description = bitbucketVisibility[in.Public], in.Description
	c.reply(http.StatusOK, c.bitbucket.describe(c.target))
}

func (c *bitbucketCall) grants() {
	all := []any{}
	for _, group := range slices.Sorted(maps.Keys(c.target.Teams)) {
		all = append(all, map[string]any{"group": map[string]any{"name": group}, "permission": permission(c.target.Teams[group])})
	}
	c.page(&c.call, all)
}

func (c *bitbucketCall) grant() {
	q := c.r.URL.Query()
	name := q.Get("name")
	switch {
	case !slices.Contains(c.bitbucket.groups, name):
		c.fail(http.StatusNotFound, "user.NoSuchGroupException", "The group '"+name+"' does not exist.")
	case level(q.Get("permission")) < level("read"):
		c.fail(http.StatusBadRequest, "validation.ArgumentValidationException", "permission is not valid")
	default:
		c.target.Teams[name] = bitbucketRoles[level(q.Get("permission"))]
		c.done()
	}
}

func (c *bitbucketCall) addKey() {
	var in struct {
		Key struct {
			Text  string `json:"text"`
			Label string `json:"label"`
		} `json:"key"`
		Permission string `json:"permission"`
	}
	if !c.read(&in) {
		return
	}
	c.call.addKey(&Key{Title: in.Key.Label, Key: in.Key.Text, ReadOnly: in.Permission == "REPO_READ"}, keyIn(c.target, in.Key.Text) != nil,
		bitbucketRefusal(http.StatusConflict, "ssh.DuplicateSshKeyException", "The SSH key is already used by this repository."))
}

func (c *bitbucketCall) permitKey() {
	c.withKey(func(k *Key) {
		k.ReadOnly = c.r.PathValue("permission") == "REPO_READ"
		c.reply(http.StatusOK, c.keyObject(c.target, k))
	})
}

func (c *bitbucketCall) listRestrictions() {
	all := []any{}
	for i, rule := range c.target.restrictions {
		users := []map[string]any{}
		for _, name := range rule.except {
			users = append(users, map[string]any{"name": name, "slug": name})
		}
		id := rule.id
		if rule.matcher == "BRANCH" {
			id = "refs/heads/" + id
		}
		all = append(all, map[string]any{
			"id": i + 1, "type": rule.kind, "users": users, "groups": []string{}, "accessKeys": []any{},
			"matcher": map[string]any{"id": id, "displayId": rule.id, "type": map[string]any{"id": rule.matcher}, "active": true},
		})
	}
	c.page(&c.call, all)
}

func (c *bitbucketCall) branchModel() {
	branch, _ := c.standard(c.target)
	c.reply(http.StatusOK, map[string]any{
		"development": map[string]any{"id": "refs/heads/" + branch, "displayId": branch, "type": "BRANCH"},
		"types":       []map[string]any{{"id": "RELEASE", "displayName": "Release", "prefix": "release/"}},
	})
}

func (c *bitbucketCall) pulls() {
	q := c.r.URL.Query()
	if q.Get("direction") != "OUTGOING" {
		c.unknownCall(c.w, c.r)
		return
	}
	c.listPulls(func(p *Pull) bool { return !p.Merged && "refs/heads/"+p.Head == q.Get("at") })
}

func (c *bitbucketCall) addPull() {
	type ref struct {
		ID         string `json:"id"`
		Repository struct {
			Slug    string `json:"slug"`
			Project struct {
				Key string `json:"key"`
			} `json:"project"`
		} `json:"repository"`
	}
	var in struct {
		Title       string `json:"title"`
		Description string `json:"description"`
		From        ref    `json:"fromRef"`
		To          ref    `json:"toRef"`
	}
	if !c.read(&in) {
		return
	}
	if in.From.Repository.Slug != c.target.Name || in.To.Repository.Project.Key != c.target.Owner {
		c.unknownCall(c.w, c.r) // pull requests between forks are not implemented
		return
	}
	c.openPull(&Pull{Title: in.Title, Body: in.Description, Head: strings.TrimPrefix(in.From.ID, "refs/heads/"), Base: strings.TrimPrefix(in.To.ID, "refs/heads/")})
}
