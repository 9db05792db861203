package testgithost

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

func (c *gitHubCall) branch() {
	name := c.r.PathValue("branch")
	head, err := c.Git.Head(c.repository.FullName(), name)
	if err != nil {
		c.refuse(http.StatusNotFound, "Branch not found")
		return
	}
	answer := map[string]any{"name": name, "commit": map[string]any{"sha": head}, "protected": len(c.repository.Rules[name]) > 0}
	if p := c.repository.Protection[name]; p != nil {
		level := "off"
		if p.Checks {
			level = "non_admins"
		}
		if p.Checks && p.EnforceAdmins {
			level = "everyone"
		}
		answer["protected"] = true
		answer["protection"] = map[string]any{"enabled": true, "required_status_checks": map[string]any{"enforcement_level": level, "contexts": []any{}}}
	}
	reply(c.w, http.StatusOK, answer)
}

func (c *gitHubCall) protection() {
	p := c.repository.Protection[c.r.PathValue("branch")]
	if p == nil {
		c.refuse(http.StatusNotFound, "Branch not protected")
		return
	}
	answer := map[string]any{
		"enforce_admins": map[string]any{"enabled": p.EnforceAdmins}, "lock_branch": map[string]any{"enabled": p.Locked},
	}
	if p.Reviews {
		answer["required_pull_request_reviews"] = map[string]any{"required_approving_review_count": 1}
	}
	if p.Checks {
		answer["required_status_checks"] = map[string]any{"strict": true, "contexts": []any{"ci"}, "checks": []any{map[string]any{"context": "ci"}}}
	}
	if p.Pushers != nil {
		users := []any{}
		for _, login := range p.Pushers {
			users = append(users, map[string]any{"login": login})
		}
		answer["restrictions"] = map[string]any{"users": users, "teams": []any{}, "apps": []any{}}
	}
	reply(c.w, http.StatusOK, answer)
}

func (c *gitHubCall) rules() {
	all := []any{}
	for _, rule := range c.repository.Rules[c.r.PathValue("branch")] {
		all = append(all, map[string]any{"type": rule.Type, "ruleset_id": rule.Ruleset, "ruleset_source_type": "Repository", "ruleset_source": c.repository.FullName()})
	}
	reply(c.w, http.StatusOK, all)
}

func (c *gitHubCall) ruleset() {
	for _, rules := range c.repository.Rules {
		for _, rule := range rules {
			if strconv.FormatInt(rule.Ruleset, 10) != c.r.PathValue("id") {
				continue
			}
			bypass := "never"
			if slices.Contains(rule.Bypass, c.token.Login) {
				bypass = "always"
			}
			reply(c.w, http.StatusOK, map[string]any{"id": rule.Ruleset, "name": "rules", "enforcement": "active", "current_user_can_bypass": bypass})
			return
		}
	}
	c.refuse(http.StatusNotFound, "Not Found")
}

func (p *GitHubPull) shown(c *gitHubCall) map[string]any {
	return map[string]any{
		"number": p.Number, "title": p.Title, "body": p.Body, "state": map[bool]string{false: "open", true: "closed"}[p.Merged],
		"head": map[string]any{"ref": p.Head, "label": c.repository.Owner + ":" + p.Head}, "base": map[string]any{"ref": p.Base},
		"html_url": fmt.Sprintf("https://%s/%s/pull/%d", c.Hostname, c.repository.FullName(), p.Number),
	}
}

func (c *gitHubCall) pulls() {
	query, all := c.r.URL.Query(), []any{}
	for _, p := range c.repository.Pulls {
		open := query.Get("state") != "closed" && !p.Merged || query.Get("state") == "all" || query.Get("state") == "closed" && p.Merged
		head, base := query.Get("head"), query.Get("base")
		if open && (head == "" || head == c.repository.Owner+":"+p.Head) && (base == "" || base == p.Base) {
			all = append(all, p.shown(c))
		}
	}
	reply(c.w, http.StatusOK, all)
}

func (c *gitHubCall) openPull() {
	var wanted struct {
		Title string `json:"title"`
		Head  string `json:"head"`
		Base  string `json:"base"`
		Body  string `json:"body"`
		Draft bool   `json:"draft"`
	}
	if !c.read(&wanted) {
		return
	}
	full, head := c.repository.FullName(), strings.TrimPrefix(wanted.Head, c.repository.Owner+":")
	from, err := c.Git.Head(full, head)
	if err != nil {
		c.invalid("Validation Failed", "PullRequest", "head", "invalid", "")
		return
	}
	to, err := c.Git.Head(full, wanted.Base)
	if err != nil {
		c.invalid("Validation Failed", "PullRequest", "base", "invalid", "")
		return
	}
	switch {
	case from == to:
		c.invalid("Validation Failed", "PullRequest", "", "custom", fmt.Sprintf("No commits between %s and %s", wanted.Base, head))
	case slices.ContainsFunc(c.repository.Pulls, func(p *GitHubPull) bool { return !p.Merged && p.Head == head && p.Base == wanted.Base }):
		c.invalid("Validation Failed", "PullRequest", "", "custom", fmt.Sprintf("A pull request already exists for %s:%s.", c.repository.Owner, head))
	default:
		p := &GitHubPull{Number: len(c.repository.Pulls) + 1, Title: wanted.Title, Body: wanted.Body, Head: head, Base: wanted.Base}
		c.repository.Pulls = append(c.repository.Pulls, p)
		reply(c.w, http.StatusCreated, p.shown(c))
	}
}
