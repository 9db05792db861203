package githost

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/xanzy/go-gitlab"

	"github.com/fluxkit/flux/internal/hint"
)

// GitLab is a project on gitlab.com or a self-managed GitLab
// (https://docs.gitlab.com/api/rest/).
type GitLab struct {
	hosted Hosted
	api    *gitlab.Client //nolint:staticcheck // deprecated, and required by the project

	// Set by Survey.
	surveyed bool
	want     Want
	account  gitlabAccount
	// project is nil if it does not exist.
	project *gitlab.Project
	// namespace is the group of a new project, nil for the namespace of the account.
	namespace *gitlab.Group
	edits     *gitlab.EditProjectOptions
	shares    []gitlabShare
	// sshHost is the SSH host, "" if unknown.
	sshHost string
}

// gitlabShare is a group to grant access.
type gitlabShare struct {
	team  Team
	group int
	level gitlab.AccessLevelValue
	// had is the present access level, 0 for none.
	had gitlab.AccessLevelValue
}

// gitlabRoles are the names of access levels, the lowest first.
var gitlabRoles = []struct {
	word  string
	level gitlab.AccessLevelValue
}{
	{"Guest", gitlab.GuestPermissions}, {"Reporter", gitlab.ReporterPermissions}, {"Developer", gitlab.DeveloperPermissions},
	{"Maintainer", gitlab.MaintainerPermissions}, {"Owner", gitlab.OwnerPermissions}, {"Administrator", gitlab.AdminPermissions},
}

// gitlabPermissions are the permissions of groups: the roles of GitLab, and the
// equivalent permissions of GitHub.
var gitlabPermissions = []string{
	"guest", "reporter", "developer", "maintainer", "owner", "pull", "triage", "push", "maintain", "admin",
}

// GitLabPermissions returns the permissions of groups.
func GitLabPermissions() []string { return slices.Clone(gitlabPermissions) }

// gitlabLevel returns the access level of a permission, 0 for an unknown one.
func gitlabLevel(permission string) gitlab.AccessLevelValue {
	i := slices.Index(gitlabPermissions, strings.ToLower(permission))
	if i < 0 {
		return gitlab.NoPermissions
	}
	return gitlabRoles[i%5].level
}

// gitlabRole returns the name of an access level.
func gitlabRole(level gitlab.AccessLevelValue) string {
	word := "no role"
	for _, role := range gitlabRoles {
		if level >= role.level {
			word = role.word
		}
	}
	return word
}

// NewGitLab returns a project on GitLab. See [Caller.Client] for the client.
func NewGitLab(hosted Hosted, client *http.Client) (*GitLab, error) {
	hosted.Owner = strings.Trim(hosted.Owner, "/")
	// All kinds of tokens work as bearer tokens, and Go does not forward the
	// Authorization header to another host.
	api, err := gitlab.NewOAuthClient(hosted.Token, gitlab.WithHTTPClient(client), gitlab.WithBaseURL(hosted.HTTPURL("/api/v4")), //nolint:staticcheck // as above
		gitlab.WithoutRetries(), gitlab.WithCustomLimiter(unlimited{}))
	if err != nil {
		return nil, fmt.Errorf("invalid address of GitLab: %w", err)
	}
	return &GitLab{hosted: hosted, api: api}, nil
}

// unlimited is a rate limiter without a limit: the transport handles the limits of
// the server.
type unlimited struct{}

// Wait implements gitlab.RateLimiter.
func (unlimited) Wait(ctx context.Context) error { return ctx.Err() }

// Survey implements Host.
func (g *GitLab) Survey(ctx context.Context, want Want) (Survey, error) {
	g.want, g.surveyed = want, false
	if err := g.identify(ctx); err != nil {
		return Survey{}, err
	}
	var err error
	if g.project, err = g.find(ctx); err != nil {
		return Survey{}, err
	}
	survey := Survey{Exists: g.project != nil, Account: g.account.name}
	if g.project == nil {
		survey.Protected, err = g.surveyOwner(ctx)
		survey.Changes = append(survey.Changes, fmt.Sprintf("create the %s project %s", g.hosted.Visibility, g.hosted))
	} else {
		survey.Changes, survey.Protected, err = g.surveyProject(ctx)
	}
	if err != nil {
		return survey, err
	}
	shares, err := g.surveyTeams(ctx)
	if err != nil {
		return survey, err
	}
	survey.Changes = append(survey.Changes, shares...)
	if err := g.mayChange(survey.Changes); err != nil {
		return survey, err
	}
	if err := g.findSSH(ctx); err != nil {
		return survey, err
	}
	survey.Repository = g.repository()
	g.surveyed = true
	return survey, nil
}

