package githost

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// bitbucketAPI is the REST API of Bitbucket Server and Data Center, version
// 1.0, as far as bootstrap uses it. Its pages are at
// https://developer.atlassian.com/server/bitbucket/rest/: "Project" for
// projects and repositories, "Permission management" for groups,
// "Authentication" for access keys (/rest/keys), "Repository" for branch
// restrictions (/rest/branch-permissions), "Pull Requests".
type bitbucketAPI struct {
	client *http.Client
	hosted Hosted
	// account is whom authenticated as, as the last answer told.
	account string
}

const (
	bitbucketCore     = "/rest/api/1.0"
	bitbucketKeys     = "/rest/keys/1.0"
	bitbucketBranches = "/rest/branch-permissions/2.0"
	bitbucketModel    = "/rest/branch-utils/1.0"
	// mostBitbucket bounds how much of an answer is read.
	mostBitbucket = 8 << 20
)

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

// path is where the API has a repository.
func (r bitbucketRepository) path() string { return bitbucketPath(r.Project.Key, r.Slug) }

// String names a repository as people do.
func (r bitbucketRepository) String() string { return r.Project.Key + "/" + r.Slug }

// link returns one of the addresses to clone from, nil where that way is
// switched off.
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

// bitbucketPlace is a repository where another object refers to it.
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

// bitbucketError is a refusal.
type bitbucketError struct {
	status int
	// known says that the server knows whom authenticated as.
	known bool
	// messages are what it says, exception is its name for the first of them.
	messages  []string
	exception string
}

func (e *bitbucketError) Error() string {
	if len(e.messages) == 0 {
		return fmt.Sprintf("the answer was %d %s", e.status, http.StatusText(e.status))
	}
	return strings.Join(e.messages, "; ")
}

// bitbucketStatus is the status of a refusal, 0 where there is none.
func bitbucketStatus(err error) int {
	var refusal *bitbucketError
	if errors.As(err, &refusal) {
		return refusal.status
	}
	return 0
}

// call sends a request and reads the answer into out, which may be nil.
func (b *bitbucketAPI) call(ctx context.Context, method, path string, query url.Values, in, out any) error {
	var body io.Reader
	if in != nil {
		text, err := json.Marshal(in)
		if err != nil {
			return fmt.Errorf("writing a request: %w", err)
		}
		body = bytes.NewReader(text)
	}
	address := b.address(path)
	if len(query) > 0 {
		address += "?" + query.Encode()
	}
	r, err := http.NewRequestWithContext(ctx, method, address, body)
	if err != nil {
		return err
	}
	r.Header.Set("Authorization", "Bearer "+b.hosted.Token)
	r.Header.Set("Accept", "application/json")
	if in != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	if method != http.MethodGet {
		// Without it the server takes the request for one that a browser was tricked into.
		r.Header.Set("X-Atlassian-Token", "no-check")
	}
	answer, err := b.client.Do(r)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }() // it has been read
	text, err := io.ReadAll(io.LimitReader(answer.Body, mostBitbucket))
	if err != nil {
		return fmt.Errorf("reading the answer: %w", err)
	}
	account := answer.Header.Get("X-Ausername")
	if account != "" {
		b.account = account
	}
	if answer.StatusCode >= http.StatusMultipleChoices {
		return bitbucketRefusal(answer.StatusCode, account != "", text)
	}
	if out == nil || len(text) == 0 {
		return nil
	}
	if err := json.Unmarshal(text, out); err != nil {
		return failure("check --hostname: must be the address of a Bitbucket Server or Data Center, with its base path",
			"%s is not a Bitbucket API", b.hosted.Hostname)
	}
	return nil
}

// address is where the API has a path, whose parts are escaped already.
func (b *bitbucketAPI) address(path string) string {
	return strings.TrimSuffix(b.hosted.HTTPURL("/"), "/") + path
}

func bitbucketRefusal(status int, known bool, text []byte) error {
	var body struct {
		Errors []struct {
			Message   string `json:"message"`
			Exception string `json:"exceptionName"`
		} `json:"errors"`
	}
	e := &bitbucketError{status: status, known: known}
	if json.Unmarshal(text, &body) != nil {
		return e // a page of a proxy, say
	}
	for i, one := range body.Errors {
		e.messages = append(e.messages, one.Message)
		if i == 0 {
			e.exception = one.Exception[strings.LastIndexByte(one.Exception, '.')+1:]
		}
	}
	return e
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
