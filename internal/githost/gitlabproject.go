package githost

import (
	"context"
	"fmt"

	"github.com/xanzy/go-gitlab"

	"github.com/fluxkit/flux/internal/hint"
)

// surveyProject returns the changes that --reconcile requires and why a push would
// be rejected, and an error if the account has not all permissions.
func (g *GitLab) surveyProject(ctx context.Context) (changes []string, protected string, err error) {
	p := g.project
	settings := "Settings → General of " + p.WebURL
	switch {
	case p.Archived:
		return nil, "", hint.Errorf("unarchive it under "+settings, "project %s is archived and read-only", p.PathWithNamespace)
	case p.MarkedForDeletionAt != nil:
		return nil, "", hint.Errorf("restore it under "+settings+", or choose another name", "project %s is scheduled for deletion", p.PathWithNamespace)
	case p.RepositoryAccessLevel == gitlab.DisabledAccessControl:
		return nil, "", hint.Errorf("enable it under "+settings, "project %s has its repository disabled", p.PathWithNamespace)
	case p.HTTPURLToRepo == "":
		return nil, "", hint.Errorf("ask an administrator to enable it", "Git over HTTP is disabled on %s", g.hosted.Hostname)
	case g.want.KeyTitle != "" && p.SSHURLToRepo == "":
		return nil, "", hint.Errorf("use --token-auth, or ask an administrator to enable SSH", "Git over SSH is disabled on %s", g.hosted.Hostname)
	case g.want.ChangeRequest && p.MergeRequestsAccessLevel == gitlab.DisabledAccessControl:
		return nil, "", hint.Errorf("enable them under "+settings+", or omit --pull-request", "project %s has merge requests disabled", p.PathWithNamespace)
	}
	g.edits, changes = g.wantedEdits()
	has, known, err := g.level(ctx)
	if err != nil {
		return nil, "", err
	}
	if known {
		if err := g.suffices(has, len(changes) > 0); err != nil {
			return nil, "", err
		}
	}
	protected, err = gitlabBranch{g.gitlabAPI, g.project, g.want.Branch, has, known}.protected(ctx)
	return changes, protected, err
}

// wantedEdits returns what --reconcile changes.
func (g *GitLab) wantedEdits() (*gitlab.EditProjectOptions, []string) {
	if !g.hosted.Reconcile {
		return nil, nil
	}
	var changes []string
	edits := &gitlab.EditProjectOptions{}
	if wanted := gitlab.VisibilityValue(g.hosted.Visibility); wanted != g.project.Visibility {
		edits.Visibility = &wanted
		changes = append(changes, fmt.Sprintf("make project %s %s (it is %s)", g.project.PathWithNamespace, wanted, g.project.Visibility))
	}
	if d := g.hosted.Description; d != "" && d != g.project.Description {
		edits.Description = &d
		changes = append(changes, fmt.Sprintf("set the description of project %s to %q", g.project.PathWithNamespace, d))
	}
	if changes == nil {
		return nil, nil
	}
	return edits, changes
}

// level returns the access level of the account in the project. It is unknown if a
// shared group grants it and an older GitLab does not report it.
func (g *GitLab) level(ctx context.Context) (level gitlab.AccessLevelValue, known bool, err error) {
	if g.account.admin {
		return gitlab.AdminPermissions, true, nil
	}
	if p := g.project.Permissions; p != nil {
		if p.ProjectAccess != nil {
			level = p.ProjectAccess.AccessLevel
		}
		if p.GroupAccess != nil {
			level = max(level, p.GroupAccess.AccessLevel)
		}
	}
	member, _, err := g.client.ProjectMembers.GetInheritedProjectMember(g.project.ID, g.account.id, gitlab.WithContext(ctx))
	if err != nil && !gitlabMissing(err) && status(err) != 403 {
		return 0, false, g.problem(ctx, "reading the role of "+g.account.name+" in project "+g.project.PathWithNamespace, err)
	}
	if err == nil {
		level = max(level, member.AccessLevel)
	}
	invisible := level == gitlab.NoPermissions && (len(g.project.SharedWithGroups) > 0 || g.project.Visibility == gitlab.PrivateVisibility)
	return level, !invisible, nil
}

// suffices returns an error if the bootstrap requires a higher access level.
func (g *GitLab) suffices(has gitlab.AccessLevelValue, edits bool) error {
	for _, need := range []struct {
		when  bool
		least gitlab.AccessLevelValue
		to    string
	}{
		{true, gitlab.DeveloperPermissions, "push to"},
		{g.want.KeyTitle != "", gitlab.MaintainerPermissions, "add a deploy key to"},
		{g.want.DeployToken, gitlab.MaintainerPermissions, "create a deploy token for"},
		{len(g.hosted.Teams) > 0, gitlab.MaintainerPermissions, "share"},
		{edits, gitlab.MaintainerPermissions, "change the settings of"},
		{g.edits != nil && g.edits.Visibility != nil, gitlab.OwnerPermissions, "change the visibility of"},
	} {
		if need.when && has < need.least {
			return hint.Errorf(fmt.Sprintf("ask an owner of the project for the role %s, or use a token of an account that has it", gitlabRole(need.least)),
				"%s has no permission to %s project %s: the role %s is required, and it has %s",
				g.account.name, need.to, g.hosted, gitlabRole(need.least), gitlabRole(has))
		}
	}
	return nil
}
