package gitlab

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

	"github.com/fluxkit/flux/internal/githost/rest"
	"github.com/fluxkit/flux/internal/hint"
)

// call returns the result of a library request and converts the error for package rest.
func call[T any](result T, _ *gitlab.Response, err error) (T, error) { return result, rejected(err) }

// rejected converts the error of a library request for package rest.
func rejected(err error) error {
	var r *gitlab.ErrorResponse
	switch {
	case errors.Is(err, gitlab.ErrNotFound):
		return &rest.StatusError{Code: http.StatusNotFound}
	case !errors.As(err, &r) || r.Response == nil:
		return err
	}
	return rest.NewStatusError(r.Response, r.Body, "")
}

// pages returns all pages of a list.
func pages[T any](list func(gitlab.ListOptions) ([]T, *gitlab.Response, error)) ([]T, error) {
	return rest.Pages(1, func(page int) ([]T, int, error) {
		some, response, err := list(gitlab.ListOptions{PerPage: 100, Page: page})
		if err != nil {
			return nil, 0, rejected(err)
		}
		return some, response.NextPage, nil
	})
}

// account is the account of a token, with the scopes of the token.
type account struct {
	id    int
	name  string
	admin bool
	// scopes is nil if unknown.
	scopes []string
}

// allows reports whether the token may have one of the scopes.
func (a account) allows(scopes ...string) bool {
	return a.scopes == nil || slices.ContainsFunc(scopes, func(s string) bool { return slices.Contains(a.scopes, s) })
}

// identify reads the account and the scopes of the token.
func (d *driver) identify(ctx context.Context) error {
	var user *gitlab.User
	var token *gitlab.PersonalAccessToken
	group, gctx := errgroup.WithContext(ctx)
	group.Go(func() (err error) {
		user, err = call(d.client.Users.CurrentUser(gitlab.WithContext(gctx)))
		return err
	})
	group.Go(func() (err error) {
		// Versions before 15.5 do not support this request, and it does not accept OAuth tokens.
		token, err = call(d.client.PersonalAccessTokens.GetSinglePersonalAccessToken(gitlab.WithContext(gctx)))
		if code := rest.Status(err); code == 400 || code == 403 || code == 404 || code == 405 {
			return nil
		}
		return err
	})
	if err := group.Wait(); err != nil {
		return d.API.Explain(ctx, "reading the account of the token", err)
	}
	d.account = account{id: user.ID, name: user.Username, admin: user.IsAdmin}
	d.API.Account = user.Username
	if token != nil {
		d.account.scopes = token.Scopes
	}
	switch {
	case !d.account.allows("api", "read_api"):
		return d.lacks("api", "reading the project")
	case !d.account.allows("api", "write_repository"):
		return d.lacks("api", "pushing to the repository")
	}
	return nil
}

// lacks returns the error for a token without a required scope.
func (d *driver) lacks(scope, doing string) error {
	return hint.Errorf(fmt.Sprintf("create a token with the scope %s at %s", scope, d.API.TokenPage()),
		"%s: the token is missing the scope %q: it has %s", doing, scope, listed(d.account.scopes))
}

// listed formats a list for messages.
func listed(words []string) string {
	if len(words) == 0 {
		return "none"
	}
	return strings.Join(words, ", ")
}

// group returns a group, nil if it does not exist or the token cannot read it.
func (d *driver) group(ctx context.Context, name string) (*gitlab.Group, error) {
	group, err := call(d.client.Groups.GetGroup(name, &gitlab.GetGroupOptions{WithProjects: gitlab.Ptr(false)}, gitlab.WithContext(ctx)))
	if rest.Missing(err) {
		return nil, nil // it does not exist
	}
	if err != nil {
		return nil, d.API.Explain(ctx, "reading group "+name, err)
	}
	return group, nil
}

// isUser reports whether a name is known to be the name of a user.
func (d *driver) isUser(ctx context.Context, name string) bool {
	users, _, err := d.client.Users.ListUsers(&gitlab.ListUsersOptions{Username: &name}, gitlab.WithContext(ctx))
	return err == nil && len(users) > 0
}

// levelIn returns the access level of the account in a group, including inherited access.
func (d *driver) levelIn(ctx context.Context, group *gitlab.Group) (gitlab.AccessLevelValue, error) {
	if d.account.admin {
		return gitlab.AdminPermissions, nil
	}
	member, err := call(d.client.GroupMembers.GetInheritedGroupMember(group.ID, d.account.id, gitlab.WithContext(ctx)))
	if rest.Missing(err) {
		return gitlab.NoPermissions, nil
	}
	if err != nil {
		return 0, d.API.Explain(ctx, "reading the role of "+d.account.name+" in group "+group.FullPath, err)
	}
	return member.AccessLevel, nil
}

// cause explains errors specific to GitLab.
func (d *driver) cause(doing string, e *rest.StatusError) error {
	switch text := rest.Message(e); {
	case e.Code == http.StatusUnauthorized && strings.Contains(text, "expired"):
		return hint.Errorf("create a new one at "+d.API.TokenPage(), "%s: the token has expired", doing)
	case e.Code == http.StatusUnauthorized && strings.Contains(text, "revoked"):
		return hint.Errorf("create a new one at "+d.API.TokenPage(), "%s: the token has been revoked", doing)
	case e.Code != http.StatusForbidden:
		return nil
	}
	var body struct{ Error, Scope string }
	if json.Unmarshal(e.Body, &body) != nil || body.Error != "insufficient_scope" {
		return nil
	}
	scope, _, _ := strings.Cut(body.Scope, " ")
	if scope == "" {
		scope = "api"
	}
	return hint.Errorf("create a token with that scope at "+d.API.TokenPage(), "%s: the token is missing the scope %q", doing, scope)
}
