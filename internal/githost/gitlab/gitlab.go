// Package gitlab manages projects and merge requests of gitlab.com and self-managed GitLab servers
// (https://docs.gitlab.com/api/rest/).
package gitlab

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/xanzy/go-gitlab"

	"github.com/fluxkit/flux/internal/githost"
	"github.com/fluxkit/flux/internal/githost/rest"
	"github.com/fluxkit/flux/internal/hint"
)

// driver implements rest.Driver.
type driver struct {
	API    *rest.API
	Hosted githost.Hosted
	client *gitlab.Client //nolint:staticcheck // deprecated, and required by the project

	// Set by Read.
	account account
	// project is nil if it does not exist.
	project *gitlab.Project
	// namespace is the group of a new project, nil for the namespace of the account.
	namespace *gitlab.Group
}

// keys, teams and requests implement rest.Keys, rest.Teams and rest.Requests.
type (
	keys     struct{ of *driver }
	teams    struct{ of *driver }
	requests struct{ of *driver }
)

// withTokens is a repository on GitLab. It implements githost.Tokener, because GitLab can create deploy tokens.
type withTokens struct {
	*rest.Host
	driver *driver
}

// New returns a project on GitLab. The client comes from a rest.Caller.
func New(h githost.Hosted, client *http.Client) (githost.Host, error) {
	h.Owner = strings.Trim(h.Owner, "/")
	h.Teams = slices.Clone(h.Teams)
	for i, team := range h.Teams {
		level := levelOf(team.Permission)
		if level == gitlab.NoPermissions {
			return nil, hint.Errorf("use one of "+strings.Join(Permissions()[:5], ", "), "invalid permission %q for GitLab group %s", team.Permission, team.Name)
		}
		h.Teams[i].Permission = roleOf(level)
	}
	// All kinds of tokens can be used as bearer tokens, and Go does not forward
	// the Authorization header to another host.
	lab, err := gitlab.NewOAuthClient(h.Token, gitlab.WithHTTPClient(client), gitlab.WithBaseURL(h.HTTPURL("/api/v4")), //nolint:staticcheck // as above
		gitlab.WithoutRetries(), gitlab.WithCustomLimiter(unlimited{}))
	if err != nil {
		return nil, fmt.Errorf("invalid GitLab URL: %w", err)
	}
	d := &driver{Hosted: h, client: lab}
	d.API = &rest.API{
		Hosted: h, Name: "GitLab", Variable: "GITLAB_TOKEN", Tokens: "/-/user_settings/personal_access_tokens",
		Denied: "check the names, or ask an owner for the required role", Rejected: "check the names and the flags", Cause: d.cause,
	}
	return withTokens{&rest.Host{API: d.API, Driver: d, Keys: keys{d}, Teams: teams{d}, Requests: requests{d}, Words: rest.Words{
		Repository: "project", Request: "merge request", Grant: "grant group TEAM the role PERMISSION in REPOSITORY",
		Regrant: "change the role of group TEAM in REPOSITORY from HAD to PERMISSION",
	}}, d}, nil
}

// unlimited is a rate limiter without a limit, because the transport handles the server's rate limits.
type unlimited struct{}

// Wait implements gitlab.RateLimiter.
func (unlimited) Wait(ctx context.Context) error { return ctx.Err() }

// roles lists the names of the access levels, the lowest first.
var roles = []struct {
	word  string
	level gitlab.AccessLevelValue
}{
	{"Guest", gitlab.GuestPermissions}, {"Reporter", gitlab.ReporterPermissions}, {"Developer", gitlab.DeveloperPermissions},
	{"Maintainer", gitlab.MaintainerPermissions}, {"Owner", gitlab.OwnerPermissions}, {"Administrator", gitlab.AdminPermissions},
}

// Permissions returns the group permissions: GitLab's roles and the equivalent permissions of GitHub.
func Permissions() []string {
	return []string{"guest", "reporter", "developer", "maintainer", "owner", "pull", "triage", "push", "maintain", "admin"}
}

// levelOf returns the access level of a permission, 0 for unknown permissions.
func levelOf(permission string) gitlab.AccessLevelValue {
	i := slices.Index(Permissions(), strings.ToLower(permission))
	if i < 0 {
		return gitlab.NoPermissions
	}
	return roles[i%5].level
}

// roleOf returns the name of an access level.
func roleOf(level gitlab.AccessLevelValue) string {
	word := "no role"
	for _, role := range roles {
		if level >= role.level {
			word = role.word
		}
	}
	return word
}

// Name implements rest.Driver.
func (d *driver) Name() string {
	if d.project != nil {
		return d.project.PathWithNamespace
	}
	return d.Hosted.String()
}

// Planned implements rest.Driver.
func (d *driver) Planned() rest.Properties { return rest.Properties{Path: d.Hosted.String()} }

