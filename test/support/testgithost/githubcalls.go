package testgithost

import (
	"net/http"
	"slices"
	"strings"
)

func (c *gitHubCall) user() {
	if c.token.Login == "" {
		c.fail(http.StatusForbidden, "Resource not accessible by integration")
		return
	}
	c.reply(http.StatusOK, c.profile(c.token.Login))
}

func (c *gitHubCall) account() {
	login := c.r.PathValue("owner")
	if c.github.Organizations[login] == nil && !slices.Contains(c.github.Users, login) {
		c.fail(http.StatusNotFound, "Not Found")
		return
	}
	c.reply(http.StatusOK, c.profile(login))
}

func (c *gitHubCall) organization() {
	org := c.github.Organizations[c.r.PathValue("org")]
	if org == nil {
		c.fail(http.StatusNotFound, "Not Found")
		return
	}
	answer := c.organizationProfile(c.r.PathValue("org"))
	if role := org.Roles[c.token.Login]; role == "admin" || role == "member" {
		answer["members_can_create_repositories"] = len(org.MembersCannotCreate) < 3
		for _, visibility := range []string{"public", "private", "internal"} {
			answer["members_can_create_"+visibility+"_repositories"] = !slices.Contains(org.MembersCannotCreate, visibility)
		}
		answer["deploy_keys_enabled_for_repositories"] = !org.NoDeployKeys
	}
	c.reply(http.StatusOK, answer)
}

func (c *gitHubCall) membership() {
	name := c.r.PathValue("org")
	org := c.github.Organizations[name]
	if org == nil || org.Roles[c.token.Login] == "" {
		c.fail(http.StatusNotFound, "Not Found")
		return
	}
	role, state := org.Roles[c.token.Login], "active"
	if role == "pending" {
		role, state = "member", "pending"
	}
	c.reply(http.StatusOK, object{
		"role": role, "state": state, "url": c.apiURL("/orgs/" + name + "/memberships/" + c.token.Login), "organization_url": c.apiURL("/orgs/" + name),
		"organization": c.organizationReference(name), "user": c.gitHubView.account(c.token.Login),
	})
}

// teamThere reports whether the team of the path exists and the account can read it.
func (c *gitHubCall) teamThere() bool {
	org := c.github.Organizations[c.r.PathValue("org")]
	if org != nil && (org.Roles[c.token.Login] != "" || c.token.Login == "") && org.Teams[c.r.PathValue("team")] != nil {
		return true
	}
	c.fail(http.StatusNotFound, "Not Found")
	return false
}

func (c *gitHubCall) team() {
	if c.teamThere() {
		c.reply(http.StatusOK, c.teamObject(c.r.PathValue("org"), c.r.PathValue("team")))
	}
}

func (c *gitHubCall) teamRepository() {
	if !c.teamThere() {
		return
	}
	role := c.target.Teams[c.r.PathValue("team")]
	switch {
	case role == "":
		c.fail(http.StatusNotFound, "Not Found")
	case !strings.Contains(c.r.Header.Get("Accept"), "repository+json"):
		c.done()
	default:
		c.reply(http.StatusOK, c.repositoryObject(c.target, role))
	}
}

func (c *gitHubCall) giveTeam() {
	var asked struct {
		Permission string `json:"permission"`
	}
	if !c.teamThere() || !c.read(&asked) {
		return
	}
	if !slices.Contains(gitHubRoles, asked.Permission) {
		c.refuse(gitHubInvalid("Validation Failed", "Team", "permission", "invalid", ""))
		return
	}
	c.target.Teams[c.r.PathValue("team")] = asked.Permission
	c.done()
}

func (c *gitHubCall) get() {
	c.reply(http.StatusOK, c.fullRepository(c.target, c.github.role(c.target, c.token.Login)))
}

