package testgithost

import (
	"fmt"
	"net/http"
	"slices"
	"unicode/utf8"
)

// gitHubBot is the author of the comments of an app.
const gitHubBot = "github-actions[bot]"

// gitHubNotes is a request about comments or statuses.
type gitHubNotes struct{ *gitHubCall }

// onGitHubNotes returns the answer of a route.
func onGitHubNotes(answer func(gitHubNotes)) func(*gitHubCall) {
	return func(c *gitHubCall) { answer(gitHubNotes{c}) }
}

// writer is the account of the token.
func (c gitHubNotes) writer() string {
	if c.token.Login == "" {
		return gitHubBot
	}
	return c.token.Login
}

func (v gitHubView) noteObject(r *Repository, p *Pull, n *Note) object {
	author := v.account(n.Author)
	if n.Author == gitHubBot {
		author["type"] = "Bot"
	}
	o := v.node(fmt.Sprintf("/repos/%s/issues/comments/%d", r.FullName(), n.ID))
	return o.with(object{
		"id": n.ID, "body": n.Text, "user": author, "created_at": stamp(), "updated_at": stamp(), "author_association": "NONE",
		"html_url":  v.webURL(fmt.Sprintf("/%s/pull/%d#issuecomment-%d", r.FullName(), p.Number, n.ID)),
		"issue_url": v.apiURL(fmt.Sprintf("/repos/%s/issues/%d", r.FullName(), p.Number)), "performed_via_github_app": nil,
	})
}

func (c gitHubNotes) notes() {
	p := c.notedPull(gitHubRefusal(http.StatusNotFound, "Not Found"))
	if p == nil {
		return
	}
	all := []any{}
	for _, n := range p.Notes {
		all = append(all, c.noteObject(c.target, p, n))
	}
	c.page(&c.call, all)
}

// noteBody reads the text of a comment. It responds with an error if the text is too long.
func (c gitHubNotes) noteBody() (string, bool) {
	var in struct {
		Body string `json:"body"`
	}
	const most = 65536
	if !c.read(&in) {
		return "", false
	}
	if utf8.RuneCountInString(in.Body) > most {
		c.refuse(gitHubInvalid("Validation Failed", "IssueComment", "body", "custom", "body is too long (maximum is 65536 characters)"))
		return "", false
	}
	return in.Body, true
}

func (c gitHubNotes) createNote() {
	p := c.notedPull(gitHubRefusal(http.StatusNotFound, "Not Found"))
	if p == nil {
		return
	}
	if text, ok := c.noteBody(); ok {
		c.reply(http.StatusCreated, c.noteObject(c.target, p, c.call.store.addNote(p, c.writer(), text)))
	}
}

func (c gitHubNotes) editNote() {
	c.withNote(gitHubRefusal(http.StatusNotFound, "Not Found"), func(p *Pull, n *Note) {
		if text, ok := c.noteBody(); ok {
			n.Text = text
			c.reply(http.StatusOK, c.noteObject(c.target, p, n))
		}
	})
}

func (c gitHubNotes) removeNote() {
	c.withNote(gitHubRefusal(http.StatusNotFound, "Not Found"), func(p *Pull, n *Note) {
		p.drop(n)
		c.done()
	})
}

func (c gitHubNotes) status() {
	var in struct {
		State       string `json:"state"`
		URL         string `json:"target_url"`
		Description string `json:"description"`
		Context     string `json:"context"`
	}
	const most = 140
	switch {
	case !c.read(&in):
	case !slices.Contains([]string{"error", "failure", "pending", "success"}, in.State):
		c.refuse(gitHubInvalid("Validation Failed", "Status", "state", "custom", "state is not included in the list"))
	case utf8.RuneCountInString(in.Description) > most:
		c.refuse(gitHubInvalid("Validation Failed", "Status", "description", "custom", "description is too long (maximum is 140 characters)"))
	case !c.setStatus(CommitStatus{c.r.PathValue("sha"), in.Context, in.State, in.Description, in.URL}):
		c.refuse(gitHubRefusal(http.StatusUnprocessableEntity, "No commit found for SHA: "+c.r.PathValue("sha")))
	default:
		path := "/repos/" + c.target.FullName() + "/statuses/" + c.r.PathValue("sha")
		c.reply(http.StatusCreated, c.node(path).with(object{
			"state": in.State, "target_url": in.URL, "description": in.Description, "context": in.Context, "avatar_url": c.webURL("/avatar"),
			"creator": c.gitHubView.account(c.writer()), "created_at": stamp(), "updated_at": stamp(),
		}))
	}
}
