package testgithost

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/crypto/ssh"
)

func (b *Bitbucket) getRepository(c *bitbucketCall) { c.reply(http.StatusOK, b.describe(c.repository)) }

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

func (b *Bitbucket) createRepository(c *bitbucketCall) {
	var in bitbucketSettings
	if err := decode(c.r, &in); err != nil || in.ScmID != "git" || in.Name == "" {
		b.unknownCall(c.w, c.r)
		return
	}
	key := c.r.PathValue("project")
	p := b.project(key)
	if p == nil && strings.EqualFold(key, "~"+c.token.user) {
		p = b.addProject(key, c.token.user, nil) // a personal project comes with its first repository
	}
	slug := notInSlug.ReplaceAllString(strings.ToLower(in.Name), "-")
	switch {
	case p == nil:
		c.fail(http.StatusNotFound, "project.NoSuchProjectException", "Project "+key+" does not exist.")
		return
	case c.token.inProject(p) < level("admin"):
		c.refuse()
		return
	case b.repository(key, slug) != nil:
		c.fail(http.StatusConflict, "DuplicateRepositoryException", "This repository URL is already taken by '"+slug+"' in '"+p.name+"'")
		return
	}
	branch := in.Branch
	if branch == "" {
		branch = "master"
	}
	r, err := b.newRepository(p, slug, in.Name, branch)
	if err != nil {
		panic(err)
	}
	r.public, r.description = in.Public, in.Description
	c.reply(http.StatusCreated, b.describe(r))
}

func (b *Bitbucket) editRepository(c *bitbucketCall) {
	var in bitbucketSettings
	if err := decode(c.r, &in); err != nil || in.Project.Key != c.project.key || in.Name != c.repository.name {
		b.unknownCall(c.w, c.r) // that would move or rename it
		return
	}
	c.repository.public, c.repository.description = in.Public, in.Description
	c.reply(http.StatusOK, b.describe(c.repository))
}

func (b *Bitbucket) getGrants(c *bitbucketCall) {
	all := []map[string]any{}
	for _, group := range b.groups {
		if has := c.repository.groups[group]; has > 0 {
			all = append(all, map[string]any{"group": map[string]any{"name": group}, "permission": permission(has)})
		}
	}
	bitbucketPage(c, all)
}

func (b *Bitbucket) grant(c *bitbucketCall) {
	q := c.r.URL.Query()
	name := q.Get("name")
	switch {
	case !slices.Contains(b.groups, name):
		c.fail(http.StatusNotFound, "user.NoSuchGroupException", "The group '"+name+"' does not exist.")
	case !slices.Contains([]string{"REPO_READ", "REPO_WRITE", "REPO_ADMIN"}, q.Get("permission")):
		c.fail(http.StatusBadRequest, "validation.ArgumentValidationException", "permission is not valid")
	default:
		c.repository.groups[name] = level(q.Get("permission"))
		c.reply(http.StatusNoContent, nil)
	}
}

func describeAccessKey(k *bitbucketKey) map[string]any {
	return map[string]any{"key": map[string]any{"id": k.id, "text": k.text, "label": k.label}, "permission": permission(k.permission)}
}

func (b *Bitbucket) getKeys(c *bitbucketCall) {
	all := []map[string]any{}
	for _, k := range c.repository.keys {
		all = append(all, describeAccessKey(k))
	}
	bitbucketPage(c, all)
}

func (b *Bitbucket) addKey(c *bitbucketCall) {
	var in struct {
		Key struct {
			Text  string `json:"text"`
			Label string `json:"label"`
		} `json:"key"`
		Permission string `json:"permission"`
	}
	if err := decode(c.r, &in); err != nil || in.Permission != "REPO_READ" && in.Permission != "REPO_WRITE" {
		b.unknownCall(c.w, c.r)
		return
	}
	wanted, _, _, _, err := ssh.ParseAuthorizedKey([]byte(in.Key.Text))
	if err != nil {
		c.fail(http.StatusBadRequest, "ssh.InvalidSshKeyException", "The SSH key is not valid.")
		return
	}
	for _, k := range c.repository.keys {
		if known, _, _, _, err := ssh.ParseAuthorizedKey([]byte(k.text)); err == nil && string(known.Marshal()) == string(wanted.Marshal()) {
			c.fail(http.StatusConflict, "ssh.DuplicateSshKeyException", "The SSH key is already used by this repository.")
			return
		}
	}
	k := &bitbucketKey{b.id(), in.Key.Text, in.Key.Label, level(in.Permission)}
	c.repository.keys = append(c.repository.keys, k)
	c.reply(http.StatusCreated, describeAccessKey(k))
}

