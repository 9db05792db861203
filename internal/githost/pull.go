package githost

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/fluxkit/flux/internal/ci"
	"github.com/fluxkit/flux/internal/hint"
)

// PullRequest is an open pull request or merge request of a repository, with its
// comments and the statuses of its commits.
type PullRequest interface {
	// Comments returns the comments of all accounts that begin with a line, the
	// oldest first.
	Comments(ctx context.Context, first string) ([]Comment, error)
	// Account returns the author of the comments that this token adds.
	Account(ctx context.Context) (Author, error)
	// AddComment adds a comment.
	AddComment(ctx context.Context, text string) (Comment, error)
	// EditComment replaces the text of a comment. The error is
	// ErrCommentDeleted or ErrCommentChanged if it is not the comment that
	// Comments has returned any more.
	EditComment(ctx context.Context, c Comment, text string) (Comment, error)
	// DeleteComment deletes a comment.
	DeleteComment(ctx context.Context, c Comment) error
	// SetStatus sets the status of a commit, and replaces one of the same name.
	SetStatus(ctx context.Context, commit string, status Status) error
}

// Author is the author of a comment.
type Author struct {
	// ID identifies the account on its host, "" for the installation of a GitHub
	// App, which cannot read its own name.
	ID string
	// Bot is set for the accounts of apps on GitHub.
	Bot bool
}

// Wrote reports whether the author has written a comment.
func (a Author) Wrote(c Comment) bool {
	if a.ID == "" {
		return a.Bot && c.Author.Bot
	}
	return strings.EqualFold(a.ID, c.Author.ID)
}

// Comment is a comment on a pull request.
type Comment struct {
	ID     int64
	Text   string
	Author Author
	// URL is the web page, "" if the host does not return it.
	URL string
	// version is the number of edits on Bitbucket Server.
	version int
}

// State is the state of a commit.
type State string

// The states of a commit.
const (
	Succeeded State = "success"
	Failed    State = "failure"
	Errored   State = "error"
)

// Status is a status of a commit.
type Status struct {
	// Name identifies the status among those of a commit.
	Name  string
	State State
	// Text is one line, and URL a web page.
	Text, URL string
}

// ErrCommentDeleted is returned for a comment that was deleted meanwhile, and
// ErrCommentChanged for one that was edited.
var (
	ErrCommentDeleted = errors.New("the comment was deleted")
	ErrCommentChanged = errors.New("the comment was edited")
)

// DeniedError is returned if the token has no permission for a request.
type DeniedError struct{ Err error }

func (e *DeniedError) Error() string { return e.Err.Error() }

// Unwrap returns the error with the remedy.
func (e *DeniedError) Unwrap() error { return e.Err }

// PullRequestHost describes the comments of a kind of Git hosts.
type PullRequestHost struct {
	// Name is the name of the product, and TokenVariables the variables with its
	// token, the first of which is used.
	Name           string
	TokenVariables []string
	// MaxComment is the maximum size of a comment in bytes.
	MaxComment int
	// Permissions describe what the token needs, for remedies.
	Permissions string
	// HTML reports whether comments may have HTML.
	HTML bool

	open func(*pullClient) PullRequest
}

// PullRequestHosts returns the kinds of Git hosts with pull requests, by the names of
// package pipeline.
func PullRequestHosts() map[string]PullRequestHost {
	return map[string]PullRequestHost{
		ci.GitHub: {
			"GitHub", []string{"GITHUB_TOKEN", "GH_TOKEN"}, 65536, "pull-requests: write, and statuses: write for --status", true, newGitHubPull,
		},
		ci.GitLab: {
			"GitLab", []string{"GITLAB_TOKEN"}, 1_000_000, "the scope api, and the role Reporter, or Developer for --status", true, newGitLabPull,
		},
		ci.Gitea: {
			"Gitea", []string{"GITEA_TOKEN", "FORGEJO_TOKEN"}, 65536, "write:issue and read:user, and write:repository for --status", true, newGiteaPull,
		},
		ci.BitbucketServer: {
			"Bitbucket", []string{"BITBUCKET_TOKEN"}, 32768, "repository read", false, newBitbucketPull,
		},
		ci.BitbucketCloud: {
			"Bitbucket Cloud", []string{"BITBUCKET_TOKEN"}, 32768, "pullrequest:write, and repository:write for --status", false, newCloudPull,
		},
	}
}

