package githost

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/xanzy/go-gitlab"
)

// gitlabPages returns all pages of a list.
func gitlabPages[T any](list func(gitlab.ListOptions) ([]T, *gitlab.Response, error)) ([]T, error) {
	var all []T
	options := gitlab.ListOptions{PerPage: 100, Page: 1}
	for {
		some, answer, err := list(options)
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
		if answer.NextPage <= options.Page {
			return all, nil
		}
		options.Page = answer.NextPage
	}
}

// gitlabStatus is the status of the answer that an error is about, 0 where
// there was none.
func gitlabStatus(err error) int {
	var answer *gitlab.ErrorResponse
	switch {
	case errors.Is(err, gitlab.ErrNotFound):
		return http.StatusNotFound
	case errors.As(err, &answer) && answer.Response != nil:
		return answer.Response.StatusCode
	}
	return 0
}

func gitlabMissing(err error) bool { return gitlabStatus(err) == http.StatusNotFound }

// gitlabTaken tells whether GitLab refused something because it is there. The status
// of that answer is 400 in most versions, not 409.
func gitlabTaken(err error) bool {
	status := gitlabStatus(err)
	return (status == http.StatusBadRequest || status == http.StatusConflict || status == http.StatusUnprocessableEntity) &&
		strings.Contains(gitlabMessage(err), "has already been taken")
}

// gitlabAnswer is the body of a refusal.
type gitlabAnswer struct {
	Message     any    `json:"message"`
	Error       any    `json:"error"`
	Description string `json:"error_description"`
	Scope       string `json:"scope"`
}

func readGitLabAnswer(err error) gitlabAnswer {
	var answer *gitlab.ErrorResponse
	var body gitlabAnswer
	if errors.As(err, &answer) && json.Unmarshal(answer.Body, &body) != nil {
		return gitlabAnswer{} // a page of a proxy, say
	}
	return body
}

// gitlabMessage is what GitLab says of a refusal, in one line.
func gitlabMessage(err error) string {
	body := readGitLabAnswer(err)
	for _, part := range []any{body.Message, body.Description, body.Error} {
		if text := gitlabText(part); text != "" {
			return text
		}
	}
	return ""
}

// gitlabText puts a message of GitLab, which may be a text, a list or fields with
// lists, into a line.
func gitlabText(message any) string {
	var parts []string
	switch m := message.(type) {
	case string:
		return m
	case []any:
		for _, part := range m {
			parts = append(parts, gitlabText(part))
		}
	case map[string]any:
		for _, field := range slices.Sorted(maps.Keys(m)) {
			parts = append(parts, field+" "+gitlabText(m[field]))
		}
	}
	return strings.Join(parts, ", ")
}

// problem puts a failed request into words with the way out.
func (g *GitLab) problem(ctx context.Context, doing string, err error) error {
	if known := g.hosted.explain(ctx, doing, err); known != nil {
		return known
	}
	said := gitlabMessage(err)
	body := readGitLabAnswer(err)
	tokens := g.hosted.HTTPURL("/-/user_settings/personal_access_tokens")
	switch status := gitlabStatus(err); {
	case status == 0:
		return fmt.Errorf("%s: %w", doing, err)
	case status == http.StatusUnauthorized && strings.Contains(said, "expired"):
		return failure("create a new one at "+tokens, "%s: the token has expired", doing)
	case status == http.StatusUnauthorized && strings.Contains(said, "revoked"):
		return failure("create a new one at "+tokens, "%s: the token has been revoked", doing)
	case status == http.StatusUnauthorized:
		return failure("check GITLAB_TOKEN and --hostname, or create a token with the scope api at "+tokens, "%s: %s does not accept the token", doing, g.hosted.Hostname)
	case status == http.StatusForbidden && gitlabText(body.Error) == "insufficient_scope":
		scope, _, _ := strings.Cut(body.Scope, " ")
		if scope == "" {
			scope = "api"
		}
		return failure("create a token with that scope at "+tokens, "%s: the token lacks the scope %q", doing, scope)
	case status == http.StatusForbidden:
		return failure("ask an owner for the required role", "%s: %s may not: %s", doing, g.who(), said)
	case status == http.StatusNotFound:
		return failure("check the permissions of the token", "%s: not found, or no permission to read it, as %s", doing, g.who())
	case status >= http.StatusInternalServerError:
		return failure("try again later", "%s: %s answers %d %s", doing, g.hosted.Hostname, status, http.StatusText(status))
	case said != "":
		return fmt.Errorf("%s: GitLab rejected the request: %s", doing, said)
	default:
		return fmt.Errorf("%s: %s answers %d %s", doing, g.hosted.Hostname, status, http.StatusText(status))
	}
}

// who is the account in words.
func (g *GitLab) who() string {
	if g.account.name == "" {
		return "the token's account"
	}
	return g.account.name
}