// accessKey returns the key of the path. It responds itself if there is none.
func (b *Bitbucket) accessKey(c *bitbucketCall) int {
	i := slices.IndexFunc(c.repository.keys, func(k *bitbucketKey) bool { return strconv.Itoa(k.id) == c.r.PathValue("key") })
	if i < 0 {
		c.fail(http.StatusNotFound, "ssh.NoSuchSshKeyException", "There is no such SSH key.")
	}
	return i
}

func (b *Bitbucket) removeKey(c *bitbucketCall) {
	if i := b.accessKey(c); i >= 0 {
		c.repository.keys = slices.Delete(c.repository.keys, i, i+1)
		c.reply(http.StatusNoContent, nil)
	}
}

func (b *Bitbucket) permitKey(c *bitbucketCall) {
	if i := b.accessKey(c); i >= 0 {
		c.repository.keys[i].permission = level(c.r.PathValue("permission"))
		c.reply(http.StatusOK, describeAccessKey(c.repository.keys[i]))
	}
}

func (b *Bitbucket) getRules(c *bitbucketCall) {
	all := []map[string]any{}
	for i, rule := range c.repository.rules {
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
	bitbucketPage(c, all)
}

func (b *Bitbucket) getModel(c *bitbucketCall) {
	branch, _ := b.standard(c.repository)
	c.reply(http.StatusOK, map[string]any{
		"development": map[string]any{"id": "refs/heads/" + branch, "displayId": branch, "type": "BRANCH"},
		"types":       []map[string]any{{"id": "RELEASE", "displayName": "Release", "prefix": "release/"}},
	})
}

func (b *Bitbucket) describePull(r *bitbucketRepository, p *bitbucketPull) map[string]any {
	place := map[string]any{"id": r.id, "slug": r.slug, "project": describeProject(r.project)}
	return map[string]any{
		"id": p.number, "title": p.title, "open": p.open,
		"fromRef": map[string]any{"id": p.head, "repository": place}, "toRef": map[string]any{"id": p.base, "repository": place},
		"links": map[string]any{"self": []map[string]any{{"href": b.web(r) + "/pull-requests/" + strconv.Itoa(p.number)}}},
	}
}

func (b *Bitbucket) getPulls(c *bitbucketCall) {
	q := c.r.URL.Query()
	if q.Get("direction") != "OUTGOING" {
		b.unknownCall(c.w, c.r)
		return
	}
	all := []map[string]any{}
	for _, p := range c.repository.pulls {
		if p.open && p.head == q.Get("at") {
			all = append(all, b.describePull(c.repository, p))
		}
	}
	bitbucketPage(c, all)
}

func (b *Bitbucket) addPull(c *bitbucketCall) {
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
	if err := decode(c.r, &in); err != nil || in.Title == "" || in.From.Repository.Slug != c.repository.slug || in.To.Repository.Project.Key != c.project.key {
		b.unknownCall(c.w, c.r)
		return
	}
	for _, r := range []ref{in.From, in.To} {
		if _, err := b.Git.Head(b.gitName(c.repository), strings.TrimPrefix(r.ID, "refs/heads/")); err != nil {
			c.fail(http.StatusNotFound, "commit.NoSuchBranchException", fmt.Sprintf("Branch %q does not exist.", r.ID))
			return
		}
	}
	for _, p := range c.repository.pulls {
		if p.open && p.head == in.From.ID && p.base == in.To.ID {
			c.fail(http.StatusConflict, "pull.DuplicatePullRequestException", "Only one pull request may be open for a given source and target branch")
			return
		}
	}
	p := &bitbucketPull{len(c.repository.pulls) + 1, in.From.ID, in.To.ID, in.Title, true}
	c.repository.pulls = append(c.repository.pulls, p)
	c.reply(http.StatusCreated, b.describePull(c.repository, p))
}
