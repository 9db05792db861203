// Package gitea manages repositories and pull requests of Gitea and Forgejo (https://docs.gitea.com/api/). Gitea's SDK
// is not used: it sends an additional request on each start, and its errors do not contain the response status.
package gitea

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/fluxkit/flux/internal/githost"
	"github.com/fluxkit/flux/internal/githost/rest"
	"github.com/fluxkit/flux/internal/hint"
)

// driver implements rest.Driver.
type driver struct {
	API    *rest.API
	Hosted githost.Hosted
	client *rest.Client

	// Set by Read. repo is nil if the repository does not exist or is not readable, and
	// absent is set if it is known not to exist.
	repo   *repository
	absent bool
	// present maps lower-case names to the teams with access, and all to the teams of the organization. Both are
	// nil until they are read.
	present, all map[string]team
}

// keys, teams and requests implement rest.Keys, rest.Teams and rest.Requests.
type (
	keys     struct{ of *driver }
	teams    struct{ of *driver }
	requests struct{ of *driver }
)

// repository is the API representation of a repository.
type repository struct {
	FullName        string `json:"full_name"`
	Description     string `json:"description"`
	Private         bool   `json:"private"`
	Archived        bool   `json:"archived"`
	Mirror          bool   `json:"mirror"`
	HasPullRequests bool   `json:"has_pull_requests"`
	DefaultBranch   string `json:"default_branch"`
	SSHURL          string `json:"ssh_url"`
	Permissions     struct {
		Admin bool `json:"admin"`
		Push  bool `json:"push"`
	} `json:"permissions"`
}

// New returns a repository on Gitea. The client comes from a rest.Caller.
func New(h githost.Hosted, client *http.Client) *rest.Host {
	h.Owner = strings.Trim(h.Owner, "/")
	d := &driver{Hosted: h, client: newClient(h, client)}
	d.API = &rest.API{
		Hosted: h, Name: "Gitea", Variable: "GITEA_TOKEN", Tokens: "/user/settings/applications",
		Denied: "check the names, or ask an owner for the required access", Rejected: "check the names and the flags", Cause: d.cause,
	}
	return &rest.Host{API: d.API, Driver: d, Keys: keys{d}, Teams: teams{d}, Requests: requests{d}, Words: rest.Words{
		Repository: "repository", Request: "pull request", Grant: "grant team TEAM access to REPOSITORY", UniqueTitles: true,
	}}
}

func newClient(h githost.Hosted, client *http.Client) *rest.Client {
	c := rest.NewClient(client, h, "/api/v1")
	c.Authorize = func(r *http.Request) { r.Header.Set("Authorization", "token "+h.Token) }
	return c
}

// Name implements rest.Driver. Gitea also finds a renamed repository by its old name.
func (d *driver) Name() string {
	if d.repo != nil {
		return d.repo.FullName
	}
	return d.Hosted.String()
}

// Planned implements rest.Driver.
func (d *driver) Planned() rest.Properties { return rest.Properties{Path: d.Name()} }

// use sets the repository, and returns it for rest.Host.
func (d *driver) use(r *repository) *rest.Properties {
	d.repo = r
	visibility := "public"
	if r.Private {
		visibility = "private"
	}
	return &rest.Properties{Path: r.FullName, SSH: r.SSHURL, Visibility: visibility, Description: r.Description, Branch: r.DefaultBranch}
}

// path returns the API path of the repository or a part of it.
func (d *driver) path(parts ...string) string {
	owner, name, _ := strings.Cut(d.Name(), "/")
	path := "/repos"
	for _, part := range append([]string{owner, name}, parts...) {
		path += "/" + url.PathEscape(part)
	}
	return path
}

// owner returns the API path of the repository owner.
func (d *driver) owner() string {
	if d.Hosted.Personal {
		return "/user"
	}
	return "/orgs/" + url.PathEscape(d.Hosted.Owner)
}

// get reads an object.
func (d *driver) get(ctx context.Context, path string, out any) error {
	_, err := d.client.Call(ctx, http.MethodGet, path, nil, nil, out)
	return err
}

// write sends a request that modifies data.
func (d *driver) write(ctx context.Context, method, path string, in, out any) error {
	_, err := d.client.Call(ctx, method, path, nil, in, out)
	return err
}

// pages returns all pages of a list. A server may return fewer entries than requested.
func pages[T any](ctx context.Context, d *driver, path string, query url.Values) ([]T, error) {
	const count = 50
	seen := 0
	return rest.Pages(1, func(page int) (some []T, next int, err error) {
		q := url.Values{"limit": {strconv.Itoa(count)}, "page": {strconv.Itoa(page)}}
		for name, values := range query {
			q[name] = values
		}
		header, err := d.client.Call(ctx, http.MethodGet, path, q, nil, &some)
		if err != nil {
			return nil, 0, err
		}
		seen += len(some)
		total, unknown := strconv.Atoi(header.Get("X-Total-Count"))
		if len(some) == 0 || unknown == nil && seen >= total || unknown != nil && len(some) < count {
			return some, 0, nil
		}
		return some, page + 1, nil
	})
}

