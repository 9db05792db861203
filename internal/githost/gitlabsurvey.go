package githost

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/xanzy/go-gitlab"

	"github.com/fluxkit/flux/internal/hint"
)

// find returns the project, nil if there is none that the token can read.
func (g *GitLab) find(ctx context.Context) (*gitlab.Project, error) {
	project, _, err := g.client.Projects.GetProject(g.hosted.String(), nil, gitlab.WithContext(ctx))
	if gitlabMissing(err) {
		return nil, nil // it does not exist
	}
	if err != nil {
		return nil, g.problem(ctx, "reading project "+g.hosted.String(), err)
	}
	if !strings.EqualFold(project.PathWithNamespace, g.hosted.String()) {
		owner, name := path.Split(project.PathWithNamespace)
		return nil, hint.Errorf(fmt.Sprintf("set --owner=%s --repository=%s", strings.Trim(owner, "/"), name),
			"project %s has been moved to %s", g.hosted, project.PathWithNamespace)
	}
	return project, nil
}

// surveyOwner returns an error if the project cannot be created, and why its first
// push would be rejected.
func (g *GitLab) surveyOwner(ctx context.Context) (protected string, err error) {
	name := g.hosted.Name
	if strings.HasPrefix(name, "-") || strings.HasSuffix(name, ".git") || strings.HasSuffix(name, ".atom") {
		return "", hint.Errorf("choose another name with --repository", "GitLab does not accept the project name %q", name)
	}
	if g.hosted.Personal {
		return "", g.surveyPersonal(ctx)
	}
	if g.namespace, err = g.group(ctx, g.hosted.Owner); err != nil {
		return "", err
	}
	if g.namespace == nil {
		return "", g.noGroup(ctx)
	}
	has, err := g.mayCreate(ctx, g.namespace)
	if err != nil || has >= gitlab.MaintainerPermissions {
		return "", err
	}
	// The creator of a project has the same role in it as in the group.
	if err := g.suffices(has, false); err != nil {
		return "", err
	}
	if fullyProtects(g.namespace) {
		protected = fmt.Sprintf("group %s protects the default branch of new projects: pushing is allowed to Maintainers, and the role of %s is %s",
			g.namespace.FullPath, g.account.name, gitlabRole(has))
	}
	return protected, nil
}

// fullyProtects reports whether a group protects the default branch of new projects
// from the first push of developers.
func fullyProtects(group *gitlab.Group) bool {
	if d := group.DefaultBranchProtectionDefaults; d != nil {
		return !d.DeveloperCanInitialPush && len(d.AllowedToPush) > 0 && !slices.ContainsFunc(d.AllowedToPush, func(a *gitlab.GroupAccessLevel) bool {
			return a.AccessLevel != nil && *a.AccessLevel == gitlab.DeveloperPermissions
		})
	}
	level := group.DefaultBranchProtection //nolint:staticcheck // versions before 17.0 have nothing else
	return level == 2 || level == 3
}

// mayCreate returns the access level of the account in a group, and an error if it
// cannot create the project.
func (g *GitLab) mayCreate(ctx context.Context, group *gitlab.Group) (gitlab.AccessLevelValue, error) {
	if wanted := gitlab.VisibilityValue(g.hosted.Visibility); gitlabOpenness(wanted) > gitlabOpenness(group.Visibility) {
		return 0, hint.Errorf(fmt.Sprintf("use --visibility=%s, or change the visibility of the group", group.Visibility),
			"group %s is %s, so it cannot have a project that is %s", group.FullPath, group.Visibility, wanted)
	}
	least, known := map[gitlab.ProjectCreationLevelValue]gitlab.AccessLevelValue{
		gitlab.NoOneProjectCreation: gitlab.AdminPermissions + 1, gitlab.DeveloperProjectCreation: gitlab.DeveloperPermissions,
		"owner": gitlab.OwnerPermissions, "administrator": gitlab.AdminPermissions,
	}[group.ProjectCreationLevel]
	if !known {
		least = gitlab.MaintainerPermissions
	}
	if least > gitlab.AdminPermissions {
		return 0, hint.Errorf("ask an owner of the group to change that in its settings", "group %s does not allow the creation of projects", group.FullPath)
	}
	has, err := g.levelIn(ctx, group)
	if err != nil || has >= least {
		return has, err
	}
	return 0, hint.Errorf(fmt.Sprintf("ask an owner of the group for the role %s", gitlabRole(least)),
		"%s has no permission to create projects in group %s: the role %s is required, and it has %s", g.account.name, group.FullPath, gitlabRole(least), gitlabRole(has))
}

// gitlabOpenness orders visibilities.
func gitlabOpenness(v gitlab.VisibilityValue) int {
	return slices.Index([]gitlab.VisibilityValue{gitlab.PrivateVisibility, gitlab.InternalVisibility, gitlab.PublicVisibility}, v)
}

// surveyPersonal returns an error if the project of a user cannot be created.
func (g *GitLab) surveyPersonal(ctx context.Context) error {
	if strings.EqualFold(g.hosted.Owner, g.account.name) {
		return nil
	}
	group, err := g.group(ctx, g.hosted.Owner)
	if err != nil {
		return err
	}
	if group != nil {
		return hint.Errorf("omit --personal", "%s is a group, not a user", group.FullPath)
	}
	return hint.Errorf("use a token of "+g.hosted.Owner+", or create the project there and grant "+g.account.name+" the role Maintainer",
		"there is no project %s that the token can read, and %s cannot create one for another user", g.hosted, g.account.name)
}

// noGroup returns the error for an owner, with the part of it that is missing.
func (g *GitLab) noGroup(ctx context.Context) error {
	parts := strings.Split(g.hosted.Owner, "/")
	found := ""
	for i := 1; i < len(parts); i++ {
		above := strings.Join(parts[:i], "/")
		group, err := g.group(ctx, above)
		if err != nil {
			return err
		}
		if group == nil {
			break
		}
		found = above
	}
	missing := strings.Join(parts[:strings.Count(found, "/")+min(len(found), 1)+1], "/")
	switch {
	case found != "":
		return hint.Errorf("create it there, or use a token that can read it", "group %s has no subgroup %s that the token of %s can read", found, missing, g.account.name)
	case len(parts) == 1 && g.isUser(ctx, missing):
		return hint.Errorf("add --personal", "%s is a user, not a group", missing)
	default:
		return hint.Errorf(fmt.Sprintf("check --owner, create the group at %s, or use a token that can read it", g.hosted.HTTPURL("/groups/new")),
			"there is no group %s that the token of %s can read", missing, g.account.name)
	}
}

// mayChange returns an error if the changes require a scope that the token lacks.
func (g *GitLab) mayChange(changes []string) error {
	if g.account.allows("api") {
		return nil
	}
	switch {
	case len(changes) > 0:
		return g.lacks("api", "to "+changes[0])
	case g.want.KeyTitle != "":
		return g.lacks("api", "adding a deploy key")
	case g.want.DeployToken:
		return g.lacks("api", "creating a deploy token")
	case g.want.ChangeRequest:
		return g.lacks("api", "opening a merge request")
	}
	return nil
}
