package githost

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/fluxkit/flux/internal/redact"
)

const (
	// giteaPage is how many entries of a list are asked for at once. A server
	// may give fewer.
	giteaPage = 50
	// mostAnswer bounds what is read of an answer.
	mostAnswer = 16 << 20
)

// refusal is an answer of an API that is an error.
type refusal struct {
	status int
	// said is what the host says of it, without credentials.
	said string
}

func (r *refusal) Error() string {
	if r.said == "" {
		return fmt.Sprintf("%d %s", r.status, http.StatusText(r.status))
	}
	return r.said
}

// status is the status of the answer that an error is about, 0 where there was none.
func status(err error) int {
	var r *refusal
	if errors.As(err, &r) {
		return r.status
	}
	return 0
}

// said is what the host said of the error.
func said(err error) string {
	var r *refusal
	if errors.As(err, &r) {
		return r.said
	}
	return ""
}

// call sends a request to the API and reads its answer. in and out may be nil.
func (g *Gitea) call(ctx context.Context, doing, method, path string, in, out any) error {
	_, err := g.exchange(ctx, method, path, in, out)
	return g.problem(ctx, doing, err)
}

// exchange sends a request and returns the answer's header. Its errors have
// not been put into words.
func (g *Gitea) exchange(ctx context.Context, method, path string, in, out any) (http.Header, error) {
	var body io.Reader
	if in != nil {
		data, err := json.Marshal(in)
		if err != nil {
			return nil, err
		}
		body = bytes.NewReader(data)
	}
	address := g.hosted.HTTPURL("") + "api/v1" + path
	r, err := http.NewRequestWithContext(ctx, method, address, body)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Accept", "application/json")
	r.Header.Set("Authorization", "token "+g.hosted.Token)
	if in != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	answer, err := g.client.Do(r)
	if err != nil {
		return nil, err
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(answer.Body, mostAnswer))
	if err != nil {
		return nil, err
	}
	if answer.StatusCode >= http.StatusMultipleChoices {
		return nil, &refusal{answer.StatusCode, redact.Text(giteaMessage(text), g.hosted.Token)}
	}
	if out == nil || len(text) == 0 {
		return answer.Header, nil
	}
	if err := json.Unmarshal(text, out); err != nil {
		return nil, failure("check --hostname", "%s has no Gitea API at %s", g.hosted.Hostname, r.URL.Path)
	}
	return answer.Header, nil
}

// giteaMessage is what the body of a refusal says, in one line.
func giteaMessage(body []byte) string {
	var refused struct{ Message string }
	if json.Unmarshal(body, &refused) != nil {
		return "" // a page of a proxy, say
	}
	return strings.Join(strings.Fields(refused.Message), " ")
}

// pagesOf hands every entry of a list to each.
func pagesOf[T any](ctx context.Context, g *Gitea, doing, path string, each func(T)) error {
	separator := "?"
	if strings.Contains(path, "?") {
		separator = "&"
	}
	seen := 0
	for page := 1; ; page++ {
		var entries []T
		header, err := g.exchange(ctx, http.MethodGet, fmt.Sprintf("%s%spage=%d&limit=%d", path, separator, page, giteaPage), nil, &entries)
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

// problem puts a failed request into words with the way out.
func (g *Gitea) problem(ctx context.Context, doing string, err error) error {
	if err == nil {
		return nil
	}
	if known := g.hosted.explain(ctx, doing, err); known != nil {
		return known
	}
	tokens := g.hosted.HTTPURL("/user/settings/applications")
	switch code := status(err); {
	case code == 0:
		return fmt.Errorf("%s: %w", doing, err)
	case code == http.StatusUnauthorized:
		return failure("check GITEA_TOKEN and --hostname, or create a token at "+tokens, "%s: %s does not accept the token%w", doing, g.hosted.Hostname, quiet{err})
	case code == http.StatusForbidden && len(scopesAsked(err)) > 0:
		return g.lacking(err)
	case code == http.StatusForbidden && strings.Contains(said(err), "limited to public"):
		return failure("make one that is not limited to public repositories at "+tokens, "%s: the token is for public repositories only%w", doing, quiet{err})
	case code == http.StatusForbidden:
		return failure("ask an owner for the required access", "%s: %s may not: %w", doing, g.who(), err)
	case code == http.StatusNotFound:
		return failure("check the permissions of the token", "%s: %s does not find it, or does not show it to %s%w", doing, g.hosted.Hostname, g.who(), quiet{err})
	case code >= http.StatusInternalServerError:
		return failure("try again later", "%s: %s answers %d %s%w", doing, g.hosted.Hostname, code, http.StatusText(code), quiet{err})
	default:
		return fmt.Errorf("%s: %s refuses: %w", doing, g.hosted.Hostname, err)
	}
}

// quiet is an error that is kept for its status: its text has been told.
type quiet struct{ error }

func (quiet) Error() string { return "" }

// Unwrap returns the error.
func (q quiet) Unwrap() error { return q.error }

// scopeRefusal is how servers name the scopes that a request needs; newer ones
// add those that the token has.
var scopeRefusal = regexp.MustCompile(`required scope\(s\)[:,] *(?:required=)?\[([^\]]*)\](?:, *token scope=(\S*))?`)

// scopesAsked are the scopes without which a request was refused, nil where it
// was refused for something else.
func scopesAsked(err error) []string {
	found := scopeRefusal.FindStringSubmatch(said(err))
	if found == nil {
		return nil
	}
	return strings.Fields(found[1])
}

// scopesHeld are the scopes of the token, nil where the server does not say.
func scopesHeld(err error) []string {
	found := scopeRefusal.FindStringSubmatch(said(err))
	if found == nil || found[2] == "" {
		return nil
	}
	return strings.Split(found[2], ",")
}

// lacking is the error of a token without scopes that it needs. Where the
// server tells what it has, all that is missing is named at once.
func (g *Gitea) lacking(err error) error {
	asked, held, needed := scopesAsked(err), scopesHeld(err), g.scopes()
	var missing []string
	for _, scope := range slices.Concat(needed, asked) {
		_, area, _ := strings.Cut(scope, ":")
		known := held != nil || slices.ContainsFunc(asked, func(a string) bool { return strings.HasSuffix(a, ":"+area) })
		// A scope to write contains the one to read.
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
	return failure(fmt.Sprintf("make one with the %s %s at %s", word, strings.Join(missing, ", "), g.hosted.HTTPURL("/user/settings/applications")),
		"the token lacks the %s %s%w", word, strings.Join(missing, " and "), quiet{err})
}

// scopes are the scopes that this bootstrap needs, as far as is known.
func (g *Gitea) scopes() []string {
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

// covers tells whether the scopes that a token has include another.
func covers(held []string, scope string) bool {
	_, area, _ := strings.Cut(scope, ":")
	return slices.ContainsFunc(held, func(has string) bool {
		return has == "all" || has == scope || has == "write:"+area && strings.HasPrefix(scope, "read:")
	})
}
