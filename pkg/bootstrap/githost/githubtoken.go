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
)

// githubTokenKind is what can be asked of a token.
type githubTokenKind int

const (
	// fineToken has permissions, which only a refusal names.
	fineToken githubTokenKind = iota
	// classicToken has scopes, which every answer names.
	classicToken
	// installationToken is an app's, GitHub Actions' for one.
	installationToken
)

// githubToken is a token as GitHub knows it.
type githubToken struct {
	kind   githubTokenKind
	scopes []string
	// expires is zero where it never does.
	expires time.Time
}

const (
	scopesHeader         = "X-Oauth-Scopes"
	acceptedScopesHeader = "X-Accepted-Oauth-Scopes"
	permissionsHeader    = "X-Accepted-Github-Permissions"
	signOnHeader         = "X-Github-Sso"
	expirationHeader     = "Github-Authentication-Token-Expiration"
)

// readGitHubToken tells the kind of a token by what an answer says about it.
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

// expiration reads the time in both forms in which GitHub writes it, zero
// where there is none.
func expiration(s string) time.Time {
	for _, form := range []string{"2006-01-02 15:04:05 MST", "2006-01-02 15:04:05 -0700"} {
		if at, err := time.Parse(form, s); err == nil {
			return at.UTC()
		}
	}
	return time.Time{}
}

// list takes a header apart that lists words.
func list(header string) []string {
	return strings.FieldsFunc(header, func(r rune) bool { return r == ',' || r == ' ' })
}

// impliedScopes are the scopes that others contain.
var impliedScopes = map[string][]string{
	"repo":      {"public_repo"},
	"admin:org": {"write:org", "read:org"},
	"write:org": {"read:org"},
}

// has tells whether a classic token has a scope.
func (t githubToken) has(scope string) bool {
	return slices.ContainsFunc(t.scopes, func(s string) bool { return s == scope || slices.Contains(impliedScopes[s], scope) })
}

// scopesSuffice refuses a classic token that lacks a scope. What other tokens
// may do, GitHub says only when it refuses.
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
		return g.lacksScope(g.found.token, "read:org", "giving teams access")
	}
	return nil
}

func (g *GitHub) lacksScope(token githubToken, scope, why string) error {
	has := "no scope at all"
	if len(token.scopes) > 0 {
		has = strings.Join(token.scopes, ", ")
	}
	return failure(fmt.Sprintf("add the scope at %s, or with gh auth refresh --hostname %s --scopes %s", g.settings("settings/tokens"), g.Hostname, scope),
		"the token lacks the scope %q, which %s needs; it has %s", scope, why, has)
}

// statusOf returns the status of a refusal, 0 of every other error.
func statusOf(err error) int {
	var refusal *github.ErrorResponse
	if errors.As(err, &refusal) && refusal.Response != nil {
		return refusal.Response.StatusCode
	}
	return 0
}

// signOn tells whether a refusal asks for single sign-on.
func signOn(err error) bool {
	var refusal *github.ErrorResponse
	return errors.As(err, &refusal) && refusal.Response != nil && strings.HasPrefix(refusal.Response.Header.Get(signOnHeader), "required")
}

// says tells whether a refusal has certain words in it.
func says(refusal *github.ErrorResponse, words string) bool {
	return strings.Contains(strings.ToLower(reason(refusal)), words)
}

// reason is what GitHub says about a refusal.
func reason(refusal *github.ErrorResponse) string {
	said := []string{refusal.Message}
	for _, e := range refusal.Errors {
		if e.Message != "" && !slices.Contains(said, e.Message) {
			said = append(said, e.Message)
		}
	}
	return strings.Join(said, ": ")
}

// refused puts a refusal into words with the way out; nil stays nil.
func (g *GitHub) refused(ctx context.Context, doing string, err error) error {
	var refusal *github.ErrorResponse
	var limit *github.RateLimitError
	var abuse *github.AbuseRateLimitError
	if errors.As(err, &limit) { // the library remembers what an earlier answer said
		err = &RateLimitError{Host: g.Hostname, Until: limit.Rate.Reset.Time}
	}
	if errors.As(err, &abuse) {
		return failure("run the command again in a few minutes; it resumes", "%s: %s has rate-limited the token: %s", doing, g.Hostname, abuse.Message)
	}
	if !errors.As(err, &refusal) || refusal.Response == nil {
		if known := g.explain(ctx, doing, err); known != nil || err == nil {
			return known
		}
		return failure("check --hostname", "%s: %s is not a GitHub API: %w", doing, g.Hostname, err)
	}
	header, said := refusal.Response.Header, reason(refusal)
	switch status := refusal.Response.StatusCode; {
	case status == http.StatusUnauthorized:
		return failure("it may be wrong, expired or revoked: create a new one at "+g.settings("settings/tokens"), "%s does not accept the token (401)", g.Hostname)
	case signOn(err):
		_, page, _ := strings.Cut(header.Get(signOnHeader), "url=")
		return failure("authorise it at "+page, "%s: the organisation %s requires single sign-on, for which the token is not authorised", doing, g.Owner)
	case lacking(header) != "":
		return g.lacksScope(readGitHubToken(g.Token, header), lacking(header), doing)
	case status == http.StatusForbidden && header.Get(permissionsHeader) != "":
		return failure(fmt.Sprintf("add the permission %s for %s at %s", permissions(header), g.Hosted, g.settings("settings/personal-access-tokens")),
			"%s: the token lacks the permission %s", doing, permissions(header))
	case status == http.StatusForbidden:
		return failure("check the permissions of the token and its owner", "%s: GitHub denied the request (403): %s", doing, said)
	case status == http.StatusNotFound:
		return failure("check the names, and the permissions of the token", "%s: not found, or no permission to read it (404)", doing)
	case status >= http.StatusInternalServerError:
		return failure("try again later; see https://www.githubstatus.com for github.com", "%s: %s is unavailable (%d)", doing, g.Hostname, status)
	default:
		return failure("", "%s: GitHub denied the request (%d): %s", doing, status, said)
	}
}

// lacking returns a scope that would have been accepted where the token has
// none of those. GitHub hides with 404 what a token's scopes do not reach.
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

// permissions puts the permissions into words that would have been accepted.
// Alternatives are separated by semicolons.
func permissions(h http.Header) string {
	first, _, _ := strings.Cut(h.Get(permissionsHeader), ";")
	words := list(first)
	for i, word := range words {
		name, level, _ := strings.Cut(word, "=")
		words[i] = fmt.Sprintf("%q (%s)", name, level)
	}
	return strings.Join(words, " and ")
}
