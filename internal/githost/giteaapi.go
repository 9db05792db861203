package githost

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/fluxkit/flux/internal/hint"
)

// giteaPage is the number of entries of a page that is requested. A server may
// return fewer.
const giteaPage = 50

// giteaAPI sends the requests of an account and explains their errors.
type giteaAPI struct {
	hosted Hosted
	rest   *restClient
	// account is the account of the token, "" if the token cannot read it.
	account string
	// absent is set if the repository is known not to exist.
	absent bool
}

func newGiteaAPI(client *http.Client, hosted Hosted) *giteaAPI {
	return &giteaAPI{hosted: hosted, rest: &restClient{
		client: client, hosted: hosted, api: "Gitea", base: "/api/v1", messages: giteaMessages,
		prepare: func(r *http.Request) { r.Header.Set("Authorization", "token "+hosted.Token) },
	}}
}

// giteaMessages returns the message of a rejected request.
func giteaMessages(body []byte) []string {
	var rejected struct{ Message string }
	if json.Unmarshal(body, &rejected) != nil {
		return nil // for example a page of a proxy
	}
	return []string{rejected.Message}
}

// call sends a request to the API and decodes its response. in and out may be
// nil.
func (g *giteaAPI) call(ctx context.Context, doing, method, path string, in, out any) error {
	_, err := g.rest.call(ctx, method, path, nil, in, out)
	return g.problem(ctx, doing, err)
}

// identify reads the account of the token and returns an error if the token is
// not valid, which reading a public repository does not show.
func (g *giteaAPI) identify(ctx context.Context) error {
	const doing = "checking the token"
	var account struct{ Login string }
	_, err := g.rest.call(ctx, http.MethodGet, "/user", nil, nil, &account)
	g.account = account.Login
	switch {
	case status(err) == http.StatusForbidden && len(requiredScopes(err)) > 0:
		return nil // the token is valid, but has no permission to read its account
	case status(err) == http.StatusNotFound:
		return hint.Errorf("check --hostname: the host alone, as in --hostname=git.example.com", "%s: %s has no Gitea API", doing, g.hosted.Hostname)
	case status(err) == http.StatusBadRequest && g.hosted.Scheme == "http":
		return hint.Errorf("omit http:// in --hostname", "%s: %s does not accept HTTP requests", doing, g.hosted.Hostname)
	case err == nil && g.account == "":
		return hint.Errorf("check --hostname", "%s: %s is not a Gitea API", doing, g.hosted.Hostname)
	}
	return g.problem(ctx, doing, err)
}

// checkScopes returns an error if the token has no scope for a POST request. It
// sends an empty one, which no server carries out, because the API does not list
// the scopes of a token.
func (g *giteaAPI) checkScopes(ctx context.Context, path string) error {
	_, err := g.rest.call(ctx, http.MethodPost, path, nil, map[string]any{}, nil)
	switch status(err) {
	case http.StatusUnprocessableEntity, http.StatusBadRequest:
		return nil
	case http.StatusForbidden:
		if len(requiredScopes(err)) == 0 {
			return nil // other permissions are checked elsewhere, with better messages
		}
	}
	return g.problem(ctx, "checking the scopes of the token", err)
}

// giteaPages calls each with every entry of a list.
func giteaPages[T any](ctx context.Context, g *giteaAPI, doing, path string, query url.Values, each func(T)) error {
	q := url.Values{"limit": {strconv.Itoa(giteaPage)}}
	maps.Copy(q, query)
	seen := 0
	for page := 1; ; page++ {
		var entries []T
		q.Set("page", strconv.Itoa(page))
		header, err := g.rest.call(ctx, http.MethodGet, path, q, nil, &entries)
		if err != nil {
			return g.problem(ctx, doing, err)
		}
		for _, entry := range entries {
			each(entry)
		}
		seen += len(entries)
		total, err := strconv.Atoi(header.Get("X-Total-Count"))
		if len(entries) == 0 || err == nil && seen >= total || err != nil && len(entries) < giteaPage {
			return nil
		}
	}
}

