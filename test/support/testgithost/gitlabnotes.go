package testgithost

import (
	"net/http"
	"slices"
	"unicode/utf8"
)

func (c *gitlabProject) noteObject(p *Pull, n *Note) any {
	author := map[string]any{"username": n.Author, "state": "active", "id": 0}
	if i := slices.IndexFunc(c.gitlab.users, func(u *gitlabUser) bool { return u.name == n.Author }); i >= 0 {
		author["id"] = c.gitlab.users[i].id
	}
	return map[string]any{"id": n.ID, "body": n.Text, "author": author, "system": false, "noteable_type": "MergeRequest", "noteable_iid": p.Number} //nolint:misspell // the name in the API of GitLab
}

func noMerge() refusal { return gitlabRefusal(http.StatusNotFound, "404 Not found") }

func (c *gitlabProject) notes() {
	p := c.notedPull(noMerge())
	if p == nil {
		return
	}
	all := []any{map[string]any{"id": 1, "body": "assigned to @ada", "system": true, "author": map[string]any{"id": 1}}}
	for _, n := range p.Notes {
		all = append(all, c.noteObject(p, n))
	}
	c.gitlab.page(&c.call, all)
}

func (c *gitlabProject) noteBody() (string, bool) {
	var in struct {
		Body string `json:"body"`
	}
	const most = 1_000_000
	if !c.read(&in) {
		return "", false
	}
	if utf8.RuneCountInString(in.Body) > most {
		c.fail(http.StatusBadRequest, map[string]any{"note": []string{"is too long (maximum is 1000000 characters)"}})
		return "", false
	}
	return in.Body, true
}

func (c *gitlabProject) createNote() {
	p := c.notedPull(noMerge())
	if p == nil {
		return
	}
	if text, ok := c.noteBody(); ok {
		c.reply(http.StatusCreated, c.noteObject(p, c.call.store.addNote(p, c.user.name, text)))
	}
}

func (c *gitlabProject) editNote() {
	c.withNote(noMerge(), func(p *Pull, n *Note) {
		if n.Author != c.user.name && c.level < gitlabLevel("maintainer") {
			c.forbidden()
			return
		}
		if text, ok := c.noteBody(); ok {
			n.Text = text
			c.reply(http.StatusOK, c.noteObject(p, n))
		}
	})
}

func (c *gitlabProject) removeNote() {
	c.withNote(noMerge(), func(p *Pull, n *Note) {
		p.drop(n)
		c.done()
	})
}

func (c *gitlabProject) status() {
	var in struct {
		State       string `json:"state"`
		Name        string `json:"name"`
		URL         string `json:"target_url"`
		Description string `json:"description"`
	}
	switch {
	case !c.read(&in):
	case !slices.Contains([]string{"pending", "running", "success", "failed", "canceled", "skipped"}, in.State):
		c.reply(http.StatusBadRequest, map[string]any{"error": "state does not have a valid value"})
	case !c.setStatus(CommitStatus{c.r.PathValue("sha"), in.Name, in.State, in.Description, in.URL}):
		c.fail(http.StatusNotFound, "404 Commit Not Found")
	default:
		c.reply(http.StatusCreated, map[string]any{"id": c.id(), "sha": c.r.PathValue("sha"), "status": in.State, "name": in.Name, "target_url": in.URL, "description": in.Description})
	}
}
