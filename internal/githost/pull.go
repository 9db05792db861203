package githost

import (
	"context"
	"errors"
	"strings"

	"github.com/fluxkit/flux/internal/ci"
)

// PullRequest is an open pull request or merge request of a repository, with its
// comments and the statuses of its commits.
type PullRequest interface {
	// Comments returns the comments, by any account, whose first line is the given line, oldest first.
	Comments(ctx context.Context, first string) ([]Comment, error)
	// Account returns the author of the comments that this token adds.
	Account(ctx context.Context) (Author, error)
	// AddComment adds a comment.
	AddComment(ctx context.Context, text string) (Comment, error)
	// EditComment replaces the text of a comment. It returns ErrCommentDeleted or ErrCommentChanged if the comment
	// was deleted or edited after Comments returned it.
	EditComment(ctx context.Context, c Comment, text string) (Comment, error)
	// DeleteComment deletes a comment.
	DeleteComment(ctx context.Context, c Comment) error
	// SetStatus sets a status of a commit. It replaces a status with the same name.
	SetStatus(ctx context.Context, commit string, status Status) error
}

// Author is the author of a comment.
type Author struct {
	// ID identifies the account on its host, "" for the installation of a GitHub
	// App, which cannot read its own name.
	ID string
	// Bot is set for app accounts on GitHub.
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
	// Version is the number of edits, which Bitbucket Server requires for a further edit.
	Version int
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
	// Name identifies a status among the statuses of a commit.
	Name  string
	State State
	// Text is a description in one line, and URL a web page with details.
	Text, URL string
}

// ErrCommentDeleted is returned for a comment that was deleted in the meantime,
// and ErrCommentChanged for a comment that was edited.
var (
	ErrCommentDeleted = errors.New("the comment was deleted")
	ErrCommentChanged = errors.New("the comment was edited")
)

// DeniedError is returned if the token does not have the permission for a request.
type DeniedError struct{ Err error }

func (e *DeniedError) Error() string { return e.Err.Error() }

// Unwrap returns the error with the hint.
func (e *DeniedError) Unwrap() error { return e.Err }

// PullRequestHost describes the pull request comments on a kind of Git host.
type PullRequestHost struct {
	// Name is the product name. TokenVariables lists the variables that may
	// contain the token, in order of precedence.
	Name           string
	TokenVariables []string
	// MaxComment is the maximum size of a comment in bytes.
	MaxComment int
	// Permissions describes the permissions that the token requires, for error hints.
	Permissions string
	// HTML reports whether comments may contain HTML.
	HTML bool
}

// PullRequestHosts returns the kinds of Git hosts with pull requests, keyed by their names in package ci.
func PullRequestHosts() map[string]PullRequestHost {
	return map[string]PullRequestHost{
		ci.GitHub: {"GitHub", []string{"GITHUB_TOKEN", "GH_TOKEN"}, 65536, "pull-requests: write, and statuses: write for --status", true},
		ci.GitLab: {"GitLab", []string{"GITLAB_TOKEN"}, 1_000_000, "the scope api, and the role Reporter, or Developer for --status", true},
		ci.Gitea: {
			"Gitea", []string{"GITEA_TOKEN", "FORGEJO_TOKEN"}, 65536, "write:issue and read:user, and write:repository for --status", true,
		},
		ci.BitbucketServer: {"Bitbucket", []string{"BITBUCKET_TOKEN"}, 32768, "repository read", false},
		ci.BitbucketCloud: {
			"Bitbucket Cloud", []string{"BITBUCKET_TOKEN"}, 32768, "pullrequest:write, and repository:write for --status", false,
		},
	}
}
