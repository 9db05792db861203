package testgithost

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// scheme is the scheme of the stand-in's URLs.
const scheme = "https://"

func (g *GitLab) describe(c *gitlabCall, p *gitlabProject) map[string]any {
	owner, name, _ := cutLast(p.path)
	web := g.web(p)
	standard, empty := g.standard(p)
	body := map[string]any{
		"id": p.id, "name": name, "path": name, "path_with_namespace": p.path, "description": p.description, "visibility": p.visibility,
		"archived": p.archived, "empty_repo": empty, "web_url": web, "http_url_to_repo": web + ".git",
		"ssh_url_to_repo":         "ssh://git@" + g.SSHHostname + "/" + p.path + ".git",
		"repository_access_level": p.repository, "merge_requests_access_level": p.requests,
		"namespace": map[string]any{"full_path": owner}, "marked_for_deletion_at": nil,
		"default_branch": standard, "permissions": g.permissions(c.user, p),
	}
	if empty {
		body["default_branch"] = nil
	}
	if g.noSSH {
		body["ssh_url_to_repo"] = ""
	}
	if g.noHTTP {
		body["http_url_to_repo"] = ""
	}
	if p.deleting {
		body["marked_for_deletion_at"] = "2030-01-02"
	}
	shares := []map[string]any{}
	for _, s := range p.shares {
		shares = append(shares, map[string]any{"group_id": s.group.id, "group_full_path": s.group.path, "group_access_level": s.level})
	}
	body["shared_with_groups"] = shares
	return body
}

// web returns the URL of the web page of a project.
func (g *GitLab) web(p *gitlabProject) string {
	return scheme + strings.TrimSuffix(g.Hostname+"/"+g.Base, "/") + "/" + p.path
}

// permissions returns the permissions that GitLab reports with a project: those of the
// member and of parent groups, but not of groups that it is shared with.
func (g *GitLab) permissions(u *gitlabUser, p *gitlabProject) map[string]any {
	shown := map[string]any{"project_access": nil, "group_access": nil}
	owner, _, _ := cutLast(p.path)
	if l := p.members[u]; l > 0 {
		shown["project_access"] = map[string]any{"access_level": l}
	} else if strings.EqualFold(owner, u.name) {
		shown["project_access"] = map[string]any{"access_level": gitlabLevels["owner"]}
	}
	if l := g.groupLevel(u, owner); l > 0 {
		shown["group_access"] = map[string]any{"access_level": l}
	}
	return shown
}

// standard returns the default branch: the first push to an empty repository sets it.
func (g *GitLab) standard(p *gitlabProject) (branch string, empty bool) {
	branches, err := g.Git.Branches(p.path)
	if err != nil {
		panic(err)
	}
	branch, err = g.Git.Default(p.path)
	if err != nil {
		panic(err)
	}
	if len(branches) == 0 || slices.Contains(branches, branch) {
		return branch, len(branches) == 0
	}
	if err := g.Git.SetDefault(p.path, branches[0]); err != nil {
		panic(err)
	}
	return branches[0], false
}

func (g *GitLab) getProjects(c *gitlabCall) {
	all := []map[string]any{}
	for _, p := range g.projects {
		if p.visibility != "private" || c.user.admin || g.level(c.user, p) > 0 {
			all = append(all, g.describe(c, p))
		}
	}
	page(c, all)
}

func (g *GitLab) getProject(c *gitlabCall) { c.reply(http.StatusOK, g.describe(c, c.project)) }

var (
	gitlabPath         = regexp.MustCompile(`^[A-Za-z0-9_.][A-Za-z0-9_.-]*$`)
	gitlabVisibilities = []string{"private", "internal", "public"}
)

type gitlabNewProject struct {
	Name        string `json:"name"`
	Path        string `json:"path"`
	Namespace   int    `json:"namespace_id"`
	Visibility  string `json:"visibility"`
	Description string `json:"description"`
	Readme      bool   `json:"initialize_with_readme"`
	Branch      string `json:"default_branch"`
}

func (g *GitLab) createProject(c *gitlabCall) {
	var in gitlabNewProject
	if err := decode(c.r, &in); err != nil || in.Name == "" && in.Path == "" || in.Branch != "" && !in.Readme {
		g.unknownCall(c.w, c.r)
		return
	}
	owner := c.user.name
	var group *gitlabGroup
	if in.Namespace != 0 {
		group = g.group(strconv.Itoa(in.Namespace))
		if group == nil || !g.creates(c.user, group) {
			c.fail(http.StatusBadRequest, map[string]any{"namespace": []string{"is not valid"}})
			return
		}
		if slices.Index(gitlabVisibilities, in.Visibility) > slices.Index(gitlabVisibilities, group.visibility) {
			c.fail(http.StatusBadRequest, map[string]any{"visibility_level": []string{in.Visibility + " is not allowed in a " + group.visibility + " group."}})
			return
		}
		owner = group.path
	}
	switch {
	case !gitlabPath.MatchString(in.Path) || strings.HasSuffix(in.Path, ".git"):
		c.fail(http.StatusBadRequest, map[string]any{"path": []string{"can contain only letters, digits, '_', '-' and '.'."}})
		return
	case g.project(owner+"/"+in.Path) != nil:
		c.fail(http.StatusBadRequest, map[string]any{"name": []string{"has already been taken"}, "path": []string{"has already been taken"}})
		return
	}
	p, err := g.newProject(owner+"/"+in.Path, in.Visibility)
	if err == nil && in.Readme {
		branch := in.Branch
		if branch == "" {
			branch = "main"
		}
		err = g.Git.Commit(p.path, branch, "Initial commit", map[string]string{"README.md": "# " + in.Name + "\n"})
	}
	if err == nil && group != nil && group.protects {
		err = g.protect(p, "main", gitlabLevels["maintainer"])
	}
	if err != nil {
		panic(err)
	}
	p.description = in.Description
	c.reply(http.StatusCreated, g.describe(c, p))
}

