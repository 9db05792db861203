package githost

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/url"
)

// cloudPull is a pull request on Bitbucket Cloud.
type cloudPull struct{ *pullClient }

// cloudHost is the host of Bitbucket Cloud; its API has a host of its own.
const cloudHost = "bitbucket.org"

func newCloudPull(c *pullClient) PullRequest {
	c.rest.base = "/2.0"
	if c.hosted.Hostname == cloudHost {
		c.rest.hosted.Hostname = "api." + cloudHost
	}
	return cloudPull{c}
}

type cloudComment struct {
	ID      int64 `json:"id"`
	Deleted bool  `json:"deleted"`
	Content struct {
		Raw string `json:"raw"`
	} `json:"content"`
	User struct {
		UUID string `json:"uuid"`
	} `json:"user"`
	Links struct {
		HTML struct {
			Href string `json:"href"`
		} `json:"html"`
	} `json:"links"`
}

func (c cloudComment) comment() Comment {
	return Comment{ID: c.ID, Text: c.Content.Raw, Author: Author{ID: c.User.UUID}, URL: c.Links.HTML.Href}
}

func (b cloudPull) path() string { return "/repositories/" + b.hosted.Owner + "/" + b.hosted.Name }

func (b cloudPull) comments() string {
	return fmt.Sprintf("%s/pullrequests/%d/comments", b.path(), b.number)
}

// cloudText is the body of a request with a comment.
func cloudText(text string) any { return map[string]any{"content": map[string]string{"raw": text}} }

// Comments implements PullRequest.
func (b cloudPull) Comments(ctx context.Context, first string) ([]Comment, error) {
	return pages(first, func(page int) (some []Comment, more bool, err error) {
		var listed struct {
			Values []cloudComment `json:"values"`
			Next   string         `json:"next"`
		}
		_, err = b.call(ctx, "listing the comments", http.MethodGet, fmt.Sprintf("%s?pagelen=%d&page=%d", b.comments(), commentPage, page), nil, &listed)
		for _, c := range listed.Values {
			if !c.Deleted {
				some = append(some, c.comment())
			}
		}
		return some, listed.Next != "", err
	})
}

// Account implements PullRequest.
func (b cloudPull) Account(ctx context.Context) (Author, error) {
	var user struct {
		UUID string `json:"uuid"`
	}
	_, err := b.call(ctx, "reading the account of the token", http.MethodGet, "/user", nil, &user)
	return Author{ID: user.UUID}, err
}

// AddComment implements PullRequest.
func (b cloudPull) AddComment(ctx context.Context, text string) (Comment, error) {
	var added cloudComment
	_, err := b.call(ctx, "adding a comment", http.MethodPost, b.comments(), cloudText(text), &added)
	return added.comment(), err
}

// EditComment implements PullRequest.
func (b cloudPull) EditComment(ctx context.Context, c Comment, text string) (Comment, error) {
	var edited cloudComment
	err := b.edit(ctx, "updating the comment", http.MethodPut, fmt.Sprintf("%s/%d", b.comments(), c.ID), cloudText(text), &edited)
	return edited.comment(), err
}

// DeleteComment implements PullRequest.
func (b cloudPull) DeleteComment(ctx context.Context, c Comment) error {
	return b.edit(ctx, "deleting a comment", http.MethodDelete, fmt.Sprintf("%s/%d", b.comments(), c.ID), nil, nil)
}

// SetStatus implements PullRequest.
func (b cloudPull) SetStatus(ctx context.Context, commit string, s Status) error {
	const most = 40 // characters of the key
	in := buildStatus(s)
	if len(s.Name) > most {
		sum := sha256.Sum256([]byte(s.Name))
		in["key"] = hex.EncodeToString(sum[:])[:most]
	}
	in["url"] = cmp.Or(s.URL, fmt.Sprintf("https://%s/%s/%s/pull-requests/%d", cloudHost, b.hosted.Owner, b.hosted.Name, b.number))
	_, err := b.call(ctx, "setting the status of commit "+url.PathEscape(commit), http.MethodPost, b.path()+"/commit/"+commit+"/statuses/build", in, nil)
	return err
}
