package githost

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/google/go-github/v60/github"

	"github.com/fluxkit/flux/internal/secrets/redact"
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
