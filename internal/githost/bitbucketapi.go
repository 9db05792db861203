package githost

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"github.com/fluxkit/flux/internal/hint"
)

// bitbucketAPI is the REST API of Bitbucket Server and Data Center, version
// 1.0, as far as bootstrap uses it. Its documentation is at
// https://developer.atlassian.com/server/bitbucket/rest/: "Project" for
// projects and repositories, "Permission management" for groups,
// "Authentication" for access keys (/rest/keys), "Repository" for branch
// restrictions (/rest/branch-permissions), "Pull Requests".
type bitbucketAPI struct {
	hosted Hosted
	rest   *restClient
	// account is the account of the token, "" before the first response.
	account string
}

const (
	bitbucketCore     = "/rest/api/1.0"
	bitbucketKeysAPI  = "/rest/keys/1.0"
	bitbucketBranches = "/rest/branch-permissions/2.0"
	bitbucketModel    = "/rest/branch-utils/1.0"
	// bitbucketAccount is the header with the account, if the token is valid.
	bitbucketAccount = "X-Ausername"
)

func newBitbucketAPI(client *http.Client, hosted Hosted) *bitbucketAPI {
	prepare := func(r *http.Request) {
		r.Header.Set("Authorization", "Bearer "+hosted.Token)
		if r.Method != http.MethodGet {
			// Without this header the server rejects writes as forged by a website.
			r.Header.Set("X-Atlassian-Token", "no-check")
		}
	}
	return &bitbucketAPI{hosted: hosted, rest: &restClient{client: client, hosted: hosted, api: "Bitbucket", prepare: prepare, messages: bitbucketMessages}}
}

type bitbucketProject struct {
	Key    string `json:"key"`
	Name   string `json:"name,omitempty"`
	Public bool   `json:"public,omitempty"`
	Type   string `json:"type,omitempty"`
}

type bitbucketRepository struct {
	ID          int              `json:"id,omitempty"`
	Slug        string           `json:"slug,omitempty"`
	Name        string           `json:"name,omitempty"`
	Description string           `json:"description,omitempty"`
	ScmID       string           `json:"scmId,omitempty"`
	Branch      string           `json:"defaultBranch,omitempty"`
	State       string           `json:"state,omitempty"`
	Archived    bool             `json:"archived,omitempty"`
	Public      bool             `json:"public"`
	Project     bitbucketProject `json:"project"`
	Links       struct {
		Clone []struct {
			Href string `json:"href"`
			Name string `json:"name"`
		} `json:"clone,omitempty"`
		Self []struct {
			Href string `json:"href"`
		} `json:"self,omitempty"`
	} `json:"links,omitzero"`
}

// path returns the path of the repository in the API.
func (r bitbucketRepository) path() string { return bitbucketPath(r.Project.Key, r.Slug) }

// String returns the project and the slug.
func (r bitbucketRepository) String() string { return r.Project.Key + "/" + r.Slug }

// link returns the URL to clone from over a protocol, nil if the server has it
// disabled.
func (r bitbucketRepository) link(name string) *url.URL {
	for _, l := range r.Links.Clone {
		if u, err := url.Parse(l.Href); l.Name == name && err == nil {
			return u
		}
	}
	return nil
}

func bitbucketPath(key, slug string) string {
	return "/projects/" + url.PathEscape(key) + "/repos/" + url.PathEscape(slug)
}

type bitbucketGrant struct {
	Group struct {
		Name string `json:"name"`
	} `json:"group"`
	Permission string `json:"permission"`
}

type bitbucketKey struct {
	Key struct {
		ID    int    `json:"id,omitempty"`
		Text  string `json:"text"`
		Label string `json:"label"`
	} `json:"key"`
	Permission string `json:"permission"`
}

type bitbucketRestriction struct {
	Type    string `json:"type"`
	Matcher struct {
		ID   string `json:"id"`
		Type struct {
			ID string `json:"id"`
		} `json:"type"`
	} `json:"matcher"`
	Users []struct {
		Name string `json:"name"`
	} `json:"users"`
	Groups []string `json:"groups"`
}