// SSHAddress implements rest.Driver.
func (d *driver) SSHAddress(ctx context.Context) (string, error) {
	var found struct{ Data []repository }
	if err := d.get(ctx, "/repos/search?limit=1", &found); err != nil || len(found.Data) == 0 {
		return "", d.API.Explain(ctx, "reading the SSH address of "+d.Hosted.Hostname, err)
	}
	return found.Data[0].SSHURL, nil
}

// Create implements rest.Driver.
func (d *driver) Create(ctx context.Context) (*rest.Properties, error) {
	var created repository
	err := d.write(ctx, http.MethodPost, d.owner()+"/repos", map[string]any{
		"name": d.Hosted.Name, "description": d.Hosted.Description, "private": d.Hosted.Visibility != "public",
		"default_branch": d.Hosted.Branch,
	}, &created)
	if err != nil {
		return nil, err
	}
	return d.use(&created), nil
}

// Edit implements rest.Driver.
func (d *driver) Edit(ctx context.Context, edits rest.Edits) (*rest.Properties, error) {
	in := map[string]any{}
	if edits.Visibility != "" {
		in["private"] = edits.Visibility != "public"
	}
	if edits.Description != "" {
		in["description"] = edits.Description
	}
	edited := *d.repo
	if err := d.write(ctx, http.MethodPatch, d.path(), in, &edited); err != nil {
		return nil, err
	}
	return d.use(&edited), nil
}

// key is the API representation of a deploy key.
type key struct {
	ID       int64  `json:"id"`
	Title    string `json:"title"`
	Key      string `json:"key"`
	ReadOnly bool   `json:"read_only"`
}

// List implements rest.Keys.
func (s keys) List(ctx context.Context) ([]rest.Key, error) {
	d := s.of
	found, err := pages[key](ctx, d, d.path("keys"), nil)
	all := make([]rest.Key, len(found))
	for i, k := range found {
		all[i] = rest.Key{ID: k.ID, Title: k.Title, Public: k.Key, Writes: !k.ReadOnly}
	}
	return all, err
}

// Add implements rest.Keys.
func (s keys) Add(ctx context.Context, title, public string) error {
	d := s.of
	err := d.write(ctx, http.MethodPost, d.path("keys"), map[string]any{"title": title, "key": public, "read_only": !d.Hosted.ReadWriteKey}, nil)
	doing := fmt.Sprintf("adding the deploy key %q to %s", title, d.Name())
	switch text := rest.Message(err); {
	case rest.Status(err) != http.StatusUnprocessableEntity:
		return err
	case strings.Contains(text, "already been added"):
		return nil // added by an earlier request of this run whose response was lost
	case strings.Contains(text, "ssh is disabled"):
		return hint.Errorf("use --token-auth", "%s: %s has SSH disabled", doing, d.Hosted.Hostname)
	case strings.Contains(text, "non-deploy key"):
		return hint.Errorf("set another --private-key-file, or omit it to generate a key", "%s: the key already belongs to an account", doing)
	}
	return err
}

// Remove implements rest.Keys.
func (s keys) Remove(ctx context.Context, k rest.Key) error {
	d := s.of
	return d.write(ctx, http.MethodDelete, d.path("keys", strconv.FormatInt(k.ID, 10)), nil, nil)
}

// request is the API representation of a pull request.
type request struct {
	Number     int    `json:"number"`
	URL        string `json:"html_url"`
	Head, Base struct {
		Ref  string `json:"ref"`
		Repo struct {
			FullName string `json:"full_name"`
		} `json:"repo"`
	}
}

// Find implements rest.Requests.
func (s requests) Find(ctx context.Context, change githost.Change) (githost.Request, error) {
	d := s.of
	all, err := pages[request](ctx, d, d.path("pulls"), url.Values{"state": {"open"}})
	for _, open := range all {
		if open.Head.Ref == change.Head && open.Base.Ref == change.Base && open.Head.Repo.FullName == open.Base.Repo.FullName {
			return githost.Request{URL: open.URL, Number: open.Number}, nil
		}
	}
	return githost.Request{}, err
}

// Open implements rest.Requests.
func (s requests) Open(ctx context.Context, change githost.Change) (githost.Request, error) {
	d := s.of
	var opened request
	err := d.write(ctx, http.MethodPost, d.path("pulls"),
		map[string]any{"head": change.Head, "base": change.Base, "title": change.Title, "body": change.Body}, &opened)
	return githost.Request{URL: opened.URL, Number: opened.Number}, err
}
