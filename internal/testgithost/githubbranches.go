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
	reply(c.w, http.StatusOK, c.branchObject(c.repository, name, head))
}

func (c *gitHubCall) protection() {
	branch := c.r.PathValue("branch")
	p := c.repository.Protection[branch]
	if p == nil {
		c.refuse(http.StatusNotFound, "Branch not protected")
		return
	}
	reply(c.w, http.StatusOK, c.protectionObject(c.repository, branch, p))
}

func (c *gitHubCall) rules() {
	all := []any{}
	for _, rule := range c.repository.Rules[c.r.PathValue("branch")] {
		all = append(all, c.ruleObject(c.repository, rule))
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
			reply(c.w, http.StatusOK, object{
				"id": rule.Ruleset, "name": "rules", "source": c.repository.FullName(), "source_type": "Repository", "enforcement": "active", "current_user_can_bypass": bypass,
			})
			return
		}
	}
	c.refuse(http.StatusNotFound, "Not Found")
}

func (c *gitHubCall) pulls() {
	query, all := c.r.URL.Query(), []any{}
	for _, p := range c.repository.Pulls {
		open := query.Get("state") != "closed" && !p.Merged || query.Get("state") == "all" || query.Get("state") == "closed" && p.Merged
		head, base := query.Get("head"), query.Get("base")
		if open && (head == "" || head == c.repository.Owner+":"+p.Head) && (base == "" || base == p.Base) {
			all = append(all, c.pullObject(c.repository, p))
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
		reply(c.w, http.StatusCreated, c.fullPull(c.repository, p))
	}
}
