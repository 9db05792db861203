package testgithost

import (
	"net/http"
	"slices"
	"strconv"
	"unicode/utf8"
)

func noteObject(n *Note) map[string]any {
	return map[string]any{"id": n.ID, "version": n.version, "text": n.Text, "author": map[string]any{"name": n.Author, "slug": n.Author}, "state": "OPEN"}
}

// bitbucketNotes is a request about comments or statuses.
type bitbucketNotes struct{ *bitbucketCall }

// onBitbucketNotes returns the answer of a route.
func onBitbucketNotes(answer func(bitbucketNotes)) func(*bitbucketCall) {
	return func(c *bitbucketCall) { answer(bitbucketNotes{c}) }
}

func noPull() refusal {
	return bitbucketRefusal(http.StatusNotFound, "pull.NoSuchPullRequestException", "The pull request does not exist.")
}

func noNote() refusal {
	return bitbucketRefusal(http.StatusNotFound, "comment.NoSuchCommentException", "The comment does not exist.")
}

// activities lists the events of a pull request, newest first. An edited comment has an additional
// event.
func (c bitbucketNotes) activities() {
	p := c.notedPull(noPull())
	if p == nil {
		return
	}
	all := []any{}
	for _, n := range slices.Backward(p.Notes) {
		for range n.version + 1 {
			all = append(all, map[string]any{"id": c.id(), "action": "COMMENTED", "commentAction": "ADDED", "comment": noteObject(n)})
		}
	}
	all = append(all, map[string]any{"id": 1, "action": "OPENED"})
	c.page(&c.call, all)
}

// noteText reads the text of a comment and, for an edit, its version.
func (c bitbucketNotes) noteText() (text string, version int, ok bool) {
	var in struct {
		Text    string `json:"text"`
		Version int    `json:"version"`
	}
	const most = 32768
	if !c.read(&in) {
		return "", 0, false
	}
	if utf8.RuneCountInString(in.Text) > most {
		c.fail(http.StatusBadRequest, "validation.ArgumentValidationException", "Please enter a comment of at most 32768 characters.")
		return "", 0, false
	}
	return in.Text, in.Version, true
}

func (c bitbucketNotes) createNote() {
	p := c.notedPull(noPull())
	if p == nil {
		return
	}
	if text, _, ok := c.noteText(); ok {
		c.reply(http.StatusCreated, noteObject(c.call.store.addNote(p, c.token.user, text)))
	}
}

func (c bitbucketNotes) editNote() {
	c.withNote(noNote(), func(_ *Pull, n *Note) {
		text, version, ok := c.noteText()
		switch {
		case !ok:
		case n.Author != c.token.user:
			c.forbidden()
		case version != n.version:
			c.fail(http.StatusConflict, "comment.CommentOutOfDateException", "The comment has been updated by another user.")
		default:
			n.Text = text
			n.version++
			c.reply(http.StatusOK, noteObject(n))
		}
	})
}

func (c bitbucketNotes) removeNote() {
	c.withNote(noNote(), func(p *Pull, n *Note) {
		if c.r.URL.Query().Get("version") != strconv.Itoa(n.version) {
			c.fail(http.StatusConflict, "comment.CommentOutOfDateException", "The comment has been updated by another user.")
			return
		}
		p.drop(n)
		c.done()
	})
}

func (c bitbucketNotes) build() {
	var in struct {
		State       string `json:"state"`
		Key         string `json:"key"`
		Name        string `json:"name"`
		URL         string `json:"url"`
		Description string `json:"description"`
	}
	switch {
	case !c.read(&in):
	case !slices.Contains([]string{"SUCCESSFUL", "FAILED", "INPROGRESS", "UNKNOWN"}, in.State) || in.Key == "" || in.URL == "":
		c.fail(http.StatusBadRequest, "validation.ArgumentValidationException", "state, key and url are required")
	case !c.setStatus(CommitStatus{c.r.PathValue("sha"), in.Key, in.State, in.Description, in.URL}):
		c.fail(http.StatusNotFound, "commit.NoSuchCommitException", "Commit "+c.r.PathValue("sha")+" does not exist.")
	default:
		c.done()
	}
}