// Ensure implements Host.
func (g *GitLab) Ensure(ctx context.Context) (Repository, error) {
	if !g.surveyed {
		if _, err := g.Survey(ctx, Want{Branch: g.hosted.Branch}); err != nil {
			return Repository{}, err
		}
	}
	if g.project == nil {
		if err := g.create(ctx); err != nil {
			return Repository{}, err
		}
		if err := g.findSSH(ctx); err != nil {
			return Repository{}, err
		}
	}
	if g.edits != nil {
		edited, _, err := g.api.Projects.EditProject(g.project.ID, g.edits, gitlab.WithContext(ctx))
		if err != nil {
			return Repository{}, g.problem(ctx, "changing project "+g.project.PathWithNamespace, err)
		}
		g.project, g.edits = edited, nil
	}
	for len(g.shares) > 0 {
		if err := g.share(ctx, g.shares[0]); err != nil {
			return Repository{}, err
		}
		g.shares = g.shares[1:]
	}
	return g.repository(), nil
}

// create creates the project without a commit: the branch of the first push becomes
// the default one.
func (g *GitLab) create(ctx context.Context) error {
	visibility := gitlab.VisibilityValue(g.hosted.Visibility)
	options := &gitlab.CreateProjectOptions{Name: &g.hosted.Name, Path: &g.hosted.Name, Visibility: &visibility}
	if g.hosted.Description != "" {
		options.Description = &g.hosted.Description
	}
	if g.namespace != nil {
		options.NamespaceID = &g.namespace.ID
	}
	created, _, err := g.api.Projects.CreateProject(options, gitlab.WithContext(ctx))
	if gitlabTaken(err) {
		// Another client created it, or an earlier request of this run whose
		// response was lost.
		found, findErr := g.find(ctx)
		if findErr != nil {
			return findErr
		}
		if found == nil {
			return hint.Errorf("set another --repository, or use a token with access to the project",
				"creating project %s: the name is taken by a project that the token cannot read", g.hosted)
		}
		g.project = found
		return nil
	}
	if err != nil {
		return g.problem(ctx, "creating project "+g.hosted.String(), err)
	}
	g.project = created
	return nil
}

// share grants a group access. The API cannot change an access level, so a group
// with another level loses access for a moment.
func (g *GitLab) share(ctx context.Context, s gitlabShare) error {
	doing := fmt.Sprintf("granting group %s access to project %s", s.team.Name, g.project.PathWithNamespace)
	if s.had != gitlab.NoPermissions {
		if _, err := g.api.Projects.DeleteSharedProjectFromGroup(g.project.ID, s.group, gitlab.WithContext(ctx)); err != nil && !gitlabMissing(err) {
			return g.problem(ctx, doing, err)
		}
	}
	_, err := g.api.Projects.ShareProjectWithGroup(g.project.ID, &gitlab.ShareWithGroupOptions{GroupID: &s.group, GroupAccess: &s.level}, gitlab.WithContext(ctx))
	if err != nil {
		return g.problem(ctx, doing, err)
	}
	return nil
}

// repository returns the URLs and credentials of the project.
func (g *GitLab) repository() Repository {
	path := g.hosted.String()
	r := Repository{DefaultBranch: g.hosted.Branch}
	ssh := g.hosted
	if ssh.SSHHostname == "" {
		ssh.SSHHostname = g.sshHost
	}
	if g.project != nil {
		path, r.DefaultBranch = g.project.PathWithNamespace, g.project.DefaultBranch
	}
	address := g.hosted.HTTPURL(path + ".git")
	r.Access = Access{URL: address, Username: "git", Password: g.hosted.Token, CABundle: g.hosted.CABundle}
	r.SyncURL = address
	if !g.hosted.TokenAuth && !g.want.DeployToken {
		r.SyncURL = ssh.SSHURL(path)
	}
	return r
}

// findSSH reads the SSH host, which only the URLs of projects have: of this project
// or, if it does not exist yet, of any other.
func (g *GitLab) findSSH(ctx context.Context) error {
	if g.hosted.TokenAuth || g.want.DeployToken || g.hosted.SSHHostname != "" || g.sshHost != "" {
		return nil
	}
	if g.project != nil {
		g.sshHost = sshHost(g.project.SSHURLToRepo)
		return nil
	}
	options := &gitlab.ListProjectsOptions{ListOptions: gitlab.ListOptions{PerPage: 1}, Simple: gitlab.Ptr(true)}
	others, _, err := g.api.Projects.ListProjects(options, gitlab.WithContext(ctx))
	if err != nil {
		return g.problem(ctx, "reading the SSH address", err)
	}
	for _, other := range others {
		g.sshHost = sshHost(other.SSHURLToRepo)
	}
	return nil
}

// sshHost returns the host, and port where it is not the usual one, of an SSH
// address in either of its forms: ssh://git@host:port/path and git@host:path.
func sshHost(address string) string {
	if u, err := url.Parse(address); err == nil && u.Scheme == "ssh" {
		return strings.TrimSuffix(u.Host, ":22")
	}
	_, rest, _ := strings.Cut(address, "@")
	host, _, found := strings.Cut(rest, ":")
	if !found {
		return ""
	}
	return host
}
