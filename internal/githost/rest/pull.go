package rest

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/fluxkit/flux/internal/githost"
	"github.com/fluxkit/flux/internal/hint"
)

// Pull implements githost.PullRequest.
type Pull struct {
	API    *API
	Client *Client
	Notes  Notes
}

// Notes defines the host-specific parts of the comment API.
type Notes struct {
	// Path is the path of the comment list, and One the path of a single comment without its ID.
	Path, One string
	// Edit is the method that edits a comment, and Body returns the body of a request with a comment.
	Edit string
	Body func(text string) map[string]any
	// Versioned is set if a request that changes a comment requires its version.
	Versioned bool
	// List returns a page of comments and the number of the next page. Pages are counted from 1. The list may contain
	// a comment several times.
	List func(ctx context.Context, page int) (some []Note, next int, err error)
	// Author returns the author of a comment, and Link its web page, which some responses do not include.
	Author func(Note) githost.Author
	Link   func(id int64) string
	// Account returns the account of the token.
	Account func(ctx context.Context) (githost.Author, error)
	// Status returns the path and the body of a request that sets a status.
	Status func(commit string, s githost.Status) (path string, in any)
}

// Note is a comment in the API of any host.
type Note struct {
	ID   int64  `json:"id"`
	Body string `json:"body"`
	Text string `json:"text"` // Bitbucket Server
	// Content is the text on Bitbucket Cloud.
	Content struct {
		Raw string `json:"raw"`
	} `json:"content"`
	Version int    `json:"version"`
	URL     string `json:"html_url"`
	Links   struct {
		HTML struct {
			Href string `json:"href"`
		} `json:"html"`
	} `json:"links"`
	User   User `json:"user"`
	Author User `json:"author"`
	// System is set for system notes of GitLab, and Deleted for comments without text.
	System  bool `json:"system"`
	Deleted bool `json:"deleted"`
}

// User is an account in the API of any host.
type User struct {
	ID   int64  `json:"id"`
	Type string `json:"type"`
	Name string `json:"name"`
	UUID string `json:"uuid"`
}

// Numbered returns an author that is identified by the user's ID.
func (u User) Numbered() githost.Author {
	return githost.Author{ID: strconv.FormatInt(u.ID, 10), Bot: u.Type == "Bot"}
}

func (p *Pull) comment(n Note) githost.Comment {
	c := githost.Comment{
		ID: n.ID, Text: cmp.Or(n.Body, n.Text, n.Content.Raw), Author: p.Notes.Author(n), URL: cmp.Or(n.URL, n.Links.HTML.Href), Version: n.Version,
	}
	if c.URL == "" && p.Notes.Link != nil {
		c.URL = p.Notes.Link(n.ID)
	}
	return c
}

// CommentPage is the number of comments in a page. maxCommentPages limits the number of pages, because a host may
// return pages without end. It is lower than maxRequests, because a page may contain megabytes of comments.
const (
	CommentPage     = 100
	maxCommentPages = 200
)

// Comments implements githost.PullRequest.
func (p *Pull) Comments(ctx context.Context, first string) ([]githost.Comment, error) {
	read := 0
	found, err := Pages(1, func(page int) (some []githost.Comment, next int, err error) {
		if read++; read > maxCommentPages {
			return nil, 0, hint.Errorf("open a new pull request", "the pull request has more than %d comments", maxCommentPages*CommentPage)
		}
		notes, next, err := p.Notes.List(ctx, page)
		for _, n := range notes {
			c := p.comment(n)
			line, _, _ := strings.Cut(c.Text, "\n")
			if !n.System && !n.Deleted && strings.TrimSpace(line) == first {
				some = append(some, c)
			}
		}
		return some, next, err
	})
	slices.SortStableFunc(found, func(a, b githost.Comment) int { return cmp.Compare(a.ID, b.ID) })
	found = slices.CompactFunc(found, func(a, b githost.Comment) bool { return a.ID == b.ID })
	return found, p.API.Explain(ctx, "listing the comments", err)
}