// problem returns the error of a failed request with its remedy.
func (g *giteaAPI) problem(ctx context.Context, doing string, err error) error {
	if known := g.hosted.explain(ctx, doing, err); known != nil || err == nil {
		return known
	}
	tokens := g.hosted.HTTPURL("/user/settings/applications")
	switch code := status(err); {
	case code == 0:
		return fmt.Errorf("%s: %w", doing, err)
	case code == http.StatusUnauthorized:
		return hint.Errorf("check GITEA_TOKEN and --hostname, or create a token at "+tokens, "%s: %s does not accept the token%w", doing, g.hosted.Hostname, silent{err})
	case code == http.StatusForbidden && len(requiredScopes(err)) > 0:
		return g.lacking(err)
	case code == http.StatusForbidden && strings.Contains(message(err), "limited to public"):
		return hint.Errorf("create one that is not limited to public repositories at "+tokens, "%s: the token is for public repositories only%w", doing, silent{err})
	case code == http.StatusForbidden:
		return hint.Errorf("ask an owner for the required access", "%s: %s has no permission: %w", doing, g.who(), err)
	case code == http.StatusNotFound:
		return hint.Errorf("check the names and the permissions of the token", "%s: not found on %s, or %s has no permission to read it%w", doing, g.hosted.Hostname, g.who(), silent{err})
	case message(err) == "":
		return hint.Errorf("check --hostname: use the host of a Gitea", "%s: %s responded with %d %s%w", doing, g.hosted.Hostname, code, http.StatusText(code), silent{err})
	default:
		return hint.Errorf("check the names and the flags", "%s: %s rejected the request: %w", doing, g.hosted.Hostname, err)
	}
}

// silent is an error without text, wrapped for its status: the error that wraps
// it describes the response.
type silent struct{ error }

func (silent) Error() string { return "" }

// Unwrap returns the error.
func (s silent) Unwrap() error { return s.error }

// scopeMessage matches the message about missing scopes: the required ones and,
// of newer servers, the scopes of the token.
var scopeMessage = regexp.MustCompile(`required scope\(s\)[:,] *(?:required=)?\[([^\]]*)\](?:, *token scope=(\S*))?`)

// requiredScopes returns the scopes that a rejected request requires, nil if it
// was rejected for another reason.
func requiredScopes(err error) []string {
	found := scopeMessage.FindStringSubmatch(message(err))
	if found == nil {
		return nil
	}
	return strings.Fields(found[1])
}

// tokenScopes returns the scopes of the token of a rejected request, nil if the
// server does not list them.
func tokenScopes(err error) []string {
	found := scopeMessage.FindStringSubmatch(message(err))
	if found == nil || found[2] == "" {
		return nil
	}
	return strings.Split(found[2], ",")
}

// lacking returns the error for a token without required scopes. If the server
// lists the scopes of the token, the error names all missing ones at once.
func (g *giteaAPI) lacking(err error) error {
	asked, held, needed := requiredScopes(err), tokenScopes(err), g.scopes()
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
	return hint.Errorf(fmt.Sprintf("create one with the %s %s at %s", word, strings.Join(missing, ", "), g.hosted.HTTPURL("/user/settings/applications")),
		"the token lacks the %s %s%w", word, strings.Join(missing, " and "), silent{err})
}

// scopes returns the scopes that this bootstrap is known to require.
func (g *giteaAPI) scopes() []string {
	needed := []string{"write:repository"}
	switch {
	case !g.absent:
	case g.hosted.Personal:
		needed = append(needed, "write:user")
	default:
		needed = append(needed, "write:organization")
	}
	if len(g.hosted.Teams) > 0 {
		needed = append(needed, "read:organization")
	}
	return needed
}

// covers reports whether scopes of a token include another scope.
func covers(held []string, scope string) bool {
	_, area, _ := strings.Cut(scope, ":")
	return slices.ContainsFunc(held, func(has string) bool {
		return has == "all" || has == scope || has == "write:"+area && strings.HasPrefix(scope, "read:")
	})
}

// who returns the account for messages.
func (g *giteaAPI) who() string {
	if g.account == "" {
		return "the token's account"
	}
	return g.account
}