// use sets the project, and returns it for rest.Host.
func (d *driver) use(p *gitlab.Project) *rest.Properties {
	d.project = p
	return &rest.Properties{
		Path: p.PathWithNamespace, SSH: p.SSHURLToRepo, Visibility: string(p.Visibility), Description: p.Description, Branch: p.DefaultBranch,
	}
}

// SSHAddress implements rest.Driver. Only project URLs contain the SSH host.
func (d *driver) SSHAddress(ctx context.Context) (string, error) {
	options := &gitlab.ListProjectsOptions{ListOptions: gitlab.ListOptions{PerPage: 1}, Simple: gitlab.Ptr(true)}
	others, err := call(d.client.Projects.ListProjects(options, gitlab.WithContext(ctx)))
	if err != nil || len(others) == 0 {
		return "", err
	}
	return others[0].SSHURLToRepo, nil
}

// Create implements rest.Driver.
func (d *driver) Create(ctx context.Context) (*rest.Properties, error) {
	visibility := gitlab.VisibilityValue(d.Hosted.Visibility)
	options := &gitlab.CreateProjectOptions{Name: &d.Hosted.Name, Path: &d.Hosted.Name, Visibility: &visibility}
	if d.Hosted.Description != "" {
		options.Description = &d.Hosted.Description
	}
	if d.namespace != nil {
		options.NamespaceID = &d.namespace.ID
	}
	created, err := call(d.client.Projects.CreateProject(options, gitlab.WithContext(ctx)))
	if err != nil {
		return nil, err
	}
	return d.use(created), nil
}

// Edit implements rest.Driver.
func (d *driver) Edit(ctx context.Context, edits rest.Edits) (*rest.Properties, error) {
	options := &gitlab.EditProjectOptions{}
	if edits.Visibility != "" {
		options.Visibility = gitlab.Ptr(gitlab.VisibilityValue(edits.Visibility))
	}
	if edits.Description != "" {
		options.Description = &edits.Description
	}
	edited, err := call(d.client.Projects.EditProject(d.project.ID, options, gitlab.WithContext(ctx)))
	if err != nil {
		return nil, err
	}
	return d.use(edited), nil
}

// List implements rest.Keys.
func (s keys) List(ctx context.Context) ([]rest.Key, error) {
	d := s.of
	var now time.Time // GitLab's clock, by which keys expire
	present, err := pages(func(page gitlab.ListOptions) ([]*gitlab.ProjectDeployKey, *gitlab.Response, error) {
		options := gitlab.ListProjectDeployKeysOptions(page)
		keys, response, err := d.client.DeployKeys.ListProjectDeployKeys(d.project.ID, &options, gitlab.WithContext(ctx))
		if response != nil {
			if at, dateErr := http.ParseTime(response.Header.Get("Date")); dateErr == nil {
				now = at
			}
		}
		return keys, response, err
	})
	all := make([]rest.Key, len(present))
	for i, k := range present {
		all[i] = rest.Key{ID: int64(k.ID), Title: k.Title, Public: k.Key, Writes: k.CanPush}
		all[i].Expired = k.ExpiresAt != nil && k.ExpiresAt.Before(now) // the expiry of a key cannot be changed
	}
	return all, err
}

// Add implements rest.Keys. GitLab has a single object for a key that several projects use, so a key that another
// project of the account already uses is enabled for this project.
func (s keys) Add(ctx context.Context, title, public string) error {
	d := s.of
	options := &gitlab.AddDeployKeyOptions{Title: &title, Key: &public, CanPush: &d.Hosted.ReadWriteKey}
	added, err := call(d.client.DeployKeys.AddDeployKey(d.project.ID, options, gitlab.WithContext(ctx)))
	switch {
	case rest.Exists(err):
		return hint.Errorf("omit --private-key-file to generate a key, or set another key",
			"adding a deploy key to project %s: the key already belongs to a user, or to a project that %s cannot read", d.Name(), d.API.Who())
	case err == nil && added.CanPush != d.Hosted.ReadWriteKey:
		return s.Permit(ctx, rest.Key{ID: int64(added.ID)})
	}
	return err
}

// Permit implements rest.KeyPermitter.
func (s keys) Permit(ctx context.Context, key rest.Key) error {
	d := s.of
	options := &gitlab.UpdateDeployKeyOptions{CanPush: &d.Hosted.ReadWriteKey}
	_, err := call(d.client.DeployKeys.UpdateDeployKey(d.project.ID, int(key.ID), options, gitlab.WithContext(ctx)))
	return err
}

// Remove implements rest.Keys.
func (s keys) Remove(ctx context.Context, key rest.Key) error {
	d := s.of
	_, err := d.client.DeployKeys.DeleteDeployKey(d.project.ID, int(key.ID), gitlab.WithContext(ctx))
	return rejected(err)
}

