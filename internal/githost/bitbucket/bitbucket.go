// Package bitbucket manages repositories of Bitbucket Server and Data Center, and pull requests on Bitbucket Server,
// Data Center and Cloud. The API documentation is at https://developer.atlassian.com/server/bitbucket/rest/:
// "Project" for projects and repositories, "Permission management" for groups, "Authentication" for access keys
// (/rest/keys), "Repository" for branch restrictions (/rest/branch-permissions), "Pull Requests".
package bitbucket

import (
	"cmp"
	"context"
	"net"
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

	// Set by Read.
	project project
	// remote is the repository, nil if it does not exist.
	remote *repository
	// access maps lower-case group names to permissions. It is nil until they are read.
	access map[string]string
}

// keys, teams and requests implement rest.Keys, rest.Teams and rest.Requests.
type (
	keys     struct{ of *driver }
	teams    struct{ of *driver }
	requests struct{ of *driver }
)

// New returns a repository on Bitbucket Server. The client comes from a rest.Caller.
func New(h githost.Hosted, client *http.Client) *rest.Host {
	h.Owner = strings.Trim(h.Owner, "/")
	h.Personal = h.Personal || strings.HasPrefix(h.Owner, "~")
	d := &driver{Hosted: h, client: newClient(h, client)}
	d.API = &rest.API{
		Hosted: h, Name: "Bitbucket", Variable: "BITBUCKET_TOKEN", Tokens: "/plugins/servlet/access-tokens/manage", Rejected: "check the names and the flags",
	}
	d.API.Denied = "use a token with repository admin permission from an account that has this permission; create one at " + d.API.TokenPage()
	d.API.Cause = cause(d.API)
	return &rest.Host{API: d.API, Driver: d, Keys: keys{d}, Teams: teams{d}, Requests: requests{d}, Words: rest.Words{
		Repository: "repository", Request: "pull request", Grant: "grant group TEAM the permission PERMISSION on REPOSITORY",
		Regrant: "change the permission of group TEAM on REPOSITORY from HAD to PERMISSION",
	}}
}

// Permissions returns the permissions that groups can have.
func Permissions() []string { return []string{"read", "write", "admin"} }

// permission returns the API name of a permission.
func permission(word string) string { return "REPO_" + strings.ToUpper(word) }

// slug returns the URL form of a repository name.
func slug(name string) string {
	return strings.Trim(strings.Map(func(r rune) rune {
		switch {
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '-', r == '_', r == '.':
			return r
		default:
			return '-'
		}
	}, name), "-")
}

// Name implements rest.Driver.
func (d *driver) Name() string {
	return cmp.Or(d.project.Key, d.Hosted.Owner) + "/" + slug(d.Hosted.Name)
}

// path returns the path of the repository in an API.
func (d *driver) path(api string, parts ...string) string {
	return strings.Join(append([]string{api + repositoryPath(d.project.Key, slug(d.Hosted.Name))}, parts...), "/")
}

// Planned implements rest.Driver. Bitbucket does not serve SSH on the default port.
func (d *driver) Planned() rest.Properties {
	path := strings.ToLower(d.Name()) + ".git"
	host := (&url.URL{Host: d.Hosted.Hostname}).Hostname()
	return rest.Properties{Path: path, HTTPPath: "/scm/" + path, SSH: "ssh://git@" + net.JoinHostPort(host, "7999")}
}