type bitbucketRef struct {
	ID         string         `json:"id"`
	Repository bitbucketPlace `json:"repository"`
}

// bitbucketPlace is a reference to a repository.
type bitbucketPlace struct {
	ID      int              `json:"id,omitempty"`
	Slug    string           `json:"slug"`
	Project bitbucketProject `json:"project"`
}

type bitbucketPull struct {
	ID          int          `json:"id,omitempty"`
	Title       string       `json:"title"`
	Description string       `json:"description"`
	From        bitbucketRef `json:"fromRef"`
	To          bitbucketRef `json:"toRef"`
	Links       struct {
		Self []struct {
			Href string `json:"href"`
		} `json:"self,omitempty"`
	} `json:"links,omitzero"`
}

// call sends a request and decodes the response into out, which may be nil.
func (b *bitbucketAPI) call(ctx context.Context, method, path string, query url.Values, in, out any) error {
	header, err := b.rest.call(ctx, method, path, query, in, out)
	if account := header.Get(bitbucketAccount); account != "" {
		b.account = account
	}
	return err
}

// bitbucketMessages returns the messages of a rejected request.
func bitbucketMessages(body []byte) []string {
	var rejected struct {
		Errors []struct {
			Message string `json:"message"`
		} `json:"errors"`
	}
	if json.Unmarshal(body, &rejected) != nil {
		return nil // for example a page of a proxy
	}
	var all []string
	for _, one := range rejected.Errors {
		all = append(all, one.Message)
	}
	return all
}

// authenticated reports whether the token of a rejected request is valid.
func authenticated(err error) bool {
	var rejected *statusError
	return errors.As(err, &rejected) && rejected.header.Get(bitbucketAccount) != ""
}

// bitbucketList returns all pages of a list.
func bitbucketList[T any](ctx context.Context, b *bitbucketAPI, path string, query url.Values) ([]T, error) {
	q := url.Values{"limit": {"100"}, "start": {"0"}}
	for name, values := range query {
		q[name] = values
	}
	var all []T
	for start := 0; ; {
		q.Set("start", strconv.Itoa(start))
		var page struct {
			Values []T  `json:"values"`
			Last   bool `json:"isLastPage"`
			Next   int  `json:"nextPageStart"`
		}
		if err := b.call(ctx, http.MethodGet, path, q, nil, &page); err != nil {
			return nil, err
		}
		all = append(all, page.Values...)
		if page.Last || page.Next <= start {
			return all, nil
		}
		start = page.Next
	}
}

// who returns the account for messages.
func (b *bitbucketAPI) who() string {
	if b.account == "" {
		return "the token's account"
	}
	return b.account
}

// problem returns the error of a failed request with its remedy.
func (b *bitbucketAPI) problem(ctx context.Context, doing string, err error) error {
	if known := b.hosted.explain(ctx, doing, err); known != nil || err == nil {
		return known
	}
	tokens := b.hosted.HTTPURL("/plugins/servlet/access-tokens/manage")
	switch code := status(err); {
	case code == 0:
		return fmt.Errorf("%s: %w", doing, err)
	case code == http.StatusUnauthorized && !authenticated(err):
		return hint.Errorf("check BITBUCKET_TOKEN and --hostname, or create a new token at "+tokens, "%s: %s does not accept the token, or it has expired", doing, b.hosted.Hostname)
	case code == http.StatusUnauthorized || code == http.StatusForbidden:
		return hint.Errorf("use a token with the permission repository admin, created at "+tokens+", of an account that has it", "%s: %s has no permission: %w", doing, b.who(), err)
	case message(err) == "":
		return hint.Errorf("check --hostname: use the host of a Bitbucket Server or Data Center, with its base path",
			"%s: %s responded with %d %s", doing, b.hosted.Hostname, code, http.StatusText(code))
	default:
		return hint.Errorf("check the names and the flags", "%s: Bitbucket rejected the request: %w", doing, err)
	}
}
