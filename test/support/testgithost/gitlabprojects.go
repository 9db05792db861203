package testgithost

import (
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// project returns the API object of a project.
func (c *gitlabCall) project(p *Repository) map[string]any {
	web := c.web("/" + p.FullName())
	standard, empty := c.standard(p)
	enabled := map[bool]string{true: "enabled", false: "disabled"}
	body := map[string]any{
		"id": p.id, "name": p.Name, "path": p.Name, "path_with_namespace": p.FullName(), "description": p.Description, "visibility": p.Visibility,
		"archived": p.Archived, "empty_repo": empty, "web_url": web, "http_url_to_repo": web + ".git",
		"ssh_url_to_repo":         "ssh://git@" + c.SSHHostname + "/" + p.git + ".git",
		"repository_access_level": enabled[!p.Disabled], "merge_requests_access_level": enabled[!p.noRequests],
		"namespace": map[string]any{"full_path": p.Owner}, "marked_for_deletion_at": nil,
		"default_branch": standard, "permissions": c.gitlab.permissions(c.user, p),
	}
	if empty {
		body["default_branch"] = nil
	}
	if c.noSSH {
		body["ssh_url_to_repo"] = ""
	}
	if c.gitlab.noHTTP {
		body["http_url_to_repo"] = ""
	}
	if p.deleting {
		body["marked_for_deletion_at"] = "2030-01-02"
	}
	shares := []map[string]any{}
	for path, role := range p.Teams {
		shares = append(shares, map[string]any{"group_id": c.gitlab.group(path).id, "group_full_path": path, "group_access_level": gitlabLevel(role)})
	}
	body["shared_with_groups"] = shares
	return body
}

// permissions returns the permissions in the API object of a project: those of the member and of
// parent groups, but not of groups with which the project is shared.
func (g *GitLab) permissions(u *gitlabUser, p *Repository) map[string]any {
	shown := map[string]any{"project_access": nil, "group_access": nil}
	if l := gitlabLevel(p.Roles[u.name]); l > 0 {
		shown["project_access"] = map[string]any{"access_level": l}
	} else if strings.EqualFold(p.Owner, u.name) {
		shown["project_access"] = map[string]any{"access_level": gitlabLevel("owner")}
	}
	if l := g.groupLevel(u, p.Owner); l > 0 {
		shown["group_access"] = map[string]any{"access_level": l}
	}
	return shown
}

func (c *gitlabCall) listProjects() {
	all := []any{}
	for _, p := range c.repositories {
		if p.Visibility != "private" || c.user.admin || c.gitlab.level(c.user, p) > 0 {
			all = append(all, c.project(p))
		}
	}
	c.page(&c.call, all)
}

func (c *gitlabProject) getProject() { c.reply(http.StatusOK, c.project(c.target)) }

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
}

func (c *gitlabCall) createProject() {
	var in gitlabNewProject
	if !c.read(&in) {
		return
	}
	owner := c.user.name
	var group *gitlabGroup
	if in.Namespace != 0 {
		group = c.gitlab.group(strconv.Itoa(in.Namespace))
		if group == nil || !c.gitlab.creates(c.user, group) {
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
	case c.repository(owner+"/"+in.Path) != nil:
		c.fail(http.StatusBadRequest, map[string]any{"name": []string{"has already been taken"}, "path": []string{"has already been taken"}})
		return
	}
	p := c.create(owner+"/"+in.Path, in.Visibility, "main")
	if group != nil && group.protects {
		c.gitlab.protect(p, "main", "maintainer")
	}
	p.Description = in.Description
	c.reply(http.StatusCreated, c.project(p))
}

// creates reports whether a user can create projects in a group.
func (g *GitLab) creates(u *gitlabUser, group *gitlabGroup) bool {
	if group.creation == "noone" {
		return false
	}
	return u.admin || g.groupLevel(u, group.path) >= gitlabLevel(group.creation)
}

func (c *gitlabProject) editProject() {
	var in struct {
		Visibility  *string `json:"visibility"`
		Description *string `json:"description"`
	}
	if !c.read(&in) {
		return
	}
	if in.Visibility != nil {
		group := c.gitlab.group(c.target.Owner)
		switch {
		case c.level < gitlabLevel("owner"):
			c.forbidden()
			return
		case group != nil && slices.Index(gitlabVisibilities, *in.Visibility) > slices.Index(gitlabVisibilities, group.visibility):
			c.fail(http.StatusBadRequest, map[string]any{"visibility_level": []string{*in.Visibility + " is not allowed in a " + group.visibility + " group."}})
			return
		}
		c.target.Visibility = *in.Visibility
	}
	if in.Description != nil {
		c.target.Description = *in.Description
	}
	c.reply(http.StatusOK, c.project(c.target))
}

func (c *gitlabProject) share() {
	var in struct {
		Group   int     `json:"group_id"`
		Level   int     `json:"group_access"`
		Expires *string `json:"expires_at"`
	}
	if !c.read(&in) {
		return
	}
	if above := c.gitlab.group(c.target.Owner); above != nil && above.shareLock {
		c.fail(http.StatusBadRequest, "The project sharing with group is disabled")
		return
	}
	group := c.seenGroup(strconv.Itoa(in.Group))
	if group == nil {
		return
	}
	switch {
	case strings.HasPrefix(c.target.Owner+"/", group.path+"/"):
		c.fail(http.StatusConflict, "Group cannot be shared with the project that it contains")
	case c.target.Teams[group.path] != "":
		c.fail(http.StatusConflict, "Group already shared with this group")
	case !slices.Contains([]int{10, 20, 30, 40, 50}, in.Level):
		c.fail(http.StatusBadRequest, "group_access does not have a valid value")
	default:
		c.target.Teams[group.path] = gitlabRoles[in.Level/10]
		c.reply(http.StatusCreated, map[string]any{"id": c.id(), "project_id": c.target.id, "group_id": group.id, "group_access": in.Level})
	}
}

func (c *gitlabProject) unshare() {
	group := c.gitlab.group(c.r.PathValue("group"))
	if group == nil || c.target.Teams[group.path] == "" {
		c.fail(http.StatusNotFound, "404 Not Found")
		return
	}
	delete(c.target.Teams, group.path)
	c.done()
}

func (c *gitlabProject) branch() {
	branch := c.r.PathValue("branch")
	head, err := c.Git.Head(c.target.git, branch)
	if err != nil {
		c.fail(http.StatusNotFound, "404 Branch Not Found")
		return
	}
	standard, _ := c.standard(c.target)
	least, protected := c.target.protected[branch]
	pushes := !c.target.Archived && c.level >= gitlabLevel("developer") && (!protected || least != "noone" && c.level >= gitlabLevel(least))
	c.reply(http.StatusOK, map[string]any{
		"name": branch, "default": branch == standard, "protected": protected, "can_push": pushes,
		"commit": map[string]any{"id": head},
	})
}

func (c *gitlabProject) protectedBranches() {
	rules := []any{}
	for branch, least := range c.target.protected {
		words := map[string]string{"noone": "No one", "developer": "Developers + Maintainers", "maintainer": "Maintainers"}[least]
		access := []map[string]any{{"id": 1, "access_level": gitlabLevel(least), "access_level_description": words, "user_id": nil, "group_id": nil}}
		rules = append(rules, map[string]any{"id": len(rules) + 1, "name": branch, "push_access_levels": access, "merge_access_levels": access, "allow_force_push": false})
	}
	c.page(&c.call, rules)
}