// gitHubWanted is the body of requests that create or edit a repository.
type gitHubWanted struct {
	Name        string  `json:"name"`
	Description *string `json:"description"`
	Private     *bool   `json:"private"`
	Visibility  string  `json:"visibility"`
	AutoInit    bool    `json:"auto_init"`
}

func (w gitHubWanted) visibility() string {
	switch {
	case w.Visibility != "":
		return w.Visibility
	case w.Private != nil && *w.Private:
		return "private"
	default:
		return "public"
	}
}

func (c *gitHubCall) createForUser() {
	var wanted gitHubWanted
	switch {
	case c.token.Login == "":
		c.fail(http.StatusForbidden, "Resource not accessible by integration")
	case c.read(&wanted) && wanted.visibility() == "internal":
		c.refuse(gitHubInvalid("Repository creation failed.", "Repository", "visibility", "custom", "Visibility can't be internal"))
	case wanted.Name != "":
		c.create(c.token.Login, wanted)
	}
}

func (c *gitHubCall) createForOrganization() {
	name := c.r.PathValue("org")
	org := c.github.Organizations[name]
	var wanted gitHubWanted
	if org == nil {
		c.fail(http.StatusNotFound, "Not Found")
		return
	}
	if !c.read(&wanted) {
		return
	}
	role := org.Roles[c.token.Login]
	if c.token.Login != "" && role != "admin" && (role != "member" || slices.Contains(org.MembersCannotCreate, wanted.visibility())) {
		c.fail(http.StatusForbidden, "You need admin access to the organization before adding a repository to it.")
		return
	}
	c.create(name, wanted)
}

func (c *gitHubCall) create(owner string, wanted gitHubWanted) {
	full := owner + "/" + wanted.Name
	if c.github.repository(full) != nil {
		c.refuse(gitHubInvalid("Repository creation failed.", "Repository", "name", "custom", "name already exists on this account"))
		return
	}
	if c.token.Classic && wanted.visibility() != "public" && !slices.Contains(c.token.Scopes, "repo") {
		c.fail(http.StatusNotFound, "Not Found")
		return
	}
	r := c.github.add(full, wanted.visibility())
	if wanted.Description != nil {
		r.Description = *wanted.Description
	}
	if c.token.Login != "" {
		r.Roles[c.token.Login] = "admin"
	}
	if wanted.AutoInit {
		c.must(c.Git.Commit(full, "main", "Initial commit", map[string]string{"README.md": "# " + wanted.Name + "\n"}))
	}
	c.reply(http.StatusCreated, c.fullRepository(r, "admin"))
}

func (c *gitHubCall) edit() {
	var wanted gitHubWanted
	if !c.read(&wanted) {
		return
	}
	if c.target.Archived {
		c.fail(http.StatusForbidden, "Repository was archived so is read-only.")
		return
	}
	if wanted.Description != nil {
		c.target.Description = *wanted.Description
	}
	if wanted.Visibility != "" || wanted.Private != nil {
		c.target.Visibility = wanted.visibility()
	}
	c.get()
}

func (c *gitHubCall) addKey() {
	var wanted struct {
		Title    string `json:"title"`
		Key      string `json:"key"`
		ReadOnly bool   `json:"read_only"`
	}
	if !c.read(&wanted) {
		return
	}
	if org := c.github.Organizations[c.target.Owner]; org != nil && org.NoDeployKeys {
		c.refuse(gitHubInvalid("Validation Failed", "PublicKey", "", "custom", "Deploy keys are disabled for this repository"))
		return
	}
	key := bareKey(wanted.Key)
	taken := slices.Contains(c.github.UserKeys, key) || slices.ContainsFunc(c.repositories, func(r *Repository) bool { return keyIn(r, key) != nil })
	c.call.addKey(&Key{Title: wanted.Title, Key: key, ReadOnly: wanted.ReadOnly}, taken, gitHubInvalid("Validation Failed", "PublicKey", "key", "custom", "key is already in use"))
}