// Open returns the pull request with a number. The client is from [Caller.Client].
func (p PullRequestHost) Open(hosted Hosted, number int, client *http.Client) PullRequest {
	rest := &restClient{client: client, hosted: hosted, api: p.Name, messages: pullMessages, prepare: func(r *http.Request) {
		r.Header.Set("Authorization", "Bearer "+hosted.Token)
	}}
	return p.open(&pullClient{rest: rest, hosted: hosted, number: number, host: p})
}

// pullClient sends the requests for a pull request and explains their errors.
type pullClient struct {
	rest   *restClient
	hosted Hosted
	number int
	host   PullRequestHost
}

// call sends a request and decodes the response into out, which may be nil.
func (c *pullClient) call(ctx context.Context, doing, method, path string, in, out any) (http.Header, error) {
	header, err := c.rest.call(ctx, method, path, nil, in, out)
	return header, c.problem(ctx, doing, err)
}

// edit changes or deletes a comment.
func (c *pullClient) edit(ctx context.Context, doing, method, path string, in, out any) error {
	_, err := c.rest.call(ctx, method, path, nil, in, out)
	switch status(err) {
	case http.StatusNotFound, http.StatusGone:
		return ErrCommentDeleted
	case http.StatusConflict:
		return ErrCommentChanged
	}
	return c.problem(ctx, doing, err)
}

// problem returns the error of a failed request with its remedy, nil for nil.
func (c *pullClient) problem(ctx context.Context, doing string, err error) error {
	if known := c.hosted.explain(ctx, doing, err); known != nil || err == nil {
		return known
	}
	variable := c.hosted.TokenOrigin
	switch code := status(err); {
	case code == 0:
		return err
	case code == http.StatusUnauthorized && c.rest.api != "Bitbucket":
		return &DeniedError{hint.Errorf("set "+variable+" to a valid token: it may be wrong, expired or revoked", "%s: %s does not accept the token (401)", doing, c.hosted.Hostname)}
	case code == http.StatusUnauthorized, code == http.StatusForbidden, code == http.StatusNotFound:
		what := map[bool]string{true: "not found, or no permission", false: "no permission"}[code == http.StatusNotFound]
		return &DeniedError{hint.Errorf("the token in "+variable+" needs "+c.host.Permissions, "%s: %s (%d)%s", doing, what, code, colon(message(err)))}
	case message(err) == "":
		return hint.Errorf("check "+c.hosted.origin()+": use the host of a "+c.host.Name, "%s: %s responded with %d %s", doing, c.hosted.Hostname, code, http.StatusText(code))
	}
	return hint.Errorf("check the pull request, its repository and the token in "+variable, "%s: %s rejected the request (%d): %w", doing, c.hosted.Hostname, status(err), err)
}

// colon returns a text after a colon, "" for none.
func colon(text string) string {
	if text == "" {
		return ""
	}
	return ": " + text
}

// commentPage is the number of comments that a request asks for, and
// maxCommentPages bounds the pages, which a host may return without end. It is
// lower than maxRequests, because the comments of a page may have megabytes.
const (
	commentPage     = 100
	maxCommentPages = 200
)

// pages calls read with the number of each page, from 1, and returns the comments
// that begin with a line, the oldest first.
func pages(first string, read func(page int) (some []Comment, more bool, err error)) ([]Comment, error) {
	var found []Comment
	for page := range maxCommentPages {
		some, more, err := read(page + 1)
		if err != nil {
			return nil, err
		}
		found = append(found, slices.DeleteFunc(some, func(c Comment) bool {
			line, _, _ := strings.Cut(c.Text, "\n")
			return strings.TrimSpace(line) != first
		})...)
		if !more {
			return oldestFirst(found), nil
		}
	}
	return nil, hint.Errorf("open a new pull request", "the pull request has more than %d comments", maxCommentPages*commentPage)
}

func oldestFirst(found []Comment) []Comment {
	slices.SortFunc(found, func(a, b Comment) int { return int(min(max(a.ID-b.ID, -1), 1)) })
	return found
}

// short returns a text of at most n bytes.
func short(text string, n int) string {
	if len(text) <= n {
		return text
	}
	const more = "…"
	return strings.ToValidUTF8(text[:n-len(more)], "") + more
}
