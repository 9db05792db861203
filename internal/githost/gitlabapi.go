package githost

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/xanzy/go-gitlab"
	"golang.org/x/sync/errgroup"

	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/internal/secrets/redact"
)

// gitlabAPI sends the requests of an account and explains their errors.
type gitlabAPI struct {
	hosted  Hosted
	client  *gitlab.Client //nolint:staticcheck // deprecated, and required by the project
	account gitlabAccount
}

// gitlabAccount is the account of a token, and its scopes.
type gitlabAccount struct {
	id    int
	name  string
	admin bool
	// scopes is nil if unknown.
	scopes []string
}

// allows reports whether the token may have one of the scopes.
func (a gitlabAccount) allows(scopes ...string) bool {
	return a.scopes == nil || slices.ContainsFunc(scopes, func(s string) bool { return slices.Contains(a.scopes, s) })
}

// identify reads the account and the scopes of the token.
func (g *gitlabAPI) identify(ctx context.Context) error {
	var user *gitlab.User
	var token *gitlab.PersonalAccessToken
	group, gctx := errgroup.WithContext(ctx)
	group.Go(func() (err error) {
		user, _, err = g.client.Users.CurrentUser(gitlab.WithContext(gctx))
		return err
	})
	group.Go(func() (err error) {
		// Versions before 15.5 do not have this request, and it rejects OAuth tokens.
		token, _, err = g.client.PersonalAccessTokens.GetSinglePersonalAccessToken(gitlab.WithContext(gctx))
		if code := status(err); code == 400 || code == 403 || code == 404 || code == 405 {
			return nil
		}
		return err
	})
	if err := group.Wait(); err != nil {
		return g.problem(ctx, "reading the account of the token", err)
	}
	g.account = gitlabAccount{id: user.ID, name: user.Username, admin: user.IsAdmin}
	if token != nil {
		g.account.scopes = token.Scopes
	}
	switch {
	case !g.account.allows("api", "read_api"):
		return g.lacks("api", "reading the project")
	case !g.account.allows("api", "write_repository"):
		return g.lacks("api", "pushing to the repository")
	}
	return nil
}

// lacks returns the error for a token without a required scope.
func (g *gitlabAPI) lacks(scope, doing string) error {
	return hint.Errorf(fmt.Sprintf("create a token with the scope %s at %s", scope, g.hosted.HTTPURL("/-/user_settings/personal_access_tokens")),
		"%s: the token lacks the scope %q: it has %s", doing, scope, listed(g.account.scopes))
}

// listed returns a list for messages.
func listed(words []string) string {
	if len(words) == 0 {
		return "none"
	}
	return strings.Join(words, ", ")
}

// group returns a group, nil if there is none that the token can read.
func (g *gitlabAPI) group(ctx context.Context, name string) (*gitlab.Group, error) {
	group, _, err := g.client.Groups.GetGroup(name, &gitlab.GetGroupOptions{WithProjects: gitlab.Ptr(false)}, gitlab.WithContext(ctx))
	if gitlabMissing(err) {
		return nil, nil // it does not exist
	}
	if err != nil {
		return nil, g.problem(ctx, "reading group "+name, err)
	}
	return group, nil
}

// isUser reports whether a name is known to be the name of a user.
func (g *gitlabAPI) isUser(ctx context.Context, name string) bool {
	users, _, err := g.client.Users.ListUsers(&gitlab.ListUsersOptions{Username: &name}, gitlab.WithContext(ctx))
	return err == nil && len(users) > 0
}

// levelIn returns the access level of the account in a group, with inherited ones.
func (g *gitlabAPI) levelIn(ctx context.Context, group *gitlab.Group) (gitlab.AccessLevelValue, error) {
	if g.account.admin {
		return gitlab.AdminPermissions, nil
	}
	member, _, err := g.client.GroupMembers.GetInheritedGroupMember(group.ID, g.account.id, gitlab.WithContext(ctx))
	if gitlabMissing(err) {
		return gitlab.NoPermissions, nil
	}
	if err != nil {
		return 0, g.problem(ctx, "reading the role of "+g.account.name+" in group "+group.FullPath, err)
	}
	return member.AccessLevel, nil
}

// problem returns the error of a failed request with its remedy.
func (g *gitlabAPI) problem(ctx context.Context, doing string, err error) error {
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
func (g *gitlabAPI) who() string {
	if g.account.name == "" {
		return "the token's account"
	}
	return g.account.name
}