// use sets the repository, and returns it for rest.Host with its addresses.
func (d *driver) use(r *repository) (*rest.Properties, error) {
	d.remote = r
	found := &rest.Properties{
		Path: d.Planned().Path, HTTPPath: d.Planned().HTTPPath, SSH: r.link("ssh"),
		Visibility: visibility(r.Public), Description: r.Description, Branch: r.Branch,
	}
	if u, err := url.Parse(found.SSH); err == nil && found.SSH != "" {
		found.Path = strings.TrimPrefix(u.Path, "/")
	}
	u, err := url.Parse(r.link("http"))
	switch {
	case err != nil || u.Path == "":
		return nil, hint.Errorf("ask an administrator to enable it", "Git over HTTP is disabled on %s", d.Hosted.Hostname)
	case found.SSH == "" && !d.Hosted.TokenAuth:
		return nil, hint.Errorf("use --token-auth, or ask an administrator to enable SSH", "Git over SSH is disabled on %s", d.Hosted.Hostname)
	}
	// The host that is configured on the server may not be reachable from here.
	found.HTTPPath = strings.TrimPrefix(strings.Trim(u.Path, "/"), strings.Trim(d.Hosted.BasePath, "/")+"/")
	return found, nil
}

func visibility(public bool) string {
	if public {
		return "public"
	}
	return "private"
}

// SSHAddress implements rest.Driver.
func (d *driver) SSHAddress(ctx context.Context) (string, error) {
	var found page[repository]
	err := d.call(ctx, http.MethodGet, coreAPI+"/repos", url.Values{"limit": {"1"}}, nil, &found)
	if err != nil || len(found.Values) == 0 {
		return "", d.API.Explain(ctx, "reading the SSH address", err)
	}
	return found.Values[0].link("ssh"), nil
}

// Create implements rest.Driver.
func (d *driver) Create(ctx context.Context) (*rest.Properties, error) {
	wanted := repository{
		Name: d.Hosted.Name, ScmID: "git", Public: d.Hosted.Visibility == "public",
		Description: d.Hosted.Description, Branch: d.Hosted.Branch, Project: project{Key: d.project.Key},
	}
	var created repository
	if err := d.call(ctx, http.MethodPost, coreAPI+"/projects/"+url.PathEscape(d.project.Key)+"/repos", nil, wanted, &created); err != nil {
		return nil, err
	}
	return d.use(&created)
}

// Edit implements rest.Driver.
func (d *driver) Edit(ctx context.Context, edits rest.Edits) (*rest.Properties, error) {
	wanted := repository{
		Name: d.remote.Name, Public: cmp.Or(edits.Visibility, visibility(d.remote.Public)) == "public",
		Description: cmp.Or(edits.Description, d.remote.Description), Project: project{Key: d.project.Key},
	}
	var edited repository
	if err := d.call(ctx, http.MethodPut, d.path(coreAPI), nil, wanted, &edited); err != nil {
		return nil, err
	}
	return d.use(&edited)
}

// List implements rest.Keys. Bitbucket calls them access keys.
func (s keys) List(ctx context.Context) ([]rest.Key, error) {
	d := s.of
	found, err := list[deployKey](ctx, d, d.path(keysAPI, "ssh"), nil)
	all := make([]rest.Key, len(found))
	for i, k := range found {
		all[i] = rest.Key{ID: k.Key.ID, Title: k.Key.Label, Public: k.Key.Text, Writes: k.Permission != permission("read")}
	}
	return all, err
}

// permission returns the permission that the deploy key requires.
func (s keys) permission() string {
	d := s.of
	if d.Hosted.ReadWriteKey {
		return permission("write")
	}
	return permission("read")
}

// Add implements rest.Keys.
func (s keys) Add(ctx context.Context, title, public string) error {
	d := s.of
	wanted := deployKey{Permission: s.permission()}
	wanted.Key.Text, wanted.Key.Label = public, title
	err := d.call(ctx, http.MethodPost, d.path(keysAPI, "ssh"), nil, wanted, nil)
	if rest.Exists(err) {
		return hint.Errorf("omit --private-key-file to generate a key, or set another key",
			"adding an access key to repository %s: the key already belongs to a user or to the project: %w", d.Name(), err)
	}
	return err
}

// Permit implements rest.KeyPermitter.
func (s keys) Permit(ctx context.Context, key rest.Key) error {
	d := s.of
	return d.call(ctx, http.MethodPut, d.path(keysAPI, "ssh", strconv.FormatInt(key.ID, 10), "permission", s.permission()), nil, nil, nil)
}

