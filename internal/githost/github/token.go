package github

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/fluxkit/flux/internal/githost/rest"
)

// tokenKind is the kind of a token.
type tokenKind int

const (
	// fineToken is a fine-grained token. Its permissions are listed only in the response to a rejected request.
	fineToken tokenKind = iota
	// classicToken is a classic token. Each response lists its scopes.
	classicToken
	// installationToken is the token of an app, such as GitHub Actions.
	installationToken
)

// token describes a token.
type token struct {
	kind   tokenKind
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

// readToken reads the description of a token from response headers.
func readToken(secret string, h http.Header) token {
	t := token{kind: classicToken, scopes: list(h.Get(scopesHeader)), expires: expiration(h.Get(expirationHeader))}
	if h.Values(scopesHeader) == nil {
		t.kind = fineToken
	}
	if strings.HasPrefix(secret, "ghs_") {
		t.kind = installationToken
	}
	return t
}

// expiration parses a time in one of the two formats that GitHub uses. It returns zero if there is none.
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

// impliedScopes maps scopes to the scopes that they include.
var impliedScopes = map[string][]string{
	"repo":      {"public_repo"},
	"admin:org": {"write:org", "read:org"},
	"write:org": {"read:org"},
}

// has reports whether a classic token has a scope.
func (t token) has(scope string) bool {
	return slices.ContainsFunc(t.scopes, func(s string) bool { return s == scope || slices.Contains(impliedScopes[s], scope) })
}

// requiresSignOn reports whether a rejected request requires single sign-on.
func requiresSignOn(err error) bool {
	var e *rest.StatusError
	return errors.As(err, &e) && strings.HasPrefix(e.Header.Get(signOnHeader), "required")
}

// lacking returns one of the scopes that a rejected request accepts if the token has none of them, else "". GitHub
// also responds with 404 to a token without the scopes.
func lacking(h http.Header) string {
	accepted, held := list(h.Get(acceptedScopesHeader)), readToken("", h)
	if h.Values(scopesHeader) == nil || len(accepted) == 0 || slices.ContainsFunc(accepted, held.has) {
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
