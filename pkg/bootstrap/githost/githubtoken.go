package githost

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/google/go-github/v60/github"

	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/internal/redact"
)

// githubTokenKind is a kind of tokens.
type githubTokenKind int

const (
	// fineToken has permissions, which only the rejection of a request lists.
	fineToken githubTokenKind = iota
	// classicToken has scopes, which each response lists.
	classicToken
	// installationToken is the token of an app, such as GitHub Actions.
	installationToken
)

// githubToken describes a token.
type githubToken struct {
	kind   githubTokenKind
	scopes []string
	// expires is zero if the token does not expire.
	expires time.Time
}

const (
	scopesHeader         = "X-Oauth-Scopes"
	acceptedScopesHeader = "X-Accepted-Oauth-Scopes"
	permissionsHeader    = "X-Accepted-Github-Permissions"
	signOnHeader         = "X-Github-Sso"
	expirationHeader     = "Github-Authentication-Token-Expiration"
)

// readGitHubToken returns the description of a token in the headers of a response.
func readGitHubToken(token string, h http.Header) githubToken {
	t := githubToken{kind: classicToken, scopes: list(h.Get(scopesHeader)), expires: expiration(h.Get(expirationHeader))}
	if h.Values(scopesHeader) == nil {
		t.kind = fineToken
	}
	if strings.HasPrefix(token, "ghs_") {
		t.kind = installationToken
	}
	return t
}

// expiration parses a time in either format that GitHub uses, and returns zero
// for none.
func expiration(s string) time.Time {
	for _, form := range []string{"2006-01-02 15:04:05 MST", "2006-01-02 15:04:05 -0700"} {
		if at, err := time.Parse(form, s); err == nil {
			return at.UTC()
		}
	}
	return time.Time{}
}

// list splits the value of a header.
func list(header string) []string {
	return strings.FieldsFunc(header, func(r rune) bool { return r == ',' || r == ' ' })
}

// impliedScopes are the scopes that other scopes include.
var impliedScopes = map[string][]string{
	"repo":      {"public_repo"},
	"admin:org": {"write:org", "read:org"},
	"write:org": {"read:org"},
}

// has reports whether a classic token has a scope.
func (t githubToken) has(scope string) bool {
	return slices.ContainsFunc(t.scopes, func(s string) bool { return s == scope || slices.Contains(impliedScopes[s], scope) })
}

// scopesSuffice returns an error if a classic token lacks a scope. The permissions of
// other tokens are unknown until GitHub rejects a request.
func (g *GitHub) scopesSuffice() error {
	if g.found.token.kind != classicToken {
		return nil
	}
	scope, why := "repo", "a private repository"
	if r := g.found.repository; g.Visibility == "public" && (r == nil || r.GetVisibility() == "public") {
		scope, why = "public_repo", "a public repository"
	}
	if !g.found.token.has(scope) {
		return g.lacksScope(g.found.token, scope, why)
	}
	if len(g.Teams) > 0 && !g.found.token.has("read:org") {
		return g.lacksScope(g.found.token, "read:org", "granting teams access")
	}
	return nil
}

func (g *GitHub) lacksScope(token githubToken, scope, why string) error {
	has := "no scopes"
	if len(token.scopes) > 0 {
		has = strings.Join(token.scopes, ", ")
	}
	return hint.Errorf(fmt.Sprintf("add the scope at %s, or with gh auth refresh --hostname %s --scopes %s", g.settings("settings/tokens"), g.Hostname, scope),
		"the token lacks the scope %q, which %s needs; it has %s", scope, why, has)
}

// requiresSignOn reports whether a rejected request requires single sign-on.
func requiresSignOn(err error) bool {
	var rejected *github.ErrorResponse
	return errors.As(err, &rejected) && rejected.Response != nil && strings.HasPrefix(rejected.Response.Header.Get(signOnHeader), "required")
}

// mentions reports whether the message of a rejected request has certain words.
func mentions(rejected *github.ErrorResponse, words string) bool {
	return strings.Contains(strings.ToLower(reason(rejected, "")), words)
}

// reason returns the message of a rejected request without credentials.
func reason(rejected *github.ErrorResponse, token string) string {
	messages := []string{rejected.Message}
	for _, e := range rejected.Errors {
		if e.Message != "" && !slices.Contains(messages, e.Message) {
			messages = append(messages, e.Message)
		}
	}
	return redact.Text(strings.Join(messages, ": "), token)
}

// problem returns the error of a failed request with its remedy, nil for nil.
func (g *GitHub) problem(ctx context.Context, doing string, err error) error {
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
		return hint.Errorf("it may be wrong, expired or revoked: create a new one at "+g.settings("settings/tokens"), "%s does not accept the token (401)", g.Hostname)
	case requiresSignOn(err):
		_, page, _ := strings.Cut(header.Get(signOnHeader), "url=")
		return hint.Errorf("authorise it at "+page, "%s: the organisation %s requires single sign-on, for which the token is not authorised", doing, g.Owner)
	case lacking(header) != "":
		return g.lacksScope(readGitHubToken(g.Token, header), lacking(header), doing)
	case code == http.StatusForbidden && header.Get(permissionsHeader) != "":
		return hint.Errorf(fmt.Sprintf("add the permission %s for %s at %s", permissions(header), g.Hosted, g.settings("settings/personal-access-tokens")),
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

// lacking returns an accepted scope of a rejected request if the token has none
// of them, else "". GitHub also responds with 404 to a token without the scopes.
func lacking(h http.Header) string {
	accepted, token := list(h.Get(acceptedScopesHeader)), readGitHubToken("", h)
	if h.Values(scopesHeader) == nil || len(accepted) == 0 || slices.ContainsFunc(accepted, token.has) {
		return ""
	}
	if slices.Contains(accepted, "repo") {
		return "repo"
	}
	return accepted[len(accepted)-1]
}

// permissions returns the permissions that a rejected request requires, as in
// "contents" (write). Only the first of several alternatives is returned.
func permissions(h http.Header) string {
	first, _, _ := strings.Cut(h.Get(permissionsHeader), ";")
	words := list(first)
	for i, word := range words {
		name, level, _ := strings.Cut(word, "=")
		words[i] = fmt.Sprintf("%q (%s)", name, level)
	}
	return strings.Join(words, " and ")
}
