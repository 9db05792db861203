package testgithost

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/crypto/ssh"
)

func (g *GitLab) describeKey(p *gitlabProject, k *gitlabKey) map[string]any {
	body := map[string]any{"id": k.id, "title": k.title, "key": k.text, "can_push": p.keys[k], "expires_at": nil}
	if k.expired {
		body["expires_at"] = "2001-01-01T00:00:00.000Z"
	}
	return body
}

// sorted returns the keys of a project in the order of their creation.
func (p *gitlabProject) sorted() []*gitlabKey {
	return slices.SortedFunc(maps.Keys(p.keys), func(a, b *gitlabKey) int { return a.id - b.id })
}

func (g *GitLab) getKeys(c *gitlabCall) {
	all := []map[string]any{}
	for _, k := range c.project.sorted() {
		all = append(all, g.describeKey(c.project, k))
	}
	page(c, all)
}

// addKey returns a key that the project has already, enables a key of another project
// that the user can read, and rejects other existing keys, as documented.
func (g *GitLab) addKey(c *gitlabCall) {
	var in struct {
		Title   string `json:"title"`
		Key     string `json:"key"`
		CanPush bool   `json:"can_push"`
	}
	if err := decode(c.r, &in); err != nil || in.Title == "" {
		g.unknownCall(c.w, c.r)
		return
	}
	wanted, _, _, _, err := ssh.ParseAuthorizedKey([]byte(in.Key))
	if err != nil {
		c.fail(http.StatusBadRequest, map[string]any{"deploy_key.key": []string{"is invalid"}})
		return
	}
	for _, k := range g.keys {
		if known, _, _, _, err := ssh.ParseAuthorizedKey([]byte(k.text)); err != nil || string(known.Marshal()) != string(wanted.Marshal()) {
			continue
		}
		_, has := c.project.keys[k]
		if !has && !g.sees(c.user, k) {
			c.fail(http.StatusBadRequest, map[string]any{"deploy_key.fingerprint_sha256": []string{"has already been taken"}})
			return
		}
		if !has {
			c.project.keys[k] = in.CanPush
		}
		c.reply(http.StatusCreated, g.describeKey(c.project, k))
		return
	}
	k := &gitlabKey{id: g.id(), title: in.Title, text: in.Key}
	g.keys = append(g.keys, k)
	c.project.keys[k] = in.CanPush
	c.reply(http.StatusCreated, g.describeKey(c.project, k))
}

// sees reports whether a key belongs to a project in which a user has a role.
func (g *GitLab) sees(u *gitlabUser, k *gitlabKey) bool {
	return slices.ContainsFunc(g.projects, func(p *gitlabProject) bool {
		_, has := p.keys[k]
		return has && g.level(u, p) > 0
	})
}

// keyOf returns the key of the path. It responds itself if the project does not have
// it.
func (g *GitLab) keyOf(c *gitlabCall) *gitlabKey {
	for k := range c.project.keys {
		if strconv.Itoa(k.id) == c.r.PathValue("key") {
			return k
		}
	}
	c.fail(http.StatusNotFound, "404 Deploy Key Not Found")
	return nil
}

func (g *GitLab) editKey(c *gitlabCall) {
	var in struct {
		Title   *string `json:"title"`
		CanPush *bool   `json:"can_push"`
	}
	k := g.keyOf(c)
	if k == nil {
		return
	}
	if err := decode(c.r, &in); err != nil {
		g.unknownCall(c.w, c.r)
		return
	}
	if in.CanPush != nil {
		c.project.keys[k] = *in.CanPush
	}
	if in.Title != nil {
		k.title = *in.Title
	}
	c.reply(http.StatusOK, g.describeKey(c.project, k))
}

// removeKey removes a key from a project, and from GitLab if no other project has it.
func (g *GitLab) removeKey(c *gitlabCall) {
	k := g.keyOf(c)
	if k == nil {
		return
	}
	delete(c.project.keys, k)
	if !slices.ContainsFunc(g.projects, func(p *gitlabProject) bool { _, has := p.keys[k]; return has }) {
		g.keys = slices.DeleteFunc(g.keys, func(other *gitlabKey) bool { return other == k })
	}
	c.reply(http.StatusNoContent, nil)
}

func describeDeployToken(t *gitlabDeployToken) map[string]any {
	return map[string]any{
		"id": t.id, "name": t.name, "username": t.username, "scopes": t.scopes, "expires_at": nil, "revoked": false, "expired": false,
	}
}

func (g *GitLab) getDeployTokens(c *gitlabCall) {
	all := []map[string]any{}
	for _, t := range c.project.tokens {
		all = append(all, describeDeployToken(t))
	}
	page(c, all)
}

func (g *GitLab) addDeployToken(c *gitlabCall) {
	var in struct {
		Name   string   `json:"name"`
		Scopes []string `json:"scopes"`
	}
	if err := decode(c.r, &in); err != nil || in.Name == "" || len(in.Scopes) == 0 {
		g.unknownCall(c.w, c.r)
		return
	}
	id := g.id()
	t := &gitlabDeployToken{
		id: id, name: in.Name, scopes: in.Scopes,
		username: "gitlab+deploy-token-" + strconv.Itoa(id), secret: fmt.Sprintf("gldt-%020d", id),
	}
	c.project.tokens = append(c.project.tokens, t)
	body := describeDeployToken(t)
	body["token"] = t.secret
	c.reply(http.StatusCreated, body)
}

