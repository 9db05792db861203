package testgithost

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

func (c *gitHubCall) user() {
	if c.token.Login == "" {
		c.refuse(http.StatusForbidden, "Resource not accessible by integration")
		return
	}
	reply(c.w, http.StatusOK, c.profile(c.token.Login))
}

func (c *gitHubCall) account() {
	login := c.r.PathValue("owner")
	if c.Organizations[login] == nil && !slices.Contains(c.Users, login) {
		c.refuse(http.StatusNotFound, "Not Found")
		return
	}
	reply(c.w, http.StatusOK, c.profile(login))
}

func (c *gitHubCall) organization() {
	org := c.Organizations[c.r.PathValue("org")]
	if org == nil {
		c.refuse(http.StatusNotFound, "Not Found")
		return
	}
	answer := c.organisationProfile(c.r.PathValue("org"))
	if role := org.Roles[c.token.Login]; role == "admin" || role == "member" {
		answer["members_can_create_repositories"] = len(org.MembersCannotCreate) < 3
		for _, visibility := range []string{"public", "private", "internal"} {
			answer["members_can_create_"+visibility+"_repositories"] = !slices.Contains(org.MembersCannotCreate, visibility)
		}
		answer["deploy_keys_enabled_for_repositories"] = !org.NoDeployKeys
	}
	reply(c.w, http.StatusOK, answer)
}

func (c *gitHubCall) membership() {
	name := c.r.PathValue("org")
	org := c.Organizations[name]
	if org == nil || org.Roles[c.token.Login] == "" {
		c.refuse(http.StatusNotFound, "Not Found")
		return
	}
	role, state := org.Roles[c.token.Login], "active"
	if role == "pending" {
		role, state = "member", "pending"
	}
	reply(c.w, http.StatusOK, object{
		"role": role, "state": state, "url": c.apiURL("/orgs/" + name + "/memberships/" + c.token.Login), "organization_url": c.apiURL("/orgs/" + name),
		"organization": c.organisation(name), "user": c.gitHubView.account(c.token.Login),
	})
}

// teamThere reports whether the account can read the team of the path.
func (c *gitHubCall) teamThere() bool {
	org := c.Organizations[c.r.PathValue("org")]
	if org != nil && (org.Roles[c.token.Login] != "" || c.token.Login == "") && org.Teams[c.r.PathValue("team")] != nil {
		return true
	}
	c.refuse(http.StatusNotFound, "Not Found")
	return false
}

func (c *gitHubCall) team() {
	if c.teamThere() {
		reply(c.w, http.StatusOK, c.teamObject(c.r.PathValue("org"), c.r.PathValue("team")))
	}
}

func (c *gitHubCall) teamRepository() {
	if !c.teamThere() {
		return
	}
	role := c.repository.Teams[c.r.PathValue("team")]
	switch {
	case role == "":
		c.refuse(http.StatusNotFound, "Not Found")
	case !strings.Contains(c.r.Header.Get("Accept"), "repository+json"):
		c.w.WriteHeader(http.StatusNoContent)
	default:
		reply(c.w, http.StatusOK, c.repositoryObject(c.repository, role))
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
		c.invalid("Validation Failed", "Team", "permission", "invalid", "")
		return
	}
	c.repository.Teams[c.r.PathValue("team")] = asked.Permission
	c.w.WriteHeader(http.StatusNoContent)
}

func (c *gitHubCall) get() {
	reply(c.w, http.StatusOK, c.fullRepository(c.repository, c.role(c.repository, c.token.Login)))
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
		c.refuse(http.StatusForbidden, "Resource not accessible by integration")
	case c.read(&wanted) && wanted.visibility() == "internal":
		c.invalid("Repository creation failed.", "Repository", "visibility", "custom", "Visibility can't be internal")
	case wanted.Name != "":
		c.create(c.token.Login, wanted)
	}
}

func (c *gitHubCall) createForOrganization() {
	name := c.r.PathValue("org")
	org := c.Organizations[name]
	var wanted gitHubWanted
	if org == nil {
		c.refuse(http.StatusNotFound, "Not Found")
		return
	}
	if !c.read(&wanted) {
		return
	}
	role := org.Roles[c.token.Login]
	if c.token.Login != "" && role != "admin" && (role != "member" || slices.Contains(org.MembersCannotCreate, wanted.visibility())) {
		c.refuse(http.StatusForbidden, "You need admin access to the organization before adding a repository to it.")
		return
	}
	c.create(name, wanted)
}

