package githost

import (
	"context"
	"fmt"
	"strings"

	"github.com/xanzy/go-gitlab"

	"github.com/fluxkit/flux/internal/hint"
)

// gitlabShare is a group to grant access.
type gitlabShare struct {
	team  Team
	group int
	level gitlab.AccessLevelValue
	// had is the present access level, 0 for none.
	had gitlab.AccessLevelValue
}

// gitlabTeams is the groups with access to a project.
type gitlabTeams struct {
	*gitlabAPI
	// project is nil if it does not exist.
	project *gitlab.Project
}

// changes returns the groups that have to be granted access, and a description of
// each change.
func (g gitlabTeams) changes(ctx context.Context) (shares []gitlabShare, changes []string, err error) {
	owner := g.hosted.Owner
	for _, team := range g.hosted.Teams {
		level := gitlabLevel(team.Permission)
		if level == gitlab.NoPermissions {
			return nil, nil, hint.Errorf("use one of "+strings.Join(gitlabPermissions[:5], ", "), "GitLab has no permission %q for group %s", team.Permission, team.Name)
		}
		group, err := g.group(ctx, team.Name)
		switch {
		case err != nil:
			return nil, nil, err
		case group == nil:
			return nil, nil, hint.Errorf("check --team, and use full paths of subgroups, as in acme/platform",
				"there is no group %s that the token of %s can read", team.Name, g.account.name)
		case strings.HasPrefix(strings.ToLower(owner)+"/", strings.ToLower(group.FullPath)+"/"):
			return nil, nil, hint.Errorf("omit --team="+team.Name, "the project is in group %s, whose members have access already", group.FullPath)
		}
		share := gitlabShare{team: team, group: group.ID, level: level, had: g.sharedWith(group.ID)}
		switch {
		case share.had == gitlab.NoPermissions:
			changes = append(changes, fmt.Sprintf("grant group %s the role %s in %s", group.FullPath, gitlabRole(level), g.hosted))
		case share.had != level && g.hosted.Reconcile:
			changes = append(changes, fmt.Sprintf("change the role of group %s in %s from %s to %s", group.FullPath, g.hosted, gitlabRole(share.had), gitlabRole(level)))
		default:
			continue
		}
		shares = append(shares, share)
	}
	return shares, changes, nil
}

// sharedWith returns the access level of a group, 0 for none.
func (g gitlabTeams) sharedWith(group int) gitlab.AccessLevelValue {
	if g.project == nil {
		return gitlab.NoPermissions
	}
	for _, s := range g.project.SharedWithGroups {
		if s.GroupID == group {
			return gitlab.AccessLevelValue(s.GroupAccessLevel)
		}
	}
	return gitlab.NoPermissions
}

// add grants a group access. The API cannot change an access level, so a group
// with another level loses access for a moment.
func (g gitlabTeams) add(ctx context.Context, s gitlabShare) error {
	doing := fmt.Sprintf("granting group %s access to project %s", s.team.Name, g.project.PathWithNamespace)
	if s.had != gitlab.NoPermissions {
		if _, err := g.client.Projects.DeleteSharedProjectFromGroup(g.project.ID, s.group, gitlab.WithContext(ctx)); err != nil && !gitlabMissing(err) {
			return g.problem(ctx, doing, err)
		}
	}
	_, err := g.client.Projects.ShareProjectWithGroup(g.project.ID, &gitlab.ShareWithGroupOptions{GroupID: &s.group, GroupAccess: &s.level}, gitlab.WithContext(ctx))
	if err != nil {
		return g.problem(ctx, doing, err)
	}
	return nil
}
