package github

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/google/go-github/v60/github"

	"github.com/fluxkit/flux/internal/githost/rest"
	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/internal/secrets/redact"
)

// call returns the result of a library request and converts the error for package rest.
func call[T any](result T, _ *github.Response, err error) (T, error) { return result, rejected(err) }

// rejected converts the error of a library request for package rest.
func rejected(err error) error {
	var r *github.ErrorResponse
	var limit *github.RateLimitError
	var abuse *github.AbuseRateLimitError
	switch {
	case errors.As(err, &limit): // the library caches the limit of an earlier response
		return &rest.RateLimitError{Host: limit.Response.Request.URL.Host, Until: limit.Rate.Reset.Time}
	case errors.As(err, &abuse):
		return hint.Errorf("run the command again in a few minutes; it resumes", "%s has rate-limited the token: %s", abuse.Response.Request.URL.Host, redact.Text(abuse.Message))
	case !errors.As(err, &r) || r.Response == nil:
		return err
	}
	messages := []string{r.Message}
	for _, e := range r.Errors {
		if e.Message != "" && !slices.Contains(messages, e.Message) {
			messages = append(messages, e.Message)
		}
	}
	return &rest.StatusError{Code: r.Response.StatusCode, Message: strings.Join(messages, ": "), Header: r.Response.Header}
}

// get reads an object with fields that the library does not support.
func (d *driver) get(ctx context.Context, path string, into any) error {
	request, err := d.client.NewRequest(http.MethodGet, path, nil)
	if err != nil {
		return err
	}
	_, err = d.client.Do(ctx, request, into)
	return rejected(err)
}

// readAccount reads the account and the kind of the token. App tokens have no account.
func (d *driver) readAccount(ctx context.Context) (login string, err error) {
	user, response, err := d.client.Users.Get(ctx, "")
	if response != nil {
		d.token = readToken(d.Hosted.Token, response.Header)
		d.API.Expires = d.token.expires
	}
	if err = rejected(err); rest.Denied(err) && d.token.kind == installationToken {
		return "", nil
	}
	return user.GetLogin(), err
}

// lacksScope returns the error for a classic token without a required scope.
func (d *driver) lacksScope(token token, scope, why string) error {
	has := "no scopes"
	if len(token.scopes) > 0 {
		has = strings.Join(token.scopes, ", ")
	}
	return hint.Errorf(fmt.Sprintf("add the scope at %s, or with gh auth refresh --hostname %s --scopes %s", d.API.TokenPage(), d.Hosted.Hostname, scope),
		"the token is missing the scope %q, which %s requires; it has %s", scope, why, has)
}

// cause explains errors specific to GitHub.
func (d *driver) cause(doing string, e *rest.StatusError) error {
	switch {
	case requiresSignOn(e):
		_, page, _ := strings.Cut(e.Header.Get(signOnHeader), "url=")
		return hint.Errorf("authorize it at "+page, "%s: the organization %s requires single sign-on, for which the token is not authorized", doing, d.Hosted.Owner)
	case e.Code != http.StatusUnauthorized && lacking(e.Header) != "":
		return d.lacksScope(readToken(d.Hosted.Token, e.Header), lacking(e.Header), doing)
	case e.Code == http.StatusForbidden && e.Header.Get(permissionsHeader) != "":
		return hint.Errorf(fmt.Sprintf("add the permission %s for %s at %s", permissions(e.Header), d.Hosted, d.Hosted.HTTPURL("settings/personal-access-tokens")),
			"%s: the token is missing the permission %s", doing, permissions(e.Header))
	}
	return nil
}
