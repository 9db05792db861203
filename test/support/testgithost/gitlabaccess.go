package testgithost

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
)

// addKey returns a key that the project already has, enables a key of another project
// that the user can read, and rejects other existing keys, as documented.
func (c *gitlabProject) addKey() {
	var in struct {
		Title   string `json:"title"`
		Key     string `json:"key"`
		CanPush bool   `json:"can_push"`
	}
	if !c.read(&in) {
		return
	}
	if present := keyIn(c.target, in.Key); present != nil {
		c.reply(http.StatusCreated, c.keyObject(c.target, present))
		return
	}
	added := &Key{Title: in.Title, Key: in.Key, ReadOnly: !in.CanPush}
	taken := slices.Contains(c.gitlab.userKeys, bareKey(in.Key))
	for _, p := range c.repositories {
		if other := keyIn(p, in.Key); other != nil {
			added.ID, added.Title = other.ID, other.Title
			taken = taken || c.gitlab.level(c.user, p) == 0
		}
	}
	c.call.addKey(added, taken, gitlabRefusal(http.StatusBadRequest, map[string]any{"deploy_key.fingerprint_sha256": []string{"has already been taken"}}))
}

func (c *gitlabProject) editKey() {
	var in struct {
		Title   *string `json:"title"`
		CanPush *bool   `json:"can_push"`
	}
	if !c.read(&in) {
		return
	}
	c.withKey(func(k *Key) {
		if in.CanPush != nil {
			k.ReadOnly = !*in.CanPush
		}
		if in.Title != nil {
			k.Title = *in.Title
		}
		c.reply(http.StatusOK, c.keyObject(c.target, k))
	})
}

func describeDeployToken(t *gitlabDeployToken) map[string]any {
	return map[string]any{
		"id": t.id, "name": t.name, "username": t.username, "scopes": t.scopes, "expires_at": nil, "revoked": false, "expired": false,
	}
}

func (c *gitlabProject) deployTokens() {
	all := []any{}
	for _, t := range c.target.tokens {
		all = append(all, describeDeployToken(t))
	}
	c.page(&c.call, all)
}

func (c *gitlabProject) addDeployToken() {
	var in struct {
		Name   string   `json:"name"`
		Scopes []string `json:"scopes"`
	}
	if !c.read(&in) {
		return
	}
	id := c.id()
	t := &gitlabDeployToken{
		id: id, name: in.Name, scopes: in.Scopes,
		username: "gitlab+deploy-token-" + strconv.FormatInt(id, 10), secret: fmt.Sprintf("gldt-%020d", id),
	}
	c.target.tokens = append(c.target.tokens, t)
	body := describeDeployToken(t)
	body["token"] = t.secret
	c.reply(http.StatusCreated, body)
}

func (c *gitlabProject) removeDeployToken() {
	before := len(c.target.tokens)
	c.target.tokens = slices.DeleteFunc(c.target.tokens, func(t *gitlabDeployToken) bool { return strconv.FormatInt(t.id, 10) == c.r.PathValue("id") })
	if len(c.target.tokens) == before {
		c.fail(http.StatusNotFound, "404 DeployToken Not Found")
		return
	}
	c.done()
}

func (c *gitlabProject) merges() {
	if c.target.noRequests {
		c.forbidden()
		return
	}
	q := c.r.URL.Query()
	c.listPulls(func(m *Pull) bool {
		return (q.Get("state") != "opened" || !m.Merged) && (q.Get("source_branch") == "" || q.Get("source_branch") == m.Head) &&
			(q.Get("target_branch") == "" || q.Get("target_branch") == m.Base)
	})
}

func (c *gitlabProject) addMerge() {
	var in struct {
		Head   string `json:"source_branch"`
		Base   string `json:"target_branch"`
		Title  string `json:"title"`
		Body   string `json:"description"`
		Remove bool   `json:"remove_source_branch"`
	}
	switch {
	case !c.read(&in):
	case c.target.noRequests:
		c.forbidden()
	default:
		c.openPull(&Pull{Title: in.Title, Body: in.Body, Head: in.Head, Base: in.Base, removeHead: in.Remove})
	}
}
