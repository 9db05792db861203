package testgithost

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// Bitbucket is a stand-in for Bitbucket Server and Data Center, according to
// https://developer.atlassian.com/server/bitbucket/rest/. It implements projects and repositories,
// group permissions, access keys, branch restrictions, the branching model, pull requests, errors
// and rate limits.
type Bitbucket struct {
	*store

	users    []string
	groups   []string
	tokens   map[string]*bitbucketToken
	projects []*bitbucketProject
}

// bitbucketToken is an HTTP access token, which limits the permissions of its owner.
type bitbucketToken struct {
	user    string
	most    int
	expired bool
}

type bitbucketProject struct {
	id        int64
	key, name string
	grants    map[string]string // of users
}

type bitbucketRestriction struct {
	kind, matcher, id string
	except            []string
}

// bitbucketRoles lists the permissions in ascending order.
var bitbucketRoles = []string{"none", "read", "write", "admin"}

func level(word string) int {
	return slices.Index(bitbucketRoles, strings.ToLower(strings.TrimPrefix(word, "REPO_")))
}

func permission(role string) string { return "REPO_" + strings.ToUpper(role) }

// OpenBitbucket starts a Bitbucket with lines of contents. Besides those of
// [Bitbucket.Add] they are
//
//	user NAME
//	group NAME
//	token SECRET USER read|write|admin [expired]
//	project KEY NAME [USER=PERMISSION…]
//	restrict REPOSITORY TYPE MATCHER ID [USER…]
func OpenBitbucket(contents string) (*Bitbucket, error) {
	b := &Bitbucket{store: &store{}, tokens: map[string]*bitbucketToken{}}
	err := b.open(b, b, map[string]setting{
		"user":  simple(1, func(w []string) { b.users = append(b.users, w[0]) }),
		"group": simple(1, func(w []string) { b.groups = append(b.groups, strings.Join(w, " ")) }),
		"token": simple(3, func(w []string) {
			b.tokens[w[0]] = &bitbucketToken{w[1], level(w[2]), slices.Contains(w, "expired")}
		}),
		"project": simple(2, func(w []string) { b.addProject(w[0], w[1], w[2:]) }),
		"restrict": b.change(4, func(r *Repository, w []string) {
			r.restrictions = append(r.restrictions, bitbucketRestriction{w[0], w[1], w[2], w[3:]})
			if w[1] == "BRANCH" && len(w) == 3 {
				b.must(b.Git.Protect(r.git, w[2], "Branch refs/heads/"+w[2]+" can only be modified through pull requests."))
			}
		}),
	}, contents)
	if err != nil {
		return nil, err
	}
	b.handle()
	return b, nil
}

// row implements vendor.
func (b *Bitbucket) row() row {
	return row{
		roles: bitbucketRoles, lower: true, gitPath: "scm", team: "group", pull: "pull request #",
		noKey:  bitbucketRefusal(http.StatusNotFound, "ssh.NoSuchSshKeyException", "There is no such SSH key."),
		badKey: bitbucketRefusal(http.StatusBadRequest, "ssh.InvalidSshKeyException", "The SSH key is not valid."),
		noBranch: func(branch string) refusal {
			return bitbucketRefusal(http.StatusNotFound, "commit.NoSuchBranchException", "Branch "+strconv.Quote("refs/heads/"+branch)+" does not exist.")
		},
		pullExists: func(*Repository, *Pull) refusal {
			return bitbucketRefusal(http.StatusConflict, "pull.DuplicatePullRequestException", "Only one pull request may be open for a given source and target branch")
		},
	}
}

// keyObject implements vendor.
func (b *Bitbucket) keyObject(_ *Repository, k *Key) any {
	return map[string]any{
		"key":        map[string]any{"id": k.ID, "text": k.Key, "label": k.Title},
		"permission": permission(map[bool]string{true: "read", false: "write"}[k.ReadOnly]),
	}
}

// pullObject implements vendor.
func (b *Bitbucket) pullObject(r *Repository, p *Pull, _ bool) any {
	place := map[string]any{"id": r.id, "slug": r.Name, "project": describeProject(b.project(r.Owner))}
	return map[string]any{
		"id": p.Number, "title": p.Title, "open": !p.Merged,
		"fromRef": map[string]any{"id": "refs/heads/" + p.Head, "repository": place}, "toRef": map[string]any{"id": "refs/heads/" + p.Base, "repository": place},
		"links": map[string]any{"self": []map[string]any{{"href": b.repositoryURL(r) + "/pull-requests/" + strconv.Itoa(p.Number)}}},
	}
}

// page implements vendor. The pages are smaller than requested, as those of the
// server may be.
func (b *Bitbucket) page(c *call, all []any) {
	start := c.number("start", 0, 0, len(all))
	end := min(start+2, len(all))
	body := map[string]any{"size": end - start, "limit": 2, "start": start, "isLastPage": end == len(all), "values": append([]any{}, all[start:end]...), "nextPageStart": nil}
	if end < len(all) {
		body["nextPageStart"] = end
	}
	c.reply(http.StatusOK, body)
}

// limited implements vendor.
func (b *Bitbucket) limited(w http.ResponseWriter) bool {
	if !b.quota.exceeded() {
		return false
	}
	w.Header().Set("X-Ratelimit-Remaining", "0")
	w.Header().Set("Retry-After", strconv.Itoa(int(b.quota.pause.Seconds())))
	http.Error(w, "", http.StatusTooManyRequests)
	return true
}

func (b *Bitbucket) addProject(key, name string, grants []string) *bitbucketProject {
	p := &bitbucketProject{id: b.id(), key: key, name: strings.ReplaceAll(name, "_", " "), grants: map[string]string{}}
	for _, grant := range grants {
		user, role, _ := strings.Cut(grant, "=")
		p.grants[user] = role
	}
	b.projects = append(b.projects, p)
	return p
}

// project returns a project by its key, or nil if there is none. Adding a repository creates its
// project.
func (b *Bitbucket) project(key string) *bitbucketProject {
	i := slices.IndexFunc(b.projects, func(p *bitbucketProject) bool { return strings.EqualFold(p.key, key) })
	switch {
	case i >= 0:
		return b.projects[i]
	case slices.ContainsFunc(b.repositories, func(r *Repository) bool { return strings.EqualFold(r.Owner, key) }):
		return b.addProject(key, strings.TrimPrefix(key, "~"), nil)
	}
	return nil
}

// inProject returns the permission of a token in a project.
func (b *Bitbucket) inProject(t *bitbucketToken, p *bitbucketProject) int {
	if strings.EqualFold(p.key, "~"+t.user) {
		return t.most
	}
	return min(t.most, b.rank(p.grants[t.user]))
}

// inRepository returns the permission of a token in a repository.
func (b *Bitbucket) inRepository(t *bitbucketToken, r *Repository) int {
	has := max(b.inProject(t, b.project(r.Owner)), min(t.most, b.rank(r.Roles[t.user])))
	if r.Visibility == "public" {
		has = max(has, level("read"))
	}
	return has
}

// GitAccess implements API.
func (b *Bitbucket) GitAccess(username, secret, repository string) Access {
	b.mu.Lock()
	defer b.mu.Unlock()
	t := b.tokens[secret]
	if t == nil || t.expired || username != t.user && username != "git" && username != "x-token-auth" {
		return Access{}
	}
	access := Access{Known: true}
	if r := b.repository(repository); r != nil {
		has := b.inRepository(t, r)
		access.Read, access.Write = has >= level("read"), has >= level("write") && !r.Archived
	}
	return access
}
