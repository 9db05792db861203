package githost

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/google/go-github/v60/github"

	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/internal/secrets/redact"
)

// githubAPI sends the requests of an account and explains their errors.
type githubAPI struct {
	Hosted
	client *github.Client
	// account is the account of the token, "" for the installation of an app.
	account string
	token   githubToken
}

// githubURL returns the URL of the API of a host.
func githubURL(h Hosted) url.URL {
	u := url.URL{Scheme: h.Scheme, Host: h.Hostname, Path: "/api/v3/"}
	if u.Scheme == "" {
		u.Scheme = "https"
	}
	if h.Hostname == "github.com" || strings.HasSuffix(h.Hostname, ".ghe.com") {
		u.Host, u.Path = "api."+h.Hostname, "/"
	}
	return u
}

// readAccount reads the account and the kind of the token.
func (g *githubAPI) readAccount(ctx context.Context) error {
	user, response, err := g.client.Users.Get(ctx, "")
	if response != nil {
		g.token = readGitHubToken(g.Token, response.Header)
	}
	switch {
	case err == nil:
		g.account = user.GetLogin()
		return nil
	case status(err) == http.StatusForbidden && g.token.kind == installationToken:
		return nil // the token of an app has no account
	default:
		return g.problem(ctx, "checking the token", err)
	}
}

// get reads an object with fields that the library does not have.
func (g *githubAPI) get(ctx context.Context, path string, into any) error {
	request, err := g.client.NewRequest(http.MethodGet, path, nil)
	if err != nil {
		return err
	}
	_, err = g.client.Do(ctx, request, into)
	return err
}

// lacksScope returns the error for a classic token without a scope.
func (g *githubAPI) lacksScope(token githubToken, scope, why string) error {
	has := "no scopes"
	if len(token.scopes) > 0 {
		has = strings.Join(token.scopes, ", ")
	}
	return hint.Errorf(fmt.Sprintf("add the scope at %s, or with gh auth refresh --hostname %s --scopes %s", g.HTTPURL("settings/tokens"), g.Hostname, scope),
		"the token lacks the scope %q, which %s needs; it has %s", scope, why, has)
}

// problem returns the error of a failed request with its remedy, nil for nil.
func (g *githubAPI) problem(ctx context.Context, doing string, err error) error {
	var rejected *github.ErrorResponse
	var limit *github.RateLimitError
	var abuse *github.AbuseRateLimitError
	if errors.As(err, &limit) { // the library remembers the limit of an earlier response
		err = &RateLimitError{Host: g.Hostname, Until: limit.Rate.Reset.Time}
	}
	if errors.As(err, &abuse) {
		return hint.Errorf("run the command again in a few minutes; it resumes", "%s: %s has rate-limited the token: %s", doing, g.Hostname, redact.Text(abuse.Message, g.Token))
	}
	if !errors.As(err, &rejected) || rejected.Response == nil {
		if known := g.explain(ctx, doing, err); known != nil || err == nil {
			return known
		}
		return hint.Errorf("check --hostname", "%s: %s is not a GitHub API: %w", doing, g.Hostname, err)
	}
	header := rejected.Response.Header
	switch code := status(err); {
	case code == http.StatusUnauthorized:
		return hint.Errorf("it may be wrong, expired or revoked: create a new one at "+g.HTTPURL("settings/tokens"), "%s does not accept the token (401)", g.Hostname)
	case requiresSignOn(err):
		_, page, _ := strings.Cut(header.Get(signOnHeader), "url=")
		return hint.Errorf("authorize it at "+page, "%s: the organization %s requires single sign-on, for which the token is not authorized", doing, g.Owner)
	case lacking(header) != "":
		return g.lacksScope(readGitHubToken(g.Token, header), lacking(header), doing)
	case code == http.StatusForbidden && header.Get(permissionsHeader) != "":
		return hint.Errorf(fmt.Sprintf("add the permission %s for %s at %s", permissions(header), g.Hosted, g.HTTPURL("settings/personal-access-tokens")),
			"%s: the token lacks the permission %s", doing, permissions(header))
	case code == http.StatusForbidden:
		return hint.Errorf("check the permissions of the token and its owner", "%s: GitHub denied the request (403): %s", doing, reason(rejected, g.Token))
	case code == http.StatusNotFound:
		return hint.Errorf("check the names, and the permissions of the token", "%s: not found, or no permission to read it (404)", doing)
	case code >= http.StatusInternalServerError:
		return g.unavailable(doing, err)
	case reason(rejected, g.Token) == "":
		return hint.Errorf("check --hostname: use the host of a GitHub", "%s: %s responded with %d %s", doing, g.Hostname, code, http.StatusText(code))
	default:
		return hint.Errorf("check the names and the flags", "%s: GitHub denied the request (%d): %s", doing, code, reason(rejected, g.Token))
	}
}
