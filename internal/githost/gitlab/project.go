package gitlab

import (
	"context"
	"fmt"

	"github.com/xanzy/go-gitlab"

	"github.com/fluxkit/flux/internal/githost"
	"github.com/fluxkit/flux/internal/githost/rest"
	"github.com/fluxkit/flux/internal/hint"
)

// CheckUse implements rest.Driver.
func (d *driver) CheckUse(ctx context.Context, want githost.Want, edits rest.Edits) (protected string, err error) {
	p := d.project
	settings := "Settings → General of " + p.WebURL
	switch {
	case p.Archived:
		return "", hint.Errorf("unarchive it under "+settings, "project %s is archived and read-only", p.PathWithNamespace)
	case p.MarkedForDeletionAt != nil:
		return "", hint.Errorf("restore it under "+settings+", or choose another name", "project %s is scheduled for deletion", p.PathWithNamespace)
	case p.RepositoryAccessLevel == gitlab.DisabledAccessControl:
		return "", hint.Errorf("enable it under "+settings, "the repository of project %s is disabled", p.PathWithNamespace)
	case p.HTTPURLToRepo == "":
		return "", hint.Errorf("ask an administrator to enable it", "Git over HTTP is disabled on %s", d.Hosted.Hostname)
	case want.KeyTitle != "" && p.SSHURLToRepo == "":
		return "", hint.Errorf("use --token-auth, or ask an administrator to enable SSH", "Git over SSH is disabled on %s", d.Hosted.Hostname)
	case want.ChangeRequest && p.MergeRequestsAccessLevel == gitlab.DisabledAccessControl:
		return "", hint.Errorf("enable them under "+settings+", or omit --pull-request", "project %s has merge requests disabled", p.PathWithNamespace)
	}
	has, known, err := d.level(ctx)
	if err != nil {
		return "", err
	}
	if known {
		if err := d.suffices(has, want, edits); err != nil {
			return "", err
		}
	}
	return branch{d, want.Branch, has, known}.protected(ctx)
}

// level returns the access level of the account in the project. It is unknown if the level is granted by a shared
// group, which older versions of GitLab do not report.
func (d *driver) level(ctx context.Context) (level gitlab.AccessLevelValue, known bool, err error) {
	if d.account.admin {
		return gitlab.AdminPermissions, true, nil
	}
	if p := d.project.Permissions; p != nil {
		if p.ProjectAccess != nil {
			level = p.ProjectAccess.AccessLevel
		}
		if p.GroupAccess != nil {
			level = max(level, p.GroupAccess.AccessLevel)
		}
	}
	member, err := call(d.client.ProjectMembers.GetInheritedProjectMember(d.project.ID, d.account.id, gitlab.WithContext(ctx)))
	if err != nil && !rest.Missing(err) && !rest.Denied(err) {
		return 0, false, d.API.Explain(ctx, "reading the role of "+d.account.name+" in project "+d.project.PathWithNamespace, err)
	}
	if err == nil {
		level = max(level, member.AccessLevel)
	}
	invisible := level == gitlab.NoPermissions && (len(d.project.SharedWithGroups) > 0 || d.project.Visibility == gitlab.PrivateVisibility)
	return level, !invisible, nil
}

// suffices returns an error if the bootstrap requires a higher access level.
func (d *driver) suffices(has gitlab.AccessLevelValue, want githost.Want, edits rest.Edits) error {
	for _, need := range []struct {
		when  bool
		least gitlab.AccessLevelValue
		to    string
	}{
		{true, gitlab.DeveloperPermissions, "push to"},
		{want.KeyTitle != "", gitlab.MaintainerPermissions, "add a deploy key to"},
		{want.DeployToken, gitlab.MaintainerPermissions, "create a deploy token for"},
		{len(d.Hosted.Teams) > 0, gitlab.MaintainerPermissions, "share"},
		{edits != rest.Edits{}, gitlab.MaintainerPermissions, "change the settings of"},
		{edits.Visibility != "", gitlab.OwnerPermissions, "change the visibility of"},
	} {
		if need.when && has < need.least {
			return hint.Errorf(fmt.Sprintf("ask an owner of the project for the role %s, or use a token of an account that has it", roleOf(need.least)),
				"%s has no permission to %s project %s: the role %s is required, but the account has %s",
				d.account.name, need.to, d.Hosted, roleOf(need.least), roleOf(has))
		}
	}
	return nil
}
