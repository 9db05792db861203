package bitbucket

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"github.com/fluxkit/flux/internal/githost"
	"github.com/fluxkit/flux/internal/githost/rest"
)

// The API paths of Bitbucket Server and Data Center.
const (
	coreAPI   = "/rest/api/1.0"
	keysAPI   = "/rest/keys/1.0"
	branchAPI = "/rest/branch-permissions/2.0"
	modelAPI  = "/rest/branch-utils/1.0"
	// accountHeader is the response header with the account of a valid token.
	accountHeader = "X-Ausername"
)

func newClient(h githost.Hosted, client *http.Client) *rest.Client {
	c := rest.NewClient(client, h, "")
	c.Authorize = func(r *http.Request) {
		if r.Method != http.MethodGet {
			// Without this header the server rejects writes as forged by a website.
			r.Header.Set("X-Atlassian-Token", "no-check")
		}
	}
	return c
}

// cause explains errors specific to Bitbucket: 401 for a valid token without permissions.
func cause(api *rest.API) func(string, *rest.StatusError) error {
	return func(doing string, e *rest.StatusError) error {
		if e.Code != http.StatusUnauthorized || !authenticated(e) {
			return nil
		}
		return api.NoPermission(doing, e)
	}
}

// authenticated reports whether the token of a rejected request is valid.
func authenticated(err error) bool {
	var rejected *rest.StatusError
	return errors.As(err, &rejected) && rejected.Header.Get(accountHeader) != ""
}

type project struct {
	Key    string `json:"key"`
	Name   string `json:"name,omitempty"`
	Public bool   `json:"public,omitempty"`
	Type   string `json:"type,omitempty"`
}

type link struct {
	Href string `json:"href"`
	Name string `json:"name"`
}

type repository struct {
	ID          int     `json:"id,omitempty"`
	Slug        string  `json:"slug,omitempty"`
	Name        string  `json:"name,omitempty"`
	Description string  `json:"description,omitempty"`
	ScmID       string  `json:"scmId,omitempty"`
	Branch      string  `json:"defaultBranch,omitempty"`
	State       string  `json:"state,omitempty"`
	Archived    bool    `json:"archived,omitempty"`
	Public      bool    `json:"public"`
	Project     project `json:"project"`
	Links       struct {
		Clone []link `json:"clone,omitempty"`
	} `json:"links,omitzero"`
}

// link returns the clone URL for a protocol, "" if the protocol is disabled on the server.
func (r repository) link(name string) string {
	if i := slices.IndexFunc(r.Links.Clone, func(l link) bool { return l.Name == name }); i >= 0 {
		return r.Links.Clone[i].Href
	}
	return ""
}

func repositoryPath(key, slug string) string {
	return "/projects/" + url.PathEscape(key) + "/repos/" + url.PathEscape(slug)
}

type deployKey struct {
	Key struct {
		ID    int64  `json:"id,omitempty"`
		Text  string `json:"text"`
		Label string `json:"label"`
	} `json:"key"`
	Permission string `json:"permission"`
}

type ref struct {
	ID         string `json:"id"`
	Repository struct {
		ID      int     `json:"id,omitempty"`
		Slug    string  `json:"slug"`
		Project project `json:"project"`
	} `json:"repository"`
}

type pullRequest struct {
	ID          int    `json:"id,omitempty"`
	Title       string `json:"title"`
	Description string `json:"description"`
	From        ref    `json:"fromRef"`
	To          ref    `json:"toRef"`
	Links       struct {
		Self []link `json:"self,omitempty"`
	} `json:"links,omitzero"`
}

// call sends a request and decodes the response into out, which may be nil.
func (d *driver) call(ctx context.Context, method, path string, query url.Values, in, out any) error {
	header, err := d.client.Call(ctx, method, path, query, in, out)
	if account := header.Get(accountHeader); account != "" {
		d.API.Account = account
	}
	return err
}

// page is a page of a list.
type page[T any] struct {
	Values []T  `json:"values"`
	Last   bool `json:"isLastPage"`
	Next   int  `json:"nextPageStart"`
}

// after returns the start of the next page, 0 for none.
func (p page[T]) after() int {
	if p.Last {
		return 0
	}
	return p.Next
}

// list returns all pages of a list.
func list[T any](ctx context.Context, d *driver, path string, query url.Values) ([]T, error) {
	return rest.Pages(0, func(start int) ([]T, int, error) {
		q := url.Values{"limit": {"100"}, "start": {strconv.Itoa(start)}}
		maps.Copy(q, query)
		var listed page[T]
		err := d.call(ctx, http.MethodGet, path, q, nil, &listed)
		return listed.Values, listed.after(), err
	})
}