// Find implements rest.Requests.
func (s requests) Find(ctx context.Context, change githost.Change) (githost.Request, error) {
	d := s.of
	open, err := call(d.client.MergeRequests.ListProjectMergeRequests(d.project.ID, &gitlab.ListProjectMergeRequestsOptions{
		State: gitlab.Ptr("opened"), SourceBranch: &change.Head, TargetBranch: &change.Base,
	}, gitlab.WithContext(ctx)))
	for _, m := range open {
		if m.SourceProjectID == d.project.ID { // not from a fork
			return githost.Request{URL: m.WebURL, Number: m.IID}, nil
		}
	}
	return githost.Request{}, err
}

// Open implements rest.Requests.
func (s requests) Open(ctx context.Context, change githost.Change) (githost.Request, error) {
	d := s.of
	opened, err := call(d.client.MergeRequests.CreateMergeRequest(d.project.ID, &gitlab.CreateMergeRequestOptions{
		SourceBranch: &change.Head, TargetBranch: &change.Base, Title: &change.Title, Description: &change.Body,
		RemoveSourceBranch: gitlab.Ptr(true),
	}, gitlab.WithContext(ctx)))
	if err != nil {
		return githost.Request{}, err
	}
	return githost.Request{URL: opened.WebURL, Number: opened.IID}, nil
}

// Access implements rest.Teams. Teams are groups.
func (s teams) Access(ctx context.Context, team githost.Team) (string, error) {
	d := s.of
	group, err := d.group(ctx, team.Name)
	switch {
	case err != nil:
		return "", err
	case group == nil:
		return "", hint.Errorf("check --team, and use full paths of subgroups, as in acme/platform",
			"group %s not found, or the token of %s cannot read it", team.Name, d.account.name)
	case strings.HasPrefix(strings.ToLower(d.Hosted.Owner)+"/", strings.ToLower(group.FullPath)+"/"):
		return "", hint.Errorf("omit --team="+team.Name, "the project is in group %s, whose members already have access", group.FullPath)
	case d.project == nil && d.namespace != nil && d.namespace.ShareWithGroupLock:
		return "", hint.Errorf("omit --team, or ask an owner of the group to allow sharing", "group %s does not allow sharing projects with other groups", d.namespace.FullPath)
	case d.project == nil:
		return "", nil
	}
	for _, s := range d.project.SharedWithGroups {
		if s.GroupID == group.ID {
			return roleOf(gitlab.AccessLevelValue(s.GroupAccessLevel)), nil
		}
	}
	return "", nil
}

// Grant implements rest.Teams. The API cannot change an access level, so a group
// with a different level briefly loses access.
func (s teams) Grant(ctx context.Context, team githost.Team, had string) error {
	d := s.of
	group, err := d.group(ctx, team.Name)
	if err != nil || group == nil {
		return err
	}
	if had != "" {
		if _, err := d.client.Projects.DeleteSharedProjectFromGroup(d.project.ID, group.ID, gitlab.WithContext(ctx)); err != nil && !rest.Missing(rejected(err)) {
			return rejected(err)
		}
	}
	level := levelOf(team.Permission)
	_, err = d.client.Projects.ShareProjectWithGroup(d.project.ID, &gitlab.ShareWithGroupOptions{GroupID: &group.ID, GroupAccess: &level}, gitlab.WithContext(ctx))
	return rejected(err)
}

// DeployToken implements githost.Tokener.
func (w withTokens) DeployToken(ctx context.Context, title string) (username, token string, err error) {
	d := w.driver
	old, err := pages(func(page gitlab.ListOptions) ([]*gitlab.DeployToken, *gitlab.Response, error) {
		options := gitlab.ListProjectDeployTokensOptions(page)
		return d.client.DeployTokens.ListProjectDeployTokens(d.project.ID, &options, gitlab.WithContext(ctx))
	})
	if err != nil {
		return "", "", d.API.Explain(ctx, "listing the deploy tokens of project "+d.Name(), err)
	}
	created, err := call(d.client.DeployTokens.CreateProjectDeployToken(d.project.ID,
		&gitlab.CreateProjectDeployTokenOptions{Name: &title, Scopes: &[]string{"read_repository"}}, gitlab.WithContext(ctx)))
	if err != nil {
		return "", "", d.API.Explain(ctx, "creating a deploy token for project "+d.Name(), err)
	}
	for _, t := range old {
		if t.Name != title || t.Revoked {
			continue
		}
		if _, err := d.client.DeployTokens.DeleteProjectDeployToken(d.project.ID, t.ID, gitlab.WithContext(ctx)); err != nil && !rest.Missing(rejected(err)) {
			return "", "", d.API.Explain(ctx, "revoking the previous deploy token", rejected(err))
		}
	}
	return created.Username, created.Token, nil
}