// Account implements githost.PullRequest.
func (p *Pull) Account(ctx context.Context) (githost.Author, error) {
	author, err := p.Notes.Account(ctx)
	return author, p.API.Explain(ctx, "reading the account of the token", err)
}

// AddComment implements githost.PullRequest.
func (p *Pull) AddComment(ctx context.Context, text string) (githost.Comment, error) {
	var added Note
	_, err := p.Client.Call(ctx, http.MethodPost, p.Notes.Path, nil, p.Notes.Body(text), &added)
	return p.comment(added), p.API.Explain(ctx, "adding a comment", err)
}

// EditComment implements githost.PullRequest.
func (p *Pull) EditComment(ctx context.Context, c githost.Comment, text string) (githost.Comment, error) {
	var edited Note
	in := p.Notes.Body(text)
	if p.Notes.Versioned {
		in["version"] = c.Version
	}
	_, err := p.Client.Call(ctx, p.Notes.Edit, fmt.Sprintf("%s/%d", p.Notes.One, c.ID), nil, in, &edited)
	return p.comment(edited), p.changed(ctx, "updating the comment", err)
}

// DeleteComment implements githost.PullRequest.
func (p *Pull) DeleteComment(ctx context.Context, c githost.Comment) error {
	path := fmt.Sprintf("%s/%d", p.Notes.One, c.ID)
	if p.Notes.Versioned {
		path += fmt.Sprintf("?version=%d", c.Version)
	}
	_, err := p.Client.Call(ctx, http.MethodDelete, path, nil, nil, nil)
	return p.changed(ctx, "deleting a comment", err)
}

// changed returns the error for a failed request that changes a comment.
func (p *Pull) changed(ctx context.Context, doing string, err error) error {
	switch Status(err) {
	case http.StatusNotFound, http.StatusGone:
		return githost.ErrCommentDeleted
	case http.StatusConflict:
		return githost.ErrCommentChanged
	}
	return p.API.Explain(ctx, doing, err)
}

// SetStatus implements githost.PullRequest.
func (p *Pull) SetStatus(ctx context.Context, commit string, s githost.Status) error {
	path, in := p.Notes.Status(commit, s)
	_, err := p.Client.Call(ctx, http.MethodPost, path, nil, in, nil)
	return p.API.Explain(ctx, "setting the status of commit "+commit, err)
}

// CurrentUser returns the account at /user.
func (c *Client) CurrentUser(ctx context.Context) (User, error) {
	var user User
	_, err := c.Call(ctx, http.MethodGet, "/user", nil, nil, &user)
	return user, err
}

// HubNotes returns the Notes of GitHub and Gitea, whose APIs for comments and statuses are the same. A page contains
// all comments.
func HubNotes(c *Client, h githost.Hosted, number int) Notes {
	repository := "/repos/" + h.Owner + "/" + h.Name
	path := fmt.Sprintf("%s/issues/%d/comments", repository, number)
	return Notes{
		Path: path, One: repository + "/issues/comments", Edit: http.MethodPatch,
		Body: func(text string) map[string]any { return map[string]any{"body": text} },
		List: func(ctx context.Context, _ int) (all []Note, next int, err error) {
			_, err = c.Call(ctx, http.MethodGet, path, nil, nil, &all)
			return all, 0, err
		},
		Author: func(n Note) githost.Author { return n.User.Numbered() },
		Account: func(ctx context.Context) (githost.Author, error) {
			user, err := c.CurrentUser(ctx)
			return user.Numbered(), err
		},
		Status: func(commit string, s githost.Status) (string, any) {
			const most = 140 // characters of the description
			in := map[string]string{"state": string(s.State), "context": s.Name, "description": Short(s.Text, most)}
			if s.URL != "" {
				in["target_url"] = s.URL
			}
			return repository + "/statuses/" + commit, in
		},
	}
}

// Short returns a text of at most n bytes.
func Short(text string, n int) string {
	if len(text) <= n {
		return text
	}
	const more = "…"
	return strings.ToValidUTF8(text[:n-len(more)], "") + more
}
