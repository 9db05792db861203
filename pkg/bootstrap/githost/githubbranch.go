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

// branchRule is a rule of a ruleset. The library knows some types and fails on
// others, so that it is read here.
type branchRule struct {
	Type      string `json:"type"`
	RulesetID int64  `json:"ruleset_id"`
}

// ruleWords say why a push to a branch that is there would be refused.
var ruleWords = map[string]string{
	"pull_request":           "changes come by pull request",
	"update":                 "only some may push to it",
	"required_status_checks": "status checks have to pass before",
	"workflows":              "workflows have to pass before",
	"required_deployments":   "deployments have to succeed before",
	"merge_queue":            "changes come by the merge queue",
	"code_scanning":          "code scanning has to pass before",
}

// creationWords say it of a branch that the push would make.
var creationWords = map[string]string{"creation": "only some may create it"}

// protected returns why a push to the branch would be refused, "" where it
// would not, or where GitHub does not say.
func (g *GitHub) protected(ctx context.Context, branch string) (string, error) {
	guarded, exists, err := g.branch(ctx, branch)
	if err != nil {
		return "", err
	}
	words := ruleWords
	if !exists {
		words = creationWords
	}
	reasons, err := g.rules(ctx, branch, words)
	if err != nil {
		return "", err
	}
	if guarded.Protected {
		others, err := g.protection(ctx, branch, guarded)
		if err != nil {
			return "", err
		}
		reasons = append(reasons, others...)
	}
	slices.Sort(reasons)
	return strings.Join(slices.Compact(reasons), ", "), nil
}

// guardedBranch is a branch with what everybody may see of its protection.
type guardedBranch struct {
	Protected  bool `json:"protected"`
	Protection struct {
		Checks struct {
			Enforcement string `json:"enforcement_level"`
		} `json:"required_status_checks"`
	} `json:"protection"`
}

func (g *GitHub) get(ctx context.Context, path string, into any) error {
	request, err := g.api.NewRequest(http.MethodGet, path, nil)
	if err != nil {
		return err
	}
	_, err = g.api.Do(ctx, request, into)
	return err
}

func (g *GitHub) branch(ctx context.Context, name string) (found guardedBranch, exists bool, err error) {
	err = g.get(ctx, fmt.Sprintf("repos/%s/branches/%s", g, url.PathEscape(name)), &found)
	if statusOf(err) == http.StatusNotFound {
		return found, false, nil
	}
	return found, err == nil, g.refused(ctx, fmt.Sprintf("reading branch %q of %s", name, g.Hosted), err)
}

// rules returns why the rulesets would refuse a push, apart from those that
// the token's owner may pass by.
func (g *GitHub) rules(ctx context.Context, branch string, words map[string]string) ([]string, error) {
	var rules []branchRule
	err := g.get(ctx, fmt.Sprintf("repos/%s/rules/branches/%s?per_page=100", g, url.PathEscape(branch)), &rules)
	if statusOf(err) == http.StatusNotFound || statusOf(err) == http.StatusForbidden {
		return nil, nil // older servers have no rulesets, and some plans neither
	}
	if err != nil {
		return nil, g.refused(ctx, fmt.Sprintf("reading the rules of branch %q of %s", branch, g.Hosted), err)
	}
	var reasons []string
	passes := map[int64]bool{}
	for _, rule := range rules {
		why, refuses := words[rule.Type]
		if !refuses {
			continue
		}
		pass, asked := passes[rule.RulesetID]
		if !asked {
			if pass, err = g.passesBy(ctx, rule.RulesetID); err != nil {
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

// passesBy tells whether the token's owner may push in spite of a ruleset.
func (g *GitHub) passesBy(ctx context.Context, ruleset int64) (bool, error) {
	var found struct {
		Bypass string `json:"current_user_can_bypass"`
	}
	err := g.get(ctx, fmt.Sprintf("repos/%s/rulesets/%d?includes_parents=true", g, ruleset), &found)
	if status := statusOf(err); status == http.StatusNotFound || status == http.StatusForbidden {
		return false, nil
	}
	return found.Bypass == "always", g.refused(ctx, "reading a ruleset of "+g.String(), err)
}

// protection returns why the classic protection of a branch would refuse a
// push. It shows itself to administrators alone, whom it does not hold up
// unless it says so.
func (g *GitHub) protection(ctx context.Context, branch string, seen guardedBranch) ([]string, error) {
	if !g.found.repository.GetPermissions()["admin"] {
		if level := seen.Protection.Checks.Enforcement; level != "" && level != "off" {
			return []string{ruleWords["required_status_checks"]}, nil
		}
		return nil, nil
	}
	p, _, err := g.api.Repositories.GetBranchProtection(ctx, g.Owner, g.Name, branch)
	if status := statusOf(err); status == http.StatusNotFound || status == http.StatusForbidden || errors.Is(err, github.ErrBranchNotProtected) {
		return nil, nil // rulesets alone protect it, or the token may not see how
	}
	if err != nil {
		return nil, g.refused(ctx, fmt.Sprintf("reading the protection of branch %q of %s", branch, g.Hosted), err)
	}
	if p.LockBranch.GetEnabled() {
		return []string{"it is locked"}, nil
	}
	if p.EnforceAdmins == nil || !p.EnforceAdmins.Enabled {
		return nil, nil
	}
	var reasons []string
	if p.RequiredPullRequestReviews != nil && !g.mayPassReview(p.RequiredPullRequestReviews) {
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

func (g *GitHub) isAccount(user *github.User) bool {
	return strings.EqualFold(user.GetLogin(), g.found.account)
}

func (g *GitHub) mayPassReview(r *github.PullRequestReviewsEnforcement) bool {
	return r.BypassPullRequestAllowances != nil && slices.ContainsFunc(r.BypassPullRequestAllowances.Users, g.isAccount)
}