func (g *GitLab) removeDeployToken(c *gitlabCall) {
	before := len(c.project.tokens)
	c.project.tokens = slices.DeleteFunc(c.project.tokens, func(t *gitlabDeployToken) bool { return strconv.Itoa(t.id) == c.r.PathValue("token") })
	if len(c.project.tokens) == before {
		c.fail(http.StatusNotFound, "404 DeployToken Not Found")
		return
	}
	c.reply(http.StatusNoContent, nil)
}

func (g *GitLab) describeMerge(p *gitlabProject, m *gitlabMerge) map[string]any {
	state := "merged"
	if m.open {
		state = "opened"
	}
	return map[string]any{
		"id": m.number, "iid": m.number, "title": m.title, "state": state, "source_branch": m.head, "target_branch": m.base,
		"project_id": p.id, "source_project_id": p.id, "target_project_id": p.id,
		"web_url": g.web(p) + "/-/merge_requests/" + strconv.Itoa(m.number),
	}
}

func (g *GitLab) getMerges(c *gitlabCall) {
	if c.project.requests != "enabled" {
		c.forbidden()
		return
	}
	q := c.r.URL.Query()
	all := []map[string]any{}
	for _, m := range c.project.merges {
		if (q.Get("state") != "opened" || m.open) && (q.Get("source_branch") == "" || q.Get("source_branch") == m.head) &&
			(q.Get("target_branch") == "" || q.Get("target_branch") == m.base) {
			all = append(all, g.describeMerge(c.project, m))
		}
	}
	page(c, all)
}

func (g *GitLab) addMerge(c *gitlabCall) {
	var in struct {
		Head   string `json:"source_branch"`
		Base   string `json:"target_branch"`
		Title  string `json:"title"`
		Body   string `json:"description"`
		Remove bool   `json:"remove_source_branch"`
	}
	if err := decode(c.r, &in); err != nil || in.Title == "" || in.Head == "" || in.Base == "" {
		g.unknownCall(c.w, c.r)
		return
	}
	if c.project.requests != "enabled" {
		c.forbidden()
		return
	}
	for _, m := range c.project.merges {
		if m.open && m.head == in.Head && m.base == in.Base {
			c.fail(http.StatusConflict, []string{fmt.Sprintf("Another open merge request already exists for this source branch: !%d", m.number)})
			return
		}
	}
	for _, branch := range []string{in.Head, in.Base} {
		if _, err := g.Git.Head(c.project.path, branch); err != nil {
			c.fail(http.StatusUnprocessableEntity, map[string]any{"base": []string{"branch " + branch + " does not exist"}})
			return
		}
	}
	m := &gitlabMerge{len(c.project.merges) + 1, in.Head, in.Base, in.Title, true, in.Remove}
	c.project.merges = append(c.project.merges, m)
	c.reply(http.StatusCreated, g.describeMerge(c.project, m))
}

// State returns the projects, one on each line, with their details below.
func (g *GitLab) State() (string, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	var out strings.Builder
	role := func(level int) string {
		for word, l := range gitlabLevels {
			if l == level {
				return word
			}
		}
		return strconv.Itoa(level)
	}
	for _, p := range g.projects {
		standard, empty := g.standard(p)
		if empty {
			standard = "empty"
		}
		fmt.Fprintf(&out, "%s %s %s", p.path, p.visibility, standard)
		if p.description != "" {
			fmt.Fprintf(&out, " %q", p.description)
		}
		out.WriteString("\n")
		for _, s := range p.shares {
			fmt.Fprintf(&out, "  group %s %s\n", s.group.path, role(s.level))
		}
		for _, k := range p.sorted() {
			fmt.Fprintf(&out, "  key %s %s %s\n", map[bool]string{true: "rw", false: "ro"}[p.keys[k]], k.title, keyKind(k.text))
		}
		for _, t := range p.tokens {
			fmt.Fprintf(&out, "  deploy token %s %s\n", t.name, strings.Join(t.scopes, ","))
		}
		for _, m := range p.merges {
			fmt.Fprintf(&out, "  merge request !%d %s → %s %q\n", m.number, m.head, m.base, m.title)
		}
		if err := g.Git.describe(&out, p.path); err != nil {
			return "", err
		}
	}
	return out.String(), nil
}

// describe writes the branches of a repository and their commits.
func (g *Repositories) describe(out *strings.Builder, repository string) error {
	branches, err := g.Branches(repository)
	if err != nil {
		return err
	}
	for _, branch := range branches {
		log, err := g.Log(repository, branch)
		if err != nil {
			return err
		}
		for _, commit := range log {
			fmt.Fprintf(out, "  %s: %s\n", branch, commit)
		}
	}
	return nil
}

// Merge merges the open merge requests of a project by fast-forward.
func (g *GitLab) Merge(project string) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	p := g.project(project)
	for _, m := range p.merges {
		if !m.open {
			continue
		}
		if _, err := g.Git.run(g.Git.Path(p.path), "update-ref", "refs/heads/"+m.base, "refs/heads/"+m.head); err != nil {
			return err
		}
		if m.remove {
			if _, err := g.Git.run(g.Git.Path(p.path), "update-ref", "-d", "refs/heads/"+m.head); err != nil {
				return err
			}
		}
		m.open = false
	}
	return nil
}

// keyKind returns the type of a public key.
func keyKind(text string) string {
	kind, _, _ := strings.Cut(text, " ")
	return kind
}
