package githost

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
)

// giteaPull is a pull request on Gitea or Forgejo.
type giteaPull struct{ *pullClient }

func newGiteaPull(c *pullClient) PullRequest {
	c.rest.base = "/api/v1"
	c.rest.prepare = func(r *http.Request) { r.Header.Set("Authorization", "token "+c.hosted.Token) }
	return giteaPull{c}
}

// Comments implements PullRequest. The list has no pages.
func (g giteaPull) Comments(ctx context.Context, first string) ([]Comment, error) {
	return pages(first, func(int) (some []Comment, more bool, err error) {
		var listed []hubComment
		_, err = g.call(ctx, "listing the comments", http.MethodGet, fmt.Sprintf("%s/issues/%d/comments", g.repository(), g.number), nil, &listed)
		for _, c := range listed {
			some = append(some, c.comment())
		}
		return some, false, err
	})
}

// Account implements PullRequest.
func (g giteaPull) Account(ctx context.Context) (Author, error) {
	var user struct {
		ID int64 `json:"id"` // -2 for the token of a workflow
	}
	_, err := g.call(ctx, "reading the account of the token", http.MethodGet, "/user", nil, &user)
	return Author{ID: strconv.FormatInt(user.ID, 10)}, err
}

// AddComment implements PullRequest.
func (g giteaPull) AddComment(ctx context.Context, text string) (Comment, error) {
	return githubPull(g).AddComment(ctx, text)
}

// EditComment implements PullRequest.
func (g giteaPull) EditComment(ctx context.Context, c Comment, text string) (Comment, error) {
	return githubPull(g).EditComment(ctx, c, text)
}

// DeleteComment implements PullRequest.
func (g giteaPull) DeleteComment(ctx context.Context, c Comment) error {
	return githubPull(g).DeleteComment(ctx, c)
}

// SetStatus implements PullRequest.
func (g giteaPull) SetStatus(ctx context.Context, commit string, s Status) error {
	return githubPull(g).SetStatus(ctx, commit, s)
}
