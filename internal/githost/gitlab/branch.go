package gitlab

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/xanzy/go-gitlab"

	"github.com/fluxkit/flux/internal/githost/rest"
)

// branch is a branch of a project and its protection.
type branch struct {
	of   *driver
	name string
	// has is the access level of the account in the project, if it is known.
	has   gitlab.AccessLevelValue
	known bool
}

// protected returns the reason why a push to the branch would be rejected, "" if no reason is known.
func (b branch) protected(ctx context.Context) (string, error) {
	found, err := call(b.of.client.Branches.GetBranch(b.of.project.ID, b.name, gitlab.WithContext(ctx)))
	switch {
	case err == nil && (found.CanPush || !found.Protected):
		return "", nil
	case err != nil && !rest.Missing(err) && !rest.Denied(err):
		return "", b.of.API.Explain(ctx, "reading branch "+b.name, err)
	}
	exists := err == nil
	rules, err := pages(func(page gitlab.ListOptions) ([]*gitlab.ProtectedBranch, *gitlab.Response, error) {
		return b.of.client.ProtectedBranches.ListProtectedBranches(b.of.project.ID, &gitlab.ListProtectedBranchesOptions{ListOptions: page}, gitlab.WithContext(ctx))
	})
	if err != nil && !rest.Missing(err) && !rest.Denied(err) {
		return "", b.of.API.Explain(ctx, "listing the branch restrictions", err)
	}
	allowed, protected := "", exists
	for _, rule := range rules {
		if !matchesBranch(rule.Name, b.name) {
			continue
		}
		protected = true
		open, unknown, who := b.pushers(rule)
		if !exists && (open || unknown) {
			return "", nil // one rule that allows the push is sufficient, and unknown rules may allow it
		}
		allowed = who
	}
	if !protected {
		return "", nil
	}
	if allowed == "" {
		return fmt.Sprintf("project %s does not allow %s to push", b.of.project.PathWithNamespace, b.of.account.name), nil
	}
	return fmt.Sprintf("project %s allows %s to push, and the role of %s is %s", b.of.project.PathWithNamespace, allowed, b.of.account.name, roleOf(b.has)), nil
}

// pushers reports whether a rule allows the account to push, or whether that is
// unknown, and returns the names of the allowed roles and accounts.
func (b branch) pushers(rule *gitlab.ProtectedBranch) (open, unknown bool, who string) {
	var names []string
	for _, access := range rule.PushAccessLevels {
		switch {
		case access.DeployKeyID != 0:
			continue // the access of a deploy key
		case access.UserID != 0:
			open = open || access.UserID == b.of.account.id
		case access.GroupID != 0:
			unknown = true
		case access.AccessLevel == gitlab.NoPermissions:
			names = append(names, "no one")
			continue
		case !b.known:
			unknown = true
		default:
			open = open || b.has >= access.AccessLevel
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
