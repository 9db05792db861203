package gitlab

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/xanzy/go-gitlab"

	"github.com/fluxkit/flux/internal/githost"
	"github.com/fluxkit/flux/internal/githost/rest"
	"github.com/fluxkit/flux/internal/hint"
)

// Read implements rest.Driver.
func (d *driver) Read(ctx context.Context) (*rest.Properties, error) {
	d.project, d.namespace = nil, nil
	if err := d.identify(ctx); err != nil {
		return nil, err
	}
	project, err := call(d.client.Projects.GetProject(d.Hosted.String(), nil, gitlab.WithContext(ctx)))
	if rest.Missing(err) {
		return nil, nil // it does not exist
	}
	if err != nil {
		return nil, d.API.Explain(ctx, "reading project "+d.Hosted.String(), err)
	}
	if !strings.EqualFold(project.PathWithNamespace, d.Hosted.String()) {
		owner, name := path.Split(project.PathWithNamespace)
		return nil, hint.Errorf(fmt.Sprintf("set --owner=%s --repository=%s", strings.Trim(owner, "/"), name),
			"project %s has been moved to %s", d.Hosted, project.PathWithNamespace)
	}
	return d.use(project), nil
}

// CheckCreate implements rest.Driver.
func (d *driver) CheckCreate(ctx context.Context, want githost.Want) (protected string, err error) {
	name := d.Hosted.Name
	if strings.HasPrefix(name, "-") || strings.HasSuffix(name, ".git") || strings.HasSuffix(name, ".atom") {
		return "", hint.Errorf("choose another name with --repository", "GitLab does not accept the project name %q", name)
	}
	if d.Hosted.Personal {
		return "", d.surveyPersonal(ctx)
	}
	if d.namespace, err = d.group(ctx, d.Hosted.Owner); err != nil {
		return "", err
	}
	if d.namespace == nil {
		return "", d.noGroup(ctx)
	}
	has, err := d.mayCreate(ctx, d.namespace)
	if err != nil || has >= gitlab.MaintainerPermissions {
		return "", err
	}
	// The creator of a project has the same role in the project as in the group.
	if err := d.suffices(has, want, rest.Edits{}); err != nil {
		return "", err
	}
	if fullyProtects(d.namespace) {
		protected = fmt.Sprintf("group %s protects the default branch of new projects: pushing is allowed to Maintainers, and the role of %s is %s",
			d.namespace.FullPath, d.account.name, roleOf(has))
	}
	return protected, nil
}

// fullyProtects reports whether a group protects the default branch of new projects
// even against the first push by a developer.
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
func (d *driver) mayCreate(ctx context.Context, group *gitlab.Group) (gitlab.AccessLevelValue, error) {
	if wanted := gitlab.VisibilityValue(d.Hosted.Visibility); openness(wanted) > openness(group.Visibility) {
		return 0, hint.Errorf(fmt.Sprintf("use --visibility=%s, or change the visibility of the group", group.Visibility),
			"group %s is %s and cannot contain %s projects", group.FullPath, group.Visibility, wanted)
	}
	least, known := map[gitlab.ProjectCreationLevelValue]gitlab.AccessLevelValue{
		gitlab.NoOneProjectCreation: gitlab.AdminPermissions + 1, gitlab.DeveloperProjectCreation: gitlab.DeveloperPermissions,
		"owner": gitlab.OwnerPermissions, "administrator": gitlab.AdminPermissions,
	}[group.ProjectCreationLevel]
	if !known {
		least = gitlab.MaintainerPermissions
	}
	if least > gitlab.AdminPermissions {
		return 0, hint.Errorf("ask an owner of the group to allow it in the group settings", "group %s does not allow creating projects", group.FullPath)
	}
	has, err := d.levelIn(ctx, group)
	if err != nil || has >= least {
		return has, err
	}
	return 0, hint.Errorf(fmt.Sprintf("ask an owner of the group for the role %s", roleOf(least)),
		"%s has no permission to create projects in group %s: the role %s is required, but the account has %s", d.account.name, group.FullPath, roleOf(least), roleOf(has))
}

// openness orders visibilities.
func openness(v gitlab.VisibilityValue) int {
	return slices.Index([]gitlab.VisibilityValue{gitlab.PrivateVisibility, gitlab.InternalVisibility, gitlab.PublicVisibility}, v)
}

// surveyPersonal returns an error if a user's project cannot be created.
func (d *driver) surveyPersonal(ctx context.Context) error {
	if strings.EqualFold(d.Hosted.Owner, d.account.name) {
		return nil
	}
	group, err := d.group(ctx, d.Hosted.Owner)
	if err != nil {
		return err
	}
	if group != nil {
		return hint.Errorf("omit --personal", "%s is a group, not a user", group.FullPath)
	}
	return hint.Errorf("use a token of "+d.Hosted.Owner+", or create the project there and grant "+d.account.name+" the role Maintainer",
		"project %s does not exist or the token cannot read it, and %s cannot create it for another user", d.Hosted, d.account.name)
}

// noGroup returns the error for a missing group, with the missing part of its path.
func (d *driver) noGroup(ctx context.Context) error {
	parts := strings.Split(d.Hosted.Owner, "/")
	found := ""
	for i := 1; i < len(parts); i++ {
		above := strings.Join(parts[:i], "/")
		group, err := d.group(ctx, above)
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
		return hint.Errorf("create the subgroup, or use a token that can read it", "group %s has no subgroup %s, or the token of %s cannot read it", found, missing, d.account.name)
	case len(parts) == 1 && d.isUser(ctx, missing):
		return hint.Errorf("add --personal", "%s is a user, not a group", missing)
	default:
		return hint.Errorf(fmt.Sprintf("check --owner, create the group at %s, or use a token that can read it", d.Hosted.HTTPURL("/groups/new")),
			"group %s not found, or the token of %s cannot read it", missing, d.account.name)
	}
}

// CheckChanges implements rest.Driver.
func (d *driver) CheckChanges(_ context.Context, want githost.Want, changes []string) error {
	if d.account.allows("api") {
		return nil
	}
	switch {
	case len(changes) > 0:
		return d.lacks("api", "to "+changes[0])
	case want.KeyTitle != "":
		return d.lacks("api", "adding a deploy key")
	case want.DeployToken:
		return d.lacks("api", "creating a deploy token")
	case want.ChangeRequest:
		return d.lacks("api", "opening a merge request")
	}
	return nil
}
