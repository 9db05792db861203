package github

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/google/go-github/v60/github"

	"github.com/fluxkit/flux/internal/githost/rest"
)

// branchRule is a rule of a ruleset. The library fails on unknown rule types.
type branchRule struct {
	Type      string `json:"type"`
	RulesetID int64  `json:"ruleset_id"`
}

// ruleWords describes the rules that reject pushes to an existing branch.
var ruleWords = map[string]string{
	"pull_request":           "changes require a pull request",
	"update":                 "pushes are restricted",
	"required_status_checks": "status checks are required",
	"workflows":              "workflows are required",
	"required_deployments":   "deployments are required",
	"merge_queue":            "changes require the merge queue",
	"code_scanning":          "code scanning is required",
}

// creationWords describes the rules that reject a push that creates the branch.
var creationWords = map[string]string{"creation": "creation is restricted"}

// branch is a branch of a repository and its protection.
type branch struct {
	of   *driver
	name string
	// admin reports whether the account administers the repository.
	admin bool
}

// protected returns the reason why a push to the branch would be rejected, "" if no reason is known.
func (b branch) protected(ctx context.Context) (string, error) {
	guarded, exists, err := b.read(ctx)
	if err != nil {
		return "", err
	}
	words := ruleWords
	if !exists {
		words = creationWords
	}
	reasons, err := b.rules(ctx, words)
	if err != nil {
		return "", err
	}
	if guarded.Protected {
		others, err := b.protection(ctx, guarded)
		if err != nil {
			return "", err
		}
		reasons = append(reasons, others...)
	}
	slices.Sort(reasons)
	return strings.Join(slices.Compact(reasons), ", "), nil
}

// guardedBranch is a branch with the part of its protection that everyone with read access can see.
type guardedBranch struct {
	Protected  bool `json:"protected"`
	Protection struct {
		Checks struct {
			Enforcement string `json:"enforcement_level"`
		} `json:"required_status_checks"`
	} `json:"protection"`
}

// read returns the branch, if it exists.
func (b branch) read(ctx context.Context) (found guardedBranch, exists bool, err error) {
	err = b.of.get(ctx, fmt.Sprintf("repos/%s/branches/%s", b.of.Hosted, url.PathEscape(b.name)), &found)
	if rest.Missing(err) {
		return found, false, nil
	}
	return found, err == nil, b.of.API.Explain(ctx, fmt.Sprintf("reading branch %q of %s", b.name, b.of.Hosted), err)
}

// rules returns why rulesets that the account cannot bypass would reject a push.
func (b branch) rules(ctx context.Context, words map[string]string) ([]string, error) {
	var rules []branchRule
	err := b.of.get(ctx, fmt.Sprintf("repos/%s/rules/branches/%s?per_page=100", b.of.Hosted, url.PathEscape(b.name)), &rules)
	if rest.Missing(err) || rest.Denied(err) {
		return nil, nil // older servers and some plans do not support rulesets
	}
	if err != nil {
		return nil, b.of.API.Explain(ctx, fmt.Sprintf("reading the rules of branch %q of %s", b.name, b.of.Hosted), err)
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
			if pass, err = b.bypasses(ctx, rule.RulesetID); err != nil {
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
func (b branch) bypasses(ctx context.Context, ruleset int64) (bool, error) {
	var found struct {
		Bypass string `json:"current_user_can_bypass"`
	}
	err := b.of.get(ctx, fmt.Sprintf("repos/%s/rulesets/%d?includes_parents=true", b.of.Hosted, ruleset), &found)
	if rest.Missing(err) || rest.Denied(err) {
		return false, nil
	}
	return found.Bypass == "always", b.of.API.Explain(ctx, "reading a ruleset of "+b.of.Hosted.String(), err)
}

// protection returns why the classic protection of a branch would reject a push. Only administrators can read the
// protection, and it applies to them only if it is enforced for administrators.
func (b branch) protection(ctx context.Context, seen guardedBranch) ([]string, error) {
	if !b.admin {
		if level := seen.Protection.Checks.Enforcement; level != "" && level != "off" {
			return []string{ruleWords["required_status_checks"]}, nil
		}
		return nil, nil
	}
	p, err := call(b.of.client.Repositories.GetBranchProtection(ctx, b.of.Hosted.Owner, b.of.Hosted.Name, b.name))
	if rest.Missing(err) || rest.Denied(err) || errors.Is(err, github.ErrBranchNotProtected) {
		return nil, nil // only rulesets protect the branch, or the token cannot read the protection
	}
	if err != nil {
		return nil, b.of.API.Explain(ctx, fmt.Sprintf("reading the protection of branch %q of %s", b.name, b.of.Hosted), err)
	}
	if p.LockBranch.GetEnabled() {
		return []string{"it is locked"}, nil
	}
	if p.EnforceAdmins == nil || !p.EnforceAdmins.Enabled {
		return nil, nil
	}
	var reasons []string
	if p.RequiredPullRequestReviews != nil && !b.bypassesReview(p.RequiredPullRequestReviews) {
		reasons = append(reasons, ruleWords["pull_request"])
	}
	if p.RequiredStatusChecks != nil {
		reasons = append(reasons, ruleWords["required_status_checks"])
	}
	if r := p.Restrictions; r != nil && !slices.ContainsFunc(r.Users, b.isAccount) && len(r.Teams)+len(r.Apps) == 0 {
		reasons = append(reasons, ruleWords["update"])
	}
	return reasons, nil
}

func (b branch) isAccount(user *github.User) bool {
	return strings.EqualFold(user.GetLogin(), b.of.API.Account)
}

func (b branch) bypassesReview(r *github.PullRequestReviewsEnforcement) bool {
	return r.BypassPullRequestAllowances != nil && slices.ContainsFunc(r.BypassPullRequestAllowances.Users, b.isAccount)
}
