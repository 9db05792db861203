package githost

import (
	"context"
	"fmt"
	"slices"
	"strings"

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
	protected, err = g.protected(ctx, has, known)
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
	member, _, err := g.api.ProjectMembers.GetInheritedProjectMember(g.project.ID, g.account.id, gitlab.WithContext(ctx))
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

// protected returns why a push to the branch would be rejected, "" if no reason is
// known.
func (g *GitLab) protected(ctx context.Context, has gitlab.AccessLevelValue, known bool) (string, error) {
	branch, _, err := g.api.Branches.GetBranch(g.project.ID, g.want.Branch, gitlab.WithContext(ctx))
	switch {
	case err == nil && (branch.CanPush || !branch.Protected):
		return "", nil
	case err != nil && !gitlabMissing(err) && status(err) != 403:
		return "", g.problem(ctx, "reading branch "+g.want.Branch, err)
	}
	exists := err == nil
	rules, err := gitlabPages(func(page gitlab.ListOptions) ([]*gitlab.ProtectedBranch, *gitlab.Response, error) {
		return g.api.ProtectedBranches.ListProtectedBranches(g.project.ID, &gitlab.ListProtectedBranchesOptions{ListOptions: page}, gitlab.WithContext(ctx))
	})
	if err != nil && !gitlabMissing(err) && status(err) != 403 {
		return "", g.problem(ctx, "listing the branch restrictions", err)
	}
	allowed, protected := "", exists
	for _, rule := range rules {
		if !matchesBranch(rule.Name, g.want.Branch) {
			continue
		}
		protected = true
		open, unknown, who := g.pushers(rule, has, known)
		if !exists && (open || unknown) {
			return "", nil // one rule that allows the push suffices, and a rule for a group may
		}
		allowed = who
	}
	if !protected {
		return "", nil
	}
	if allowed == "" {
		return fmt.Sprintf("project %s protects it, and does not allow %s to push", g.project.PathWithNamespace, g.account.name), nil
	}
	return fmt.Sprintf("project %s protects it: pushing is allowed to %s, and the role of %s is %s", g.project.PathWithNamespace, allowed, g.account.name, gitlabRole(has)), nil
}

// pushers reports whether a rule allows the account to push, whether that is unknown,
// and the names of those whom it allows.
func (g *GitLab) pushers(rule *gitlab.ProtectedBranch, has gitlab.AccessLevelValue, known bool) (open, unknown bool, who string) {
	var names []string
	for _, access := range rule.PushAccessLevels {
		switch {
		case access.DeployKeyID != 0:
			continue // of a deploy key, not of an account
		case access.UserID != 0:
			open = open || access.UserID == g.account.id
		case access.GroupID != 0:
			unknown = true
		case access.AccessLevel == gitlab.NoPermissions:
			names = append(names, "no one")
			continue
		case !known:
			unknown = true
		default:
			open = open || has >= access.AccessLevel
		}
		names = append(names, access.AccessLevelDescription)
	}
	return open, unknown, strings.Join(slices.Compact(names), ", ")
}

// matchesBranch reports whether a branch matches a pattern, in which * matches any
// characters.
func matchesBranch(pattern, branch string) bool {
	parts := strings.Split(pattern, "*")
	rest, found := strings.CutPrefix(branch, parts[0])
	if len(parts) == 1 {
		return found && rest == ""
	}
	if !found {
		return false
	}
	for _, middle := range parts[1 : len(parts)-1] {
		if _, rest, found = strings.Cut(rest, middle); !found {
			return false
		}
	}
	return strings.HasSuffix(rest, parts[len(parts)-1])
}
