package githost

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/xanzy/go-gitlab"
)

// GitLab is a project on gitlab.com or on a GitLab of one's own, called by its
// REST API (https://docs.gitlab.com/api/rest/).
type GitLab struct {
	hosted Hosted
	api    *gitlab.Client //nolint:staticcheck // it is frozen, and has all that is called here

	// Found out by Survey.
	surveyed bool
	want     Want
	account  gitlabAccount
	// project is nil where there is none yet.
	project *gitlab.Project
	// namespace is the group to make the project in, nil for the account's own.
	namespace *gitlab.Group
	edits     *gitlab.EditProjectOptions
	shares    []gitlabShare
	// sshHost is where the host serves SSH, "" where it has not been asked.
	sshHost string
}

// gitlabShare is a group that is to be given access.
type gitlabShare struct {
	team  Team
	group int
	level gitlab.AccessLevelValue
	// had is the access that it has already, 0 for none.
	had gitlab.AccessLevelValue
}

// gitlabRoles are GitLab's words for levels of access, lowest first.
var gitlabRoles = []struct {
	word  string
	level gitlab.AccessLevelValue
}{
	{"Guest", gitlab.GuestPermissions}, {"Reporter", gitlab.ReporterPermissions}, {"Developer", gitlab.DeveloperPermissions},
	{"Maintainer", gitlab.MaintainerPermissions}, {"Owner", gitlab.OwnerPermissions}, {"Administrator", gitlab.AdminPermissions},
}

// gitlabPermissions are the words for what a group may do with a project: those
// of GitLab, and those of GitHub for the same.
var gitlabPermissions = []string{
	"guest", "reporter", "developer", "maintainer", "owner", "pull", "triage", "push", "maintain", "admin",
}

// GitLabPermissions are the words for what a group may do with a project.
func GitLabPermissions() []string { return slices.Clone(gitlabPermissions) }

// gitlabLevel returns the level of one of gitlabPermissions, 0 for another word.
func gitlabLevel(permission string) gitlab.AccessLevelValue {
	i := slices.Index(gitlabPermissions, strings.ToLower(permission))
	if i < 0 {
		return gitlab.NoPermissions
	}
	return gitlabRoles[i%5].level
}

// gitlabRole returns the word for a level.
func gitlabRole(level gitlab.AccessLevelValue) string {
	word := "no role"
	for _, role := range gitlabRoles {
		if level >= role.level {
			word = role.word
		}
	}
	return word
}

// NewGitLab returns the row of GitLab. The client has to bound its requests.
func NewGitLab(hosted Hosted, client *http.Client) (*GitLab, error) {
	hosted.Owner = strings.Trim(hosted.Owner, "/")
	// Personal, project and group tokens work as bearer tokens as those of
	// OAuth do, and Go sends no Authorization header on to another host.
	api, err := gitlab.NewOAuthClient(hosted.Token, gitlab.WithHTTPClient(client), gitlab.WithBaseURL(hosted.HTTPURL("/api/v4")), //nolint:staticcheck // as above
		gitlab.WithoutRetries(), gitlab.WithCustomLimiter(unlimited{}))
	if err != nil {
		return nil, fmt.Errorf("reading the address of GitLab: %w", err)
	}
	return &GitLab{hosted: hosted, api: api}, nil
}

// unlimited holds no request back: the server says when it has had enough.
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

// create makes the project, empty: the branch that is pushed first becomes the
// default one.
func (g *GitLab) create(ctx context.Context) error {
	visibility := gitlab.VisibilityValue(g.hosted.Visibility)
	options := &gitlab.CreateProjectOptions{Name: &g.hosted.Name, Path: &g.hosted.Name, Visibility: &visibility}
	if g.hosted.Description != "" {
		options.Description = &g.hosted.Description
	}
	if g.namespace != nil {
		options.NamespaceID = &g.namespace.ID
	}
	made, _, err := g.api.Projects.CreateProject(options, gitlab.WithContext(ctx))
	if gitlabTaken(err) {
		// Somebody else made it, or an earlier request of this run whose answer was lost.
		found, findErr := g.find(ctx)
		if findErr != nil {
			return findErr
		}
		if found == nil {
			return failure("set another --repository, or use a token with access to the project",
				"creating project %s: the name is taken by a project that the token cannot read", g.hosted)
		}
		g.project = found
		return nil
	}
	if err != nil {
		return g.problem(ctx, "creating project "+g.hosted.String(), err)
	}
	g.project = made
	return nil
}

// share gives a group access. GitLab has no request that changes the access of
// a group, so one that has another loses it for a moment.
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

// repository returns the project as Git sees it.
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

// findSSH finds out where SSH is served, which only the address of a project
// tells: of this one or, before it is made, of any other.
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
