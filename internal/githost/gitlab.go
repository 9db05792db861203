package githost

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/xanzy/go-gitlab"

	"github.com/fluxkit/flux/internal/hint"
)

// GitLab is a project on gitlab.com or a self-managed GitLab
// (https://docs.gitlab.com/api/rest/).
type GitLab struct {
	*gitlabAPI

	// Set by Survey.
	want Want
	// project is nil if it does not exist.
	project *gitlab.Project
	// namespace is the group of a new project, nil for the namespace of the account.
	namespace *gitlab.Group
	edits     *gitlab.EditProjectOptions
	shares    []gitlabShare
	// sshHost is the SSH host, "" if unknown.
	sshHost string
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
	return &GitLab{gitlabAPI: &gitlabAPI{hosted: hosted, client: api}}, nil
}

// unlimited is a rate limiter without a limit: the transport handles the limits of
// the server.
type unlimited struct{}

// Wait implements gitlab.RateLimiter.
func (unlimited) Wait(ctx context.Context) error { return ctx.Err() }

// Survey implements Host.
func (g *GitLab) Survey(ctx context.Context, want Want) (Survey, error) {
	g.want = want
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
	var shares []string
	if g.shares, shares, err = (gitlabTeams{g.gitlabAPI, g.project}).changes(ctx); err != nil {
		return survey, err
	}
	if len(g.shares) > 0 && g.namespace != nil && g.namespace.ShareWithGroupLock {
		return survey, hint.Errorf("omit --team, or ask an owner of the group to change that", "group %s does not let its projects be shared with other groups", g.namespace.FullPath)
	}
	survey.Changes = append(survey.Changes, shares...)
	if err := g.mayChange(survey.Changes); err != nil {
		return survey, err
	}
	if err := g.findSSH(ctx); err != nil {
		return survey, err
	}
	survey.Repository = g.repository()
	return survey, nil
}

// Ensure implements Host.
func (g *GitLab) Ensure(ctx context.Context) (Repository, error) {
	if g.project == nil {
		if err := g.create(ctx); err != nil {
			return Repository{}, err
		}
		if err := g.findSSH(ctx); err != nil {
			return Repository{}, err
		}
	}
	if g.edits != nil {
		edited, _, err := g.client.Projects.EditProject(g.project.ID, g.edits, gitlab.WithContext(ctx))
		if err != nil {
			return Repository{}, g.problem(ctx, "changing project "+g.project.PathWithNamespace, err)
		}
		g.project, g.edits = edited, nil
	}
	for len(g.shares) > 0 {
		if err := (gitlabTeams{g.gitlabAPI, g.project}).add(ctx, g.shares[0]); err != nil {
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
	created, _, err := g.client.Projects.CreateProject(options, gitlab.WithContext(ctx))
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

// DeployKey implements Host.
func (g *GitLab) DeployKey(ctx context.Context, key DeployKey) error {
	return grant(ctx, gitlabKeys{g.gitlabAPI, g.project.ID, g.project.PathWithNamespace}, key)
}

// DeployToken implements Tokener.
func (g *GitLab) DeployToken(ctx context.Context, title string) (username, token string, err error) {
	old, err := gitlabPages(func(page gitlab.ListOptions) ([]*gitlab.DeployToken, *gitlab.Response, error) {
		options := gitlab.ListProjectDeployTokensOptions(page)
		return g.client.DeployTokens.ListProjectDeployTokens(g.project.ID, &options, gitlab.WithContext(ctx))
	})
	if err != nil {
		return "", "", g.problem(ctx, "listing the deploy tokens of project "+g.project.PathWithNamespace, err)
	}
	created, _, err := g.client.DeployTokens.CreateProjectDeployToken(g.project.ID,
		&gitlab.CreateProjectDeployTokenOptions{Name: &title, Scopes: &[]string{"read_repository"}}, gitlab.WithContext(ctx))
	if err != nil {
		return "", "", g.problem(ctx, "creating a deploy token for project "+g.project.PathWithNamespace, err)
	}
	for _, t := range old {
		if t.Name != title || t.Revoked {
			continue
		}
		if _, err := g.client.DeployTokens.DeleteProjectDeployToken(g.project.ID, t.ID, gitlab.WithContext(ctx)); err != nil && !gitlabMissing(err) {
			return "", "", g.problem(ctx, "revoking the previous deploy token", err)
		}
	}
	return created.Username, created.Token, nil
}

// RequestChange implements Requester.
func (g *GitLab) RequestChange(ctx context.Context, change Change) (Request, error) {
	return openRequest(func() (Request, error) {
		open, _, err := g.client.MergeRequests.ListProjectMergeRequests(g.project.ID, &gitlab.ListProjectMergeRequestsOptions{
			State: gitlab.Ptr("opened"), SourceBranch: &change.Head, TargetBranch: &change.Base,
		}, gitlab.WithContext(ctx))
		if err != nil {
			return Request{}, g.problem(ctx, "listing the merge requests of project "+g.project.PathWithNamespace, err)
		}
		for _, m := range open {
			if m.SourceProjectID == g.project.ID { // not from a fork
				return Request{URL: m.WebURL, Number: m.IID}, nil
			}
		}
		return Request{}, nil
	}, func() (Request, error) {
		opened, _, err := g.client.MergeRequests.CreateMergeRequest(g.project.ID, &gitlab.CreateMergeRequestOptions{
			SourceBranch: &change.Head, TargetBranch: &change.Base, Title: &change.Title, Description: &change.Body,
			RemoveSourceBranch: gitlab.Ptr(true),
		}, gitlab.WithContext(ctx))
		if err != nil {
			return Request{}, err
		}
		return Request{URL: opened.WebURL, Number: opened.IID, Opened: true}, nil
	}, conflict, func(err error) error {
		return g.problem(ctx, "opening a merge request in project "+g.project.PathWithNamespace, err)
	})
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
		_, g.sshHost = sshLogin(g.project.SSHURLToRepo)
		return nil
	}
	options := &gitlab.ListProjectsOptions{ListOptions: gitlab.ListOptions{PerPage: 1}, Simple: gitlab.Ptr(true)}
	others, _, err := g.client.Projects.ListProjects(options, gitlab.WithContext(ctx))
	if err != nil {
		return g.problem(ctx, "reading the SSH address", err)
	}
	for _, other := range others {
		_, g.sshHost = sshLogin(other.SSHURLToRepo)
	}
	return nil
}
