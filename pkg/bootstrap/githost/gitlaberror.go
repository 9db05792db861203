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

	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/internal/redact"
)

// gitlabPages returns all pages of a list.
func gitlabPages[T any](list func(gitlab.ListOptions) ([]T, *gitlab.Response, error)) ([]T, error) {
	var all []T
	options := gitlab.ListOptions{PerPage: 100, Page: 1}
	for {
		some, response, err := list(options)
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
		if response.NextPage <= options.Page {
			return all, nil
		}
		options.Page = response.NextPage
	}
}

func gitlabMissing(err error) bool { return status(err) == http.StatusNotFound }

// gitlabTaken reports whether GitLab rejected the creation of an object that
// exists. Most versions respond with 400, not 409.
func gitlabTaken(err error) bool {
	code := status(err)
	return (code == http.StatusBadRequest || code == http.StatusConflict || code == http.StatusUnprocessableEntity) &&
		strings.Contains(gitlabMessage(err), "has already been taken")
}

// gitlabRejection is the body of the response to a rejected request.
type gitlabRejection struct {
	Message     any    `json:"message"`
	Error       any    `json:"error"`
	Description string `json:"error_description"`
	Scope       string `json:"scope"`
}

func readGitLabRejection(err error) gitlabRejection {
	var response *gitlab.ErrorResponse
	var body gitlabRejection
	if errors.As(err, &response) && json.Unmarshal(response.Body, &body) != nil {
		return gitlabRejection{} // for example a page of a proxy
	}
	return body
}

// gitlabMessage returns the message of a rejected request as one line.
func gitlabMessage(err error) string {
	body := readGitLabRejection(err)
	for _, part := range []any{body.Message, body.Description, body.Error} {
		if text := gitlabText(part); text != "" {
			return text
		}
	}
	return ""
}

// gitlabText returns a message as one line. It may be a string, a list, or fields
// with lists.
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

// problem returns the error of a failed request with its remedy.
func (g *GitLab) problem(ctx context.Context, doing string, err error) error {
	if known := g.hosted.explain(ctx, doing, err); known != nil {
		return known
	}
	text := redact.Text(gitlabMessage(err), g.hosted.Token)
	var syntax *json.SyntaxError
	var mismatch *json.UnmarshalTypeError
	tokens := g.hosted.HTTPURL("/-/user_settings/personal_access_tokens")
	switch code := status(err); {
	case errors.As(err, &syntax), errors.As(err, &mismatch):
		return hint.Errorf("check --hostname: use the host of a GitLab, with its base path", "%s: %s has no GitLab API", doing, g.hosted.Hostname)
	case code == 0:
		return fmt.Errorf("%s: %w", doing, err)
	case code == http.StatusUnauthorized && strings.Contains(text, "expired"):
		return hint.Errorf("create a new one at "+tokens, "%s: the token has expired", doing)
	case code == http.StatusUnauthorized && strings.Contains(text, "revoked"):
		return hint.Errorf("create a new one at "+tokens, "%s: the token has been revoked", doing)
	case code == http.StatusUnauthorized:
		return hint.Errorf("check GITLAB_TOKEN and --hostname, or create a token with the scope api at "+tokens, "%s: %s does not accept the token", doing, g.hosted.Hostname)
	case code == http.StatusForbidden && gitlabText(readGitLabRejection(err).Error) == "insufficient_scope":
		scope, _, _ := strings.Cut(readGitLabRejection(err).Scope, " ")
		if scope == "" {
			scope = "api"
		}
		return hint.Errorf("create a token with that scope at "+tokens, "%s: the token lacks the scope %q", doing, scope)
	case code == http.StatusForbidden:
		return hint.Errorf("ask an owner for the required role", "%s: %s has no permission: %s", doing, g.who(), text)
	case code == http.StatusNotFound:
		return hint.Errorf("check the names and the permissions of the token", "%s: not found on %s, or %s has no permission to read it", doing, g.hosted.Hostname, g.who())
	case text != "":
		return hint.Errorf("check the names and the flags", "%s: GitLab rejected the request: %s", doing, text)
	default:
		return hint.Errorf("check --hostname: use the host of a GitLab, with its base path",
			"%s: %s responded with %d %s", doing, g.hosted.Hostname, code, http.StatusText(code))
	}
}

// who returns the account for messages.
func (g *GitLab) who() string {
	if g.account.name == "" {
		return "the token's account"
	}
	return g.account.name
}