// creates reports whether a user can create projects in a group.
func (g *GitLab) creates(u *gitlabUser, group *gitlabGroup) bool {
	if group.creation == "noone" {
		return false
	}
	return u.admin || g.groupLevel(u, group.path) >= gitlabLevels[group.creation]
}

func (g *GitLab) editProject(c *gitlabCall) {
	var in struct {
		Visibility  *string `json:"visibility"`
		Description *string `json:"description"`
	}
	if err := decode(c.r, &in); err != nil {
		g.unknownCall(c.w, c.r)
		return
	}
	if in.Visibility != nil {
		owner, _, _ := cutLast(c.project.path)
		group := g.group(owner)
		switch {
		case c.level < gitlabLevels["owner"]:
			c.forbidden()
			return
		case group != nil && slices.Index(gitlabVisibilities, *in.Visibility) > slices.Index(gitlabVisibilities, group.visibility):
			c.fail(http.StatusBadRequest, map[string]any{"visibility_level": []string{*in.Visibility + " is not allowed in a " + group.visibility + " group."}})
			return
		}
		c.project.visibility = *in.Visibility
	}
	if in.Description != nil {
		c.project.description = *in.Description
	}
	c.reply(http.StatusOK, g.describe(c, c.project))
}

func (g *GitLab) share(c *gitlabCall) {
	var in struct {
		Group   int     `json:"group_id"`
		Level   int     `json:"group_access"`
		Expires *string `json:"expires_at"`
	}
	if err := decode(c.r, &in); err != nil {
		g.unknownCall(c.w, c.r)
		return
	}
	owner, _, _ := cutLast(c.project.path)
	if above := g.group(owner); above != nil && above.shareLock {
		c.fail(http.StatusBadRequest, "The project sharing with group is disabled")
		return
	}
	group := g.seenGroup(c, strconv.Itoa(in.Group))
	if group == nil {
		return
	}
	switch {
	case strings.HasPrefix(owner+"/", group.path+"/"):
		c.fail(http.StatusConflict, "Group cannot be shared with the project that it contains")
	case slices.ContainsFunc(c.project.shares, func(s *gitlabShared) bool { return s.group == group }):
		c.fail(http.StatusConflict, "Group already shared with this group")
	case !slices.Contains([]int{10, 15, 20, 30, 40, 50}, in.Level):
		c.fail(http.StatusBadRequest, "group_access does not have a valid value")
	default:
		c.project.shares = append(c.project.shares, &gitlabShared{group, in.Level})
		c.reply(http.StatusCreated, map[string]any{"id": g.id(), "project_id": c.project.id, "group_id": group.id, "group_access": in.Level})
	}
}

func (g *GitLab) unshare(c *gitlabCall) {
	before := len(c.project.shares)
	c.project.shares = slices.DeleteFunc(c.project.shares, func(s *gitlabShared) bool { return strconv.Itoa(s.group.id) == c.r.PathValue("group") })
	if len(c.project.shares) == before {
		c.fail(http.StatusNotFound, "404 Not Found")
		return
	}
	c.reply(http.StatusNoContent, nil)
}

// mayPush reports whether a role can push to a branch.
func (p *gitlabProject) mayPush(level int, branch string) bool {
	if p.archived || level < gitlabLevels["developer"] {
		return false
	}
	least, protected := p.protected[branch]
	return !protected || least > 0 && level >= least
}

func (g *GitLab) getBranch(c *gitlabCall) {
	branch := c.r.PathValue("branch")
	head, err := g.Git.Head(c.project.path, branch)
	if err != nil {
		c.fail(http.StatusNotFound, "404 Branch Not Found")
		return
	}
	standard, _ := g.standard(c.project)
	_, protected := c.project.protected[branch]
	c.reply(http.StatusOK, map[string]any{
		"name": branch, "default": branch == standard, "protected": protected, "can_push": c.project.mayPush(c.level, branch),
		"commit": map[string]any{"id": head},
	})
}

func (g *GitLab) getProtected(c *gitlabCall) {
	rules := []map[string]any{}
	for branch, least := range c.project.protected {
		word := map[int]string{0: "No one", 30: "Developers + Maintainers", 40: "Maintainers"}[least]
		if word == "" {
			panic(fmt.Sprintf("no rule can ask for level %d", least))
		}
		access := []map[string]any{{"id": 1, "access_level": least, "access_level_description": word, "user_id": nil, "group_id": nil}}
		rules = append(rules, map[string]any{"id": len(rules) + 1, "name": branch, "push_access_levels": access, "merge_access_levels": access, "allow_force_push": false})
	}
	page(c, rules)
}
