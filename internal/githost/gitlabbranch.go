package githost

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/xanzy/go-gitlab"
)

// gitlabBranch is a branch of a project and its protection.
type gitlabBranch struct {
	*gitlabAPI
	project *gitlab.Project
	name    string
	// has is the access level of the account in the project, if it is known.
	has   gitlab.AccessLevelValue
	known bool
}

// protected returns why a push to the branch would be rejected, "" if no reason is
// known.
func (g gitlabBranch) protected(ctx context.Context) (string, error) {
	branch, _, err := g.client.Branches.GetBranch(g.project.ID, g.name, gitlab.WithContext(ctx))
	switch {
	case err == nil && (branch.CanPush || !branch.Protected):
		return "", nil
	case err != nil && !gitlabMissing(err) && status(err) != 403:
		return "", g.problem(ctx, "reading branch "+g.name, err)
	}
	exists := err == nil
	rules, err := gitlabPages(func(page gitlab.ListOptions) ([]*gitlab.ProtectedBranch, *gitlab.Response, error) {
		return g.client.ProtectedBranches.ListProtectedBranches(g.project.ID, &gitlab.ListProtectedBranchesOptions{ListOptions: page}, gitlab.WithContext(ctx))
	})
	if err != nil && !gitlabMissing(err) && status(err) != 403 {
		return "", g.problem(ctx, "listing the branch restrictions", err)
	}
	allowed, protected := "", exists
	for _, rule := range rules {
		if !matchesBranch(rule.Name, g.name) {
			continue
		}
		protected = true
		open, unknown, who := g.pushers(rule)
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
	return fmt.Sprintf("project %s protects it: pushing is allowed to %s, and the role of %s is %s", g.project.PathWithNamespace, allowed, g.account.name, gitlabRole(g.has)), nil
}

// pushers reports whether a rule allows the account to push, whether that is unknown,
// and the names of those whom it allows.
func (g gitlabBranch) pushers(rule *gitlab.ProtectedBranch) (open, unknown bool, who string) {
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
		case !g.known:
			unknown = true
		default:
			open = open || g.has >= access.AccessLevel
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