// Remove implements rest.Keys.
func (s keys) Remove(ctx context.Context, key rest.Key) error {
	d := s.of
	return d.call(ctx, http.MethodDelete, d.path(keysAPI, "ssh", strconv.FormatInt(key.ID, 10)), nil, nil, nil)
}

// ref returns a branch of the repository.
func (d *driver) ref(branch string) (r ref) {
	r.ID, r.Repository.Slug, r.Repository.Project.Key = "refs/heads/"+branch, slug(d.Hosted.Name), d.project.Key
	return r
}

func (p pullRequest) request() githost.Request {
	r := githost.Request{Number: p.ID}
	if len(p.Links.Self) > 0 {
		r.URL = p.Links.Self[0].Href
	}
	return r
}

// Find implements rest.Requests.
func (s requests) Find(ctx context.Context, change githost.Change) (githost.Request, error) {
	d := s.of
	open, err := list[pullRequest](ctx, d, d.path(coreAPI, "pull-requests"),
		url.Values{"state": {"OPEN"}, "direction": {"OUTGOING"}, "at": {d.ref(change.Head).ID}})
	for _, p := range open {
		if p.To.ID == d.ref(change.Base).ID && p.To.Repository.ID == d.remote.ID {
			return p.request(), nil
		}
	}
	return githost.Request{}, err
}

// Open implements rest.Requests.
func (s requests) Open(ctx context.Context, change githost.Change) (githost.Request, error) {
	d := s.of
	wanted := pullRequest{Title: change.Title, Description: change.Body, From: d.ref(change.Head), To: d.ref(change.Base)}
	var opened pullRequest
	err := d.call(ctx, http.MethodPost, d.path(coreAPI, "pull-requests"), nil, wanted, &opened)
	return opened.request(), err
}

// Access implements rest.Teams. Teams are groups.
func (s teams) Access(ctx context.Context, team githost.Team) (string, error) {
	d := s.of
	if err := s.read(ctx); err != nil {
		return "", err
	}
	if had := d.access[strings.ToLower(team.Name)]; had != "" {
		return strings.ToLower(strings.TrimPrefix(had, "REPO_")), nil
	}
	return "", s.exists(ctx, team.Name)
}

// read reads the permissions of groups.
func (s teams) read(ctx context.Context) error {
	d := s.of
	if d.access != nil || d.remote == nil {
		return nil
	}
	type grant struct {
		Group      struct{ Name string }
		Permission string
	}
	grants, err := list[grant](ctx, d, d.path(coreAPI, "permissions", "groups"), nil)
	d.access = map[string]string{}
	for _, g := range grants {
		d.access[strings.ToLower(g.Group.Name)] = g.Permission
	}
	return d.API.Explain(ctx, "listing the groups with access to repository "+d.Name(), err)
}

// Grant implements rest.Teams.
func (s teams) Grant(ctx context.Context, team githost.Team, _ string) error {
	d := s.of
	return d.call(ctx, http.MethodPut, d.path(coreAPI, "permissions", "groups"),
		url.Values{"name": {team.Name}, "permission": {permission(team.Permission)}}, nil, nil)
}

// CheckChanges implements rest.Driver. CheckUse has already checked the permissions.
func (d *driver) CheckChanges(context.Context, githost.Want, []string) error { return nil }

// exists returns an error if a group does not exist.
func (s teams) exists(ctx context.Context, name string) error {
	d := s.of
	groups, err := list[string](ctx, d, coreAPI+"/groups", url.Values{"filter": {name}})
	if err != nil {
		return d.API.Explain(ctx, "finding group "+name, err)
	}
	for _, group := range groups {
		if strings.EqualFold(group, name) {
			return nil
		}
	}
	return hint.Errorf("check --group, or ask an administrator to create it", "group %q does not exist", name)
}
