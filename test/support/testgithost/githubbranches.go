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
	head, err := c.Git.Head(c.target.FullName(), name)
	if err != nil {
		c.fail(http.StatusNotFound, "Branch not found")
		return
	}
	c.reply(http.StatusOK, c.branchObject(c.target, name, head))
}

func (c *gitHubCall) protection() {
	branch := c.r.PathValue("branch")
	p := c.target.Protection[branch]
	if p == nil {
		c.fail(http.StatusNotFound, "Branch not protected")
		return
	}
	c.reply(http.StatusOK, c.protectionObject(c.target, branch, p))
}

func (c *gitHubCall) rules() {
	all := []any{}
	for _, rule := range c.target.Rules[c.r.PathValue("branch")] {
		all = append(all, c.ruleObject(c.target, rule))
	}
	c.reply(http.StatusOK, all)
}

func (c *gitHubCall) ruleset() {
	for _, rules := range c.target.Rules {
		for _, rule := range rules {
			if strconv.FormatInt(rule.Ruleset, 10) != c.r.PathValue("id") {
				continue
			}
			bypass := "never"
			if slices.Contains(rule.Bypass, c.token.Login) {
				bypass = "always"
			}
			c.reply(http.StatusOK, object{
				"id": rule.Ruleset, "name": "rules", "source": c.target.FullName(), "source_type": "Repository", "enforcement": "active", "current_user_can_bypass": bypass,
			})
			return
		}
	}
	c.fail(http.StatusNotFound, "Not Found")
}

func (c *gitHubCall) pulls() {
	q := c.r.URL.Query()
	state, head, base := q.Get("state"), q.Get("head"), q.Get("base")
	c.listPulls(func(p *Pull) bool {
		return (state == "all" || p.Merged == (state == "closed")) && (head == "" || head == c.target.Owner+":"+p.Head) && (base == "" || base == p.Base)
	})
}

func (c *gitHubCall) addPull() {
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
	p := &Pull{Title: wanted.Title, Body: wanted.Body, Head: strings.TrimPrefix(wanted.Head, c.target.Owner+":"), Base: wanted.Base}
	from, err := c.Git.Head(c.target.git, p.Head)
	to, _ := c.Git.Head(c.target.git, p.Base)
	if err == nil && from == to {
		c.refuse(gitHubInvalid("Validation Failed", "PullRequest", "", "custom", fmt.Sprintf("No commits between %s and %s", p.Base, p.Head)))
		return
	}
	c.openPull(p)
}
