package gitea

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/fluxkit/flux/internal/githost/rest"
	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/internal/lazy"
)

// identify reads the account of the token and returns an error if the token is
// invalid. Reading a public repository does not verify the token.
func (d *driver) identify(ctx context.Context) error {
	const doing = "checking the token"
	var account struct{ Login string }
	err := d.get(ctx, "/user", &account)
	d.API.Account = account.Login
	switch {
	case rest.Denied(err) && len(requiredScopes(err)) > 0:
		return nil // the token is valid, but has no permission to read its account
	case rest.Missing(err):
		return hint.Errorf("set --hostname to the hostname only, as in --hostname=git.example.com", "%s: %s has no Gitea API", doing, d.Hosted.Hostname)
	case rest.Status(err) == http.StatusBadRequest && d.Hosted.Scheme == "http":
		return hint.Errorf("omit http:// in --hostname", "%s: %s does not accept HTTP requests", doing, d.Hosted.Hostname)
	case err == nil && d.API.Account == "":
		return hint.Errorf("check --hostname", "%s: %s is not a Gitea API", doing, d.Hosted.Hostname)
	}
	return d.API.Explain(ctx, doing, err)
}

// checkScopes returns an error if the token has no scope for a POST request. It sends an empty request, which no
// server accepts, because the API provides no list of a token's scopes.
func (d *driver) checkScopes(ctx context.Context, path string) error {
	err := d.write(ctx, http.MethodPost, path, map[string]any{}, nil)
	switch rest.Status(err) {
	case http.StatusUnprocessableEntity, http.StatusBadRequest:
		return nil
	case http.StatusForbidden:
		if len(requiredScopes(err)) == 0 {
			return nil // other permissions are checked elsewhere with better error messages
		}
	}
	return err
}

// cause explains errors specific to Gitea.
func (d *driver) cause(doing string, e *rest.StatusError) error {
	switch {
	case e.Code != http.StatusForbidden:
		return nil
	case len(requiredScopes(e)) > 0:
		return d.lacking(e)
	case strings.Contains(rest.Message(e), "limited to public"):
		return hint.Errorf("create a token that is not limited to public repositories at "+d.API.TokenPage(), "%s: the token is for public repositories only", doing)
	}
	return nil
}

// scopeMessage matches the message about missing scopes: the required scopes
// and, on newer servers, the scopes of the token.
var scopeMessage = lazy.Regexp(`required scope\(s\)[:,] *(?:required=)?\[([^\]]*)\](?:, *token scope=(\S*))?`)

// requiredScopes returns the scopes that a rejected request requires, nil if it
// was rejected for another reason.
func requiredScopes(err error) []string {
	found := scopeMessage().FindStringSubmatch(rest.Message(err))
	if found == nil {
		return nil
	}
	return strings.Fields(found[1])
}

// tokenScopes returns the token's scopes for a rejected request, nil if the server does not list them.
func tokenScopes(err error) []string {
	found := scopeMessage().FindStringSubmatch(rest.Message(err))
	if found == nil || found[2] == "" {
		return nil
	}
	return strings.Split(found[2], ",")
}

// lacking returns the error for a token without required scopes. If the server
// lists the scopes of the token, the error lists all missing scopes.
func (d *driver) lacking(err error) error {
	asked, held, needed := requiredScopes(err), tokenScopes(err), d.scopes()
	var missing []string
	for _, scope := range slices.Concat(needed, asked) {
		_, area, _ := strings.Cut(scope, ":")
		known := held != nil || slices.ContainsFunc(asked, func(a string) bool { return strings.HasSuffix(a, ":"+area) })
		// The write scope includes the read scope.
		contained := scope != "write:"+area && slices.Contains(needed, "write:"+area)
		if known && !contained && !covers(held, scope) {
			missing = append(missing, scope)
		}
	}
	slices.Sort(missing)
	missing = slices.Compact(missing)
	word := "scope"
	if len(missing) > 1 {
		word = "scopes"
	}
	return hint.Errorf(fmt.Sprintf("create a token with the %s %s at %s", word, strings.Join(missing, ", "), d.API.TokenPage()),
		"the token is missing the %s %s", word, strings.Join(missing, " and "))
}

// scopes returns the scopes that this bootstrap is known to require.
func (d *driver) scopes() []string {
	needed := []string{"write:repository"}
	switch {
	case !d.absent:
	case d.Hosted.Personal:
		needed = append(needed, "write:user")
	default:
		needed = append(needed, "write:organization")
	}
	if len(d.Hosted.Teams) > 0 {
		needed = append(needed, "read:organization")
	}
	return needed
}

// covers reports whether the scopes of a token include the given scope.
func covers(held []string, scope string) bool {
	_, area, _ := strings.Cut(scope, ":")
	return slices.ContainsFunc(held, func(has string) bool {
		return has == "all" || has == scope || has == "write:"+area && strings.HasPrefix(scope, "read:")
	})
}
