package githost

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/google/go-github/v60/github"
)

// branchRule is a rule of a ruleset. The library fails on types of rules that it does
// not know.
type branchRule struct {
	Type      string `json:"type"`
	RulesetID int64  `json:"ruleset_id"`
}

// ruleWords describe the rules that reject pushes to an existing branch.
var ruleWords = map[string]string{
	"pull_request":           "changes require a pull request",
	"update":                 "pushes are restricted",
	"required_status_checks": "status checks are required",
	"workflows":              "workflows are required",
	"required_deployments":   "deployments are required",
	"merge_queue":            "changes require the merge queue",
	"code_scanning":          "code scanning is required",
}

// creationWords describe the rules that reject a push that creates the branch.
var creationWords = map[string]string{"creation": "creation is restricted"}

// githubBranch is a branch of a repository and its protection.
type githubBranch struct {
	*githubAPI
	name string
	// admin reports whether the account administers the repository.
	admin bool
}

// protected returns why a push to the branch would be rejected, "" if no reason is
// known.
func (g githubBranch) protected(ctx context.Context) (string, error) {
	guarded, exists, err := g.read(ctx)
	if err != nil {
		return "", err
	}
	words := ruleWords
	if !exists {
		words = creationWords
	}
	reasons, err := g.rules(ctx, words)
	if err != nil {
		return "", err
	}
	if guarded.Protected {
		others, err := g.protection(ctx, guarded)
		if err != nil {
			return "", err
		}
		reasons = append(reasons, others...)
	}
	slices.Sort(reasons)
	return strings.Join(slices.Compact(reasons), ", "), nil
}

// guardedBranch is a branch with the part of its protection that all readers see.
type guardedBranch struct {
	Protected  bool `json:"protected"`
	Protection struct {
		Checks struct {
			Enforcement string `json:"enforcement_level"`
		} `json:"required_status_checks"`
	} `json:"protection"`
}

// read returns the branch, if it exists.
func (g githubBranch) read(ctx context.Context) (found guardedBranch, exists bool, err error) {
	err = g.get(ctx, fmt.Sprintf("repos/%s/branches/%s", g.Hosted, url.PathEscape(g.name)), &found)
	if status(err) == http.StatusNotFound {
		return found, false, nil
	}
	return found, err == nil, g.problem(ctx, fmt.Sprintf("reading branch %q of %s", g.name, g.Hosted), err)
}

// rules returns why rulesets would reject a push, without those that the account
// can bypass.
func (g githubBranch) rules(ctx context.Context, words map[string]string) ([]string, error) {
	var rules []branchRule
	err := g.get(ctx, fmt.Sprintf("repos/%s/rules/branches/%s?per_page=100", g.Hosted, url.PathEscape(g.name)), &rules)
	if status(err) == http.StatusNotFound || status(err) == http.StatusForbidden {
		return nil, nil // older servers and some plans have no rulesets
	}
	if err != nil {
		return nil, g.problem(ctx, fmt.Sprintf("reading the rules of branch %q of %s", g.name, g.Hosted), err)
	}
	var reasons []string
	passes := map[int64]bool{}
	for _, rule := range rules {
		why, refuses := words[rule.Type]
		if !refuses {
			continue
		}
		pass, known := passes[rule.RulesetID]
		if !known {
			if pass, err = g.bypasses(ctx, rule.RulesetID); err != nil {
				return nil, err
			}
			passes[rule.RulesetID] = pass
		}
		if !pass {
			reasons = append(reasons, why)
		}
	}
	return reasons, nil
}

// bypasses reports whether the account can bypass a ruleset.
func (g githubBranch) bypasses(ctx context.Context, ruleset int64) (bool, error) {
	var found struct {
		Bypass string `json:"current_user_can_bypass"`
	}
	err := g.get(ctx, fmt.Sprintf("repos/%s/rulesets/%d?includes_parents=true", g.Hosted, ruleset), &found)
	if code := status(err); code == http.StatusNotFound || code == http.StatusForbidden {
		return false, nil
	}
	return found.Bypass == "always", g.problem(ctx, "reading a ruleset of "+g.String(), err)
}

// protection returns why the classic protection of a branch would reject a push.
// Only administrators can read it, and it applies to them only if enforced.
func (g githubBranch) protection(ctx context.Context, seen guardedBranch) ([]string, error) {
	if !g.admin {
		if level := seen.Protection.Checks.Enforcement; level != "" && level != "off" {
			return []string{ruleWords["required_status_checks"]}, nil
		}
		return nil, nil
	}
	p, _, err := g.client.Repositories.GetBranchProtection(ctx, g.Owner, g.Name, g.name)
	if code := status(err); code == http.StatusNotFound || code == http.StatusForbidden || errors.Is(err, github.ErrBranchNotProtected) {
		return nil, nil // only rulesets protect it, or the token cannot read the protection
	}
	if err != nil {
		return nil, g.problem(ctx, fmt.Sprintf("reading the protection of branch %q of %s", g.name, g.Hosted), err)
	}
	if p.LockBranch.GetEnabled() {
		return []string{"it is locked"}, nil
	}
	if p.EnforceAdmins == nil || !p.EnforceAdmins.Enabled {
		return nil, nil
	}
	var reasons []string
	if p.RequiredPullRequestReviews != nil && !g.bypassesReview(p.RequiredPullRequestReviews) {
		reasons = append(reasons, ruleWords["pull_request"])
	}
	if p.RequiredStatusChecks != nil {
		reasons = append(reasons, ruleWords["required_status_checks"])
	}
	if r := p.Restrictions; r != nil && !slices.ContainsFunc(r.Users, g.isAccount) && len(r.Teams)+len(r.Apps) == 0 {
		reasons = append(reasons, ruleWords["update"])
	}
	return reasons, nil
}

func (g githubBranch) isAccount(user *github.User) bool {
	return strings.EqualFold(user.GetLogin(), g.account)
}

func (g githubBranch) bypassesReview(r *github.PullRequestReviewsEnforcement) bool {
	return r.BypassPullRequestAllowances != nil && slices.ContainsFunc(r.BypassPullRequestAllowances.Users, g.isAccount)
}
