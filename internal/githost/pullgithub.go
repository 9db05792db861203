package githost

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

// githubPull is a pull request on GitHub.
type githubPull struct{ *pullClient }

func newGitHubPull(c *pullClient) PullRequest {
	api := githubURL(c.hosted)
	c.rest.base = strings.TrimSuffix(api.Path, "/")
	c.rest.hosted.Hostname = api.Host
	c.rest.hosted.BasePath = ""
	return githubPull{c}
}

// hubComment is a comment of the APIs of GitHub and Gitea.
type hubComment struct {
	ID   int64  `json:"id"`
	Body string `json:"body"`
	URL  string `json:"html_url"`
	User struct {
		ID   int64  `json:"id"`
		Type string `json:"type"`
	} `json:"user"`
}

func (c hubComment) comment() Comment {
	return Comment{ID: c.ID, Text: c.Body, URL: c.URL, Author: Author{ID: strconv.FormatInt(c.User.ID, 10), Bot: c.User.Type == "Bot"}}
}

// repository returns the path of the repository in the API.
func (c *pullClient) repository() string { return "/repos/" + c.hosted.Owner + "/" + c.hosted.Name }

// Comments implements PullRequest.
func (g githubPull) Comments(ctx context.Context, first string) ([]Comment, error) {
	return pages(first, func(page int) (some []Comment, more bool, err error) {
		var listed []hubComment
		path := fmt.Sprintf("%s/issues/%d/comments?per_page=%d&page=%d", g.repository(), g.number, commentPage, page)
		_, err = g.call(ctx, "listing the comments", http.MethodGet, path, nil, &listed)
		for _, c := range listed {
			some = append(some, c.comment())
		}
		return some, len(listed) == commentPage, err
	})
}

// Account implements PullRequest.
func (g githubPull) Account(ctx context.Context) (Author, error) {
	if strings.HasPrefix(g.hosted.Token, "ghs_") {
		return Author{Bot: true}, nil
	}
	var user struct {
		ID int64 `json:"id"`
	}
	_, err := g.rest.call(ctx, http.MethodGet, "/user", nil, nil, &user)
	if status(err) == http.StatusForbidden {
		return Author{Bot: true}, nil // the installation of an app
	}
	return Author{ID: strconv.FormatInt(user.ID, 10)}, g.problem(ctx, "reading the account of the token", err)
}

// AddComment implements PullRequest.
func (g githubPull) AddComment(ctx context.Context, text string) (Comment, error) {
	var added hubComment
	_, err := g.call(ctx, "adding a comment", http.MethodPost, fmt.Sprintf("%s/issues/%d/comments", g.repository(), g.number), map[string]string{"body": text}, &added)
	return added.comment(), err
}

// EditComment implements PullRequest.
func (g githubPull) EditComment(ctx context.Context, c Comment, text string) (Comment, error) {
	var edited hubComment
	err := g.edit(ctx, "updating the comment", http.MethodPatch, fmt.Sprintf("%s/issues/comments/%d", g.repository(), c.ID), map[string]string{"body": text}, &edited)
	return edited.comment(), err
}

// DeleteComment implements PullRequest.
func (g githubPull) DeleteComment(ctx context.Context, c Comment) error {
	return g.edit(ctx, "deleting a comment", http.MethodDelete, fmt.Sprintf("%s/issues/comments/%d", g.repository(), c.ID), nil, nil)
}

// SetStatus implements PullRequest.
func (g githubPull) SetStatus(ctx context.Context, commit string, s Status) error {
	const most = 140 // characters of the description
	in := map[string]string{"state": string(s.State), "context": s.Name, "description": short(s.Text, most)}
	if s.URL != "" {
		in["target_url"] = s.URL
	}
	_, err := g.call(ctx, "setting the status of commit "+commit, http.MethodPost, g.repository()+"/statuses/"+commit, in, nil)
	return err
}

// pullMessages returns the messages of a rejected request of any host.
func pullMessages(body []byte) []string {
	var rejected struct {
		Message any `json:"message"`
		Error   any `json:"error"`
	}
	if json.Unmarshal(body, &rejected) != nil {
		return nil // for example a page of a proxy
	}
	var all []string
	for _, part := range []any{rejected.Message, rejected.Error} {
		if object, ok := part.(map[string]any); ok && object["message"] != nil { // Bitbucket Cloud
			part = object["message"]
		}
		if text := gitlabText(part); text != "" {
			all = append(all, text)
		}
	}
	return append(all, bitbucketMessages(body)...)
}
