package githost

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
)

// bitbucketPullRequest is a pull request on Bitbucket Server or Data Center.
type bitbucketPullRequest struct{ *pullClient }

func newBitbucketPull(c *pullClient) PullRequest {
	c.rest.base = bitbucketCore
	c.rest.prepare = newBitbucketAPI(nil, c.hosted).rest.prepare
	return bitbucketPullRequest{c}
}

type bitbucketComment struct {
	ID      int64  `json:"id"`
	Version int    `json:"version"`
	Text    string `json:"text"`
	Author  struct {
		Name string `json:"name"`
	} `json:"author"`
}

func (b bitbucketPullRequest) comment(c bitbucketComment) Comment {
	page := fmt.Sprintf("projects/%s/repos/%s/pull-requests/%d/overview?commentId=%d", b.hosted.Owner, b.hosted.Name, b.number, c.ID)
	return Comment{ID: c.ID, Text: c.Text, Author: Author{ID: c.Author.Name}, URL: b.hosted.HTTPURL("/") + page, version: c.Version}
}

func (b bitbucketPullRequest) path() string {
	return fmt.Sprintf("%s/pull-requests/%d", bitbucketPath(b.hosted.Owner, b.hosted.Name), b.number)
}

// Comments implements PullRequest. Only the activities of a pull request list all
// comments; an edited or answered comment has several.
func (b bitbucketPullRequest) Comments(ctx context.Context, first string) ([]Comment, error) {
	seen, start := map[int64]bool{}, 0
	return pages(first, func(int) (some []Comment, more bool, err error) {
		var listed struct {
			Values []struct {
				Action        string           `json:"action"`
				CommentAction string           `json:"commentAction"`
				Comment       bitbucketComment `json:"comment"`
			} `json:"values"`
			Last bool `json:"isLastPage"`
			Next int  `json:"nextPageStart"`
		}
		_, err = b.call(ctx, "listing the comments", http.MethodGet, fmt.Sprintf("%s/activities?limit=%d&start=%d", b.path(), commentPage, start), nil, &listed)
		for _, activity := range listed.Values {
			if activity.Action == "COMMENTED" && !seen[activity.Comment.ID] {
				seen[activity.Comment.ID] = true
				some = append(some, b.comment(activity.Comment))
			}
		}
		more = !listed.Last && listed.Next > start
		start = listed.Next
		return some, more, err
	})
}

// Account implements PullRequest. Each response has the account in a header.
func (b bitbucketPullRequest) Account(ctx context.Context) (Author, error) {
	header, err := b.call(ctx, "reading the account of the token", http.MethodGet, bitbucketPath(b.hosted.Owner, b.hosted.Name), nil, nil)
	account, escaped := url.QueryUnescape(header.Get(bitbucketAccount))
	if escaped != nil {
		account = header.Get(bitbucketAccount)
	}
	return Author{ID: account}, err
}

// AddComment implements PullRequest.
func (b bitbucketPullRequest) AddComment(ctx context.Context, text string) (Comment, error) {
	var added bitbucketComment
	_, err := b.call(ctx, "adding a comment", http.MethodPost, b.path()+"/comments", map[string]any{"text": text}, &added)
	return b.comment(added), err
}

// EditComment implements PullRequest.
func (b bitbucketPullRequest) EditComment(ctx context.Context, c Comment, text string) (Comment, error) {
	var edited bitbucketComment
	err := b.edit(ctx, "updating the comment", http.MethodPut, fmt.Sprintf("%s/comments/%d", b.path(), c.ID), map[string]any{"text": text, "version": c.version}, &edited)
	return b.comment(edited), err
}

// DeleteComment implements PullRequest.
func (b bitbucketPullRequest) DeleteComment(ctx context.Context, c Comment) error {
	return b.edit(ctx, "deleting a comment", http.MethodDelete, fmt.Sprintf("%s/comments/%d?version=%d", b.path(), c.ID, c.version), nil, nil)
}

// SetStatus implements PullRequest. A build status requires a web page.
func (b bitbucketPullRequest) SetStatus(ctx context.Context, commit string, s Status) error {
	in := buildStatus(s)
	in["url"] = cmp.Or(s.URL, b.hosted.HTTPURL(fmt.Sprintf("projects/%s/repos/%s/pull-requests/%d", b.hosted.Owner, b.hosted.Name, b.number)))
	_, err := b.call(ctx, "setting the status of commit "+commit, http.MethodPost, bitbucketPath(b.hosted.Owner, b.hosted.Name)+"/commits/"+commit+"/builds", in, nil)
	return err
}

// buildStatus returns the status of a build, which has no state for errors.
func buildStatus(s Status) map[string]string {
	const most = 255 // characters of the description
	state := map[State]string{Succeeded: "SUCCESSFUL", Failed: "FAILED", Errored: "FAILED"}[s.State]
	return map[string]string{"state": state, "key": s.Name, "name": s.Name, "description": short(s.Text, most)}
}