func (c *gitHubCall) create(owner string, wanted gitHubWanted) {
	full := owner + "/" + wanted.Name
	if c.Repositories[full] != nil {
		c.invalid("Repository creation failed.", "Repository", "name", "custom", "name already exists on this account")
		return
	}
	if c.token.Classic && wanted.visibility() != "public" && !slices.Contains(c.token.Scopes, "repo") {
		c.refuse(http.StatusNotFound, "Not Found")
		return
	}
	r, err := c.add(full, wanted.visibility())
	if err != nil {
		panic(err) // the temporary folder was removed
	}
	if wanted.Description != nil {
		r.Description = *wanted.Description
	}
	if c.token.Login != "" {
		r.Roles[c.token.Login] = "admin"
	}
	if wanted.AutoInit {
		if err := c.Git.Commit(full, "main", "Initial commit", map[string]string{"README.md": "# " + wanted.Name + "\n"}); err != nil {
			panic(err)
		}
	}
	reply(c.w, http.StatusCreated, c.fullRepository(r, "admin"))
}

func (c *gitHubCall) edit() {
	var wanted gitHubWanted
	if !c.read(&wanted) {
		return
	}
	if c.repository.Archived {
		c.refuse(http.StatusForbidden, "Repository was archived so is read-only.")
		return
	}
	if wanted.Description != nil {
		c.repository.Description = *wanted.Description
	}
	if wanted.Visibility != "" || wanted.Private != nil {
		c.repository.Visibility = wanted.visibility()
	}
	c.get()
}

// keys lists deploy keys in pages.
func (c *gitHubCall) keys() {
	query := c.r.URL.Query()
	size, err := strconv.Atoi(query.Get("per_page"))
	if err != nil || size < 1 || size > 100 {
		size = 30
	}
	page, err := strconv.Atoi(query.Get("page"))
	if err != nil || page < 1 {
		page = 1
	}
	all := []any{}
	for i, key := range c.repository.Keys {
		if i/size == page-1 {
			all = append(all, c.keyObject(c.repository, key))
		}
	}
	if page*size < len(c.repository.Keys) {
		c.w.Header().Set("Link", fmt.Sprintf(`<https://%s%s?per_page=%d&page=%d>; rel="next"`, c.Hostname, c.r.URL.Path, size, page+1))
	}
	reply(c.w, http.StatusOK, all)
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
	fields := strings.Fields(wanted.Key)
	org := c.Organizations[c.repository.Owner]
	switch {
	case org != nil && org.NoDeployKeys:
		c.invalid("Validation Failed", "PublicKey", "", "custom", "Deploy keys are disabled for this repository")
	case len(fields) < 2 || !strings.HasPrefix(fields[0], "ssh-") && !strings.HasPrefix(fields[0], "ecdsa-"):
		c.invalid("Validation Failed", "PublicKey", "key", "custom", "key is invalid. You must supply a key in OpenSSH public key format")
	case c.keyInUse(fields[0] + " " + fields[1]):
		c.invalid("Validation Failed", "PublicKey", "key", "custom", "key is already in use")
	default:
		key := &GitHubKey{ID: c.id(), Title: wanted.Title, Key: fields[0] + " " + fields[1], ReadOnly: wanted.ReadOnly}
		c.repository.Keys = append(c.repository.Keys, key)
		reply(c.w, http.StatusCreated, c.keyObject(c.repository, key))
	}
}

func (c *gitHubCall) keyInUse(key string) bool {
	for _, r := range c.Repositories {
		if slices.ContainsFunc(r.Keys, func(k *GitHubKey) bool { return k.Key == key }) {
			return true
		}
	}
	return slices.Contains(c.UserKeys, key)
}

func (c *gitHubCall) removeKey() {
	i := slices.IndexFunc(c.repository.Keys, func(k *GitHubKey) bool { return strconv.FormatInt(k.ID, 10) == c.r.PathValue("id") })
	if i < 0 {
		c.refuse(http.StatusNotFound, "Not Found")
		return
	}
	c.repository.Keys = slices.Delete(c.repository.Keys, i, i+1)
	c.w.WriteHeader(http.StatusNoContent)
}
