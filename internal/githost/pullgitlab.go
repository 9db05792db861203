package githost

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
)

// gitlabPull is a merge request on GitLab.
type gitlabPull struct{ *pullClient }

func newGitLabPull(c *pullClient) PullRequest {
	c.rest.base = "/api/v4"
	return gitlabPull{c}
}

type gitlabNote struct {
	ID     int64  `json:"id"`
	Body   string `json:"body"`
	System bool   `json:"system"`
	Author struct {
		ID int64 `json:"id"`
	} `json:"author"`
}

func (n gitlabNote) comment() Comment {
	return Comment{ID: n.ID, Text: n.Body, Author: Author{ID: strconv.FormatInt(n.Author.ID, 10)}}
}

func (g gitlabPull) project() string {
	return "/projects/" + url.PathEscape(g.hosted.String())
}

func (g gitlabPull) notes() string {
	return fmt.Sprintf("%s/merge_requests/%d/notes", g.project(), g.number)
}

// Comments implements PullRequest.
func (g gitlabPull) Comments(ctx context.Context, first string) ([]Comment, error) {
	return pages(first, func(page int) (some []Comment, more bool, err error) {
		var listed []gitlabNote
		header, err := g.call(ctx, "listing the comments", http.MethodGet, fmt.Sprintf("%s?per_page=%d&page=%d", g.notes(), commentPage, page), nil, &listed)
		for _, n := range listed {
			if !n.System {
				some = append(some, n.comment())
			}
		}
		return some, header.Get("X-Next-Page") != "", err
	})
}

// Account implements PullRequest.
func (g gitlabPull) Account(ctx context.Context) (Author, error) {
	var user struct {
		ID int64 `json:"id"`
	}
	_, err := g.call(ctx, "reading the account of the token", http.MethodGet, "/user", nil, &user)
	return Author{ID: strconv.FormatInt(user.ID, 10)}, err
}

// AddComment implements PullRequest.
func (g gitlabPull) AddComment(ctx context.Context, text string) (Comment, error) {
	var added gitlabNote
	_, err := g.call(ctx, "adding a comment", http.MethodPost, g.notes(), map[string]string{"body": text}, &added)
	return g.linked(added), err
}

// EditComment implements PullRequest.
func (g gitlabPull) EditComment(ctx context.Context, c Comment, text string) (Comment, error) {
	var edited gitlabNote
	err := g.edit(ctx, "updating the comment", http.MethodPut, fmt.Sprintf("%s/%d", g.notes(), c.ID), map[string]string{"body": text}, &edited)
	return g.linked(edited), err
}

// linked returns a comment with its web page, which responses do not have.
func (g gitlabPull) linked(n gitlabNote) Comment {
	c := n.comment()
	c.URL = g.hosted.HTTPURL(fmt.Sprintf("%s/-/merge_requests/%d#note_%d", g.hosted, g.number, n.ID))
	return c
}

// DeleteComment implements PullRequest.
func (g gitlabPull) DeleteComment(ctx context.Context, c Comment) error {
	return g.edit(ctx, "deleting a comment", http.MethodDelete, fmt.Sprintf("%s/%d", g.notes(), c.ID), nil, nil)
}

// SetStatus implements PullRequest. GitLab has no state for errors.
func (g gitlabPull) SetStatus(ctx context.Context, commit string, s Status) error {
	const most = 255 // characters of the description
	state := map[State]string{Succeeded: "success", Failed: "failed", Errored: "failed"}[s.State]
	in := map[string]string{"state": state, "name": s.Name, "description": short(s.Text, most)}
	if s.URL != "" {
		in["target_url"] = s.URL
	}
	_, err := g.call(ctx, "setting the status of commit "+commit, http.MethodPost, g.project()+"/statuses/"+commit, in, nil)
	return err
}
