package githost

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/xanzy/go-gitlab"
	"golang.org/x/sync/errgroup"

	"github.com/fluxkit/flux/internal/hint"
)

// gitlabAccount is the account of a token, and its scopes.
type gitlabAccount struct {
	id    int
	name  string
	admin bool
	// scopes is nil if unknown.
	scopes []string
}

// allows reports whether the token may have one of the scopes.
func (a gitlabAccount) allows(scopes ...string) bool {
	return a.scopes == nil || slices.ContainsFunc(scopes, func(s string) bool { return slices.Contains(a.scopes, s) })
}

// identify reads the account and the scopes of the token.
func (g *GitLab) identify(ctx context.Context) error {
	var user *gitlab.User
	var token *gitlab.PersonalAccessToken
	group, gctx := errgroup.WithContext(ctx)
	group.Go(func() (err error) {
		user, _, err = g.api.Users.CurrentUser(gitlab.WithContext(gctx))
		return err
	})
	group.Go(func() (err error) {
		// Versions before 15.5 do not have this request, and it rejects OAuth tokens.
		token, _, err = g.api.PersonalAccessTokens.GetSinglePersonalAccessToken(gitlab.WithContext(gctx))
		if code := status(err); code == 400 || code == 403 || code == 404 || code == 405 {
			return nil
		}
		return err
	})
	if err := group.Wait(); err != nil {
		return g.problem(ctx, "reading the account of the token", err)
	}
	g.account = gitlabAccount{id: user.ID, name: user.Username, admin: user.IsAdmin}
	if token != nil {
		g.account.scopes = token.Scopes
	}
	switch {
	case !g.account.allows("api", "read_api"):
		return g.lacks("api", "reading the project")
	case !g.account.allows("api", "write_repository"):
		return g.lacks("api", "pushing to the repository")
	}
	return nil
}

// lacks returns the error for a token without a required scope.
func (g *GitLab) lacks(scope, doing string) error {
	return hint.Errorf(fmt.Sprintf("create a token with the scope %s at %s", scope, g.hosted.HTTPURL("/-/user_settings/personal_access_tokens")),
		"%s: the token lacks the scope %q: it has %s", doing, scope, listed(g.account.scopes))
}

// listed returns a list for messages.
func listed(words []string) string {
	if len(words) == 0 {
		return "none"
	}
	return strings.Join(words, ", ")
}

// find returns the project, nil if there is none that the token can read.
func (g *GitLab) find(ctx context.Context) (*gitlab.Project, error) {
	project, _, err := g.api.Projects.GetProject(g.hosted.String(), nil, gitlab.WithContext(ctx))
	if gitlabMissing(err) {
		return nil, nil //nolint:nilnil // it does not exist
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

// group returns a group, nil if there is none that the token can read.
func (g *GitLab) group(ctx context.Context, name string) (*gitlab.Group, error) {
	group, _, err := g.api.Groups.GetGroup(name, &gitlab.GetGroupOptions{WithProjects: gitlab.Ptr(false)}, gitlab.WithContext(ctx))
	if gitlabMissing(err) {
		return nil, nil //nolint:nilnil // it does not exist
	}
	if err != nil {
		return nil, g.problem(ctx, "reading group "+name, err)
	}
	return group, nil
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

// isUser reports whether a name is known to be the name of a user.
func (g *GitLab) isUser(ctx context.Context, name string) bool {
	users, _, err := g.api.Users.ListUsers(&gitlab.ListUsersOptions{Username: &name}, gitlab.WithContext(ctx))
	return err == nil && len(users) > 0
}

// levelIn returns the access level of the account in a group, with inherited ones.
func (g *GitLab) levelIn(ctx context.Context, group *gitlab.Group) (gitlab.AccessLevelValue, error) {
	if g.account.admin {
		return gitlab.AdminPermissions, nil
	}
	member, _, err := g.api.GroupMembers.GetInheritedGroupMember(group.ID, g.account.id, gitlab.WithContext(ctx))
	if gitlabMissing(err) {
		return gitlab.NoPermissions, nil
	}
	if err != nil {
		return 0, g.problem(ctx, "reading the role of "+g.account.name+" in group "+group.FullPath, err)
	}
	return member.AccessLevel, nil
}

// surveyTeams returns the grants that groups need.
func (g *GitLab) surveyTeams(ctx context.Context) (changes []string, err error) {
	g.shares = nil
	owner := g.hosted.Owner
	for _, team := range g.hosted.Teams {
		level := gitlabLevel(team.Permission)
		if level == gitlab.NoPermissions {
			return nil, hint.Errorf("use one of "+strings.Join(gitlabPermissions[:5], ", "), "GitLab has no permission %q for group %s", team.Permission, team.Name)
		}
		group, err := g.group(ctx, team.Name)
		switch {
		case err != nil:
			return nil, err
		case group == nil:
			return nil, hint.Errorf("check --team, and use full paths of subgroups, as in acme/platform",
				"there is no group %s that the token of %s can read", team.Name, g.account.name)
		case strings.HasPrefix(strings.ToLower(owner)+"/", strings.ToLower(group.FullPath)+"/"):
			return nil, hint.Errorf("omit --team="+team.Name, "the project is in group %s, whose members have access already", group.FullPath)
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
		g.shares = append(g.shares, share)
	}
	if len(g.shares) > 0 && g.namespace != nil && g.namespace.ShareWithGroupLock {
		return nil, hint.Errorf("omit --team, or ask an owner of the group to change that", "group %s does not let its projects be shared with other groups", g.namespace.FullPath)
	}
	return changes, nil
}

// sharedWith returns the access level of a group, 0 for none.
func (g *GitLab) sharedWith(group int) gitlab.AccessLevelValue {
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
