package testgithost

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Bitbucket is a stand-in for Bitbucket Server and Data Center, written after
// https://developer.atlassian.com/server/bitbucket/rest/: projects and
// repositories, permissions of groups, access keys, branch restrictions, the
// branching model, pull requests, errors, rate limits.
type Bitbucket struct {
	*Server
	// Base is the base path, as in "bitbucket".
	Base string

	mux *http.ServeMux

	mu       sync.Mutex
	ids      int
	limit    *quota
	noSSH    bool
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
	id           int
	key, name    string
	grants       map[string]int // of users
	repositories []*bitbucketRepository
}

type bitbucketRepository struct {
	id               int
	slug, name       string
	description      string
	public, archived bool
	state            string
	project          *bitbucketProject
	users, groups    map[string]int
	keys             []*bitbucketKey
	rules            []bitbucketRule
	pulls            []*bitbucketPull
}

type bitbucketKey struct {
	id          int
	text, label string
	permission  int
}

type bitbucketRule struct {
	kind, matcher, id string
	except            []string
}

type bitbucketPull struct {
	number            int
	head, base, title string
	open              bool
}

// bitbucketLevels are the permissions, the lowest first.
var bitbucketLevels = []string{"none", "read", "write", "admin"}

func level(word string) int {
	i := slices.Index(bitbucketLevels, strings.ToLower(strings.TrimPrefix(word, "REPO_")))
	if i < 0 {
		panic("there is no permission " + word)
	}
	return i
}

func permission(level int) string { return "REPO_" + strings.ToUpper(bitbucketLevels[level]) }

// OpenBitbucket starts a Bitbucket. Each line of contents is a verb and its
// arguments:
//
//	user NAME
//	group NAME
//	token SECRET USER read|write|admin [expired]
//	project KEY NAME [USER=PERMISSION…]
//	repository KEY SLUG [public] [archived] [broken] [USER=PERMISSION…]
//	restrict KEY SLUG TYPE MATCHER ID [USER…]
//	key KEY SLUG read|write LABEL PUBLIC KEY
//	grant KEY SLUG GROUP PERMISSION
//	base PATH         serve below a path
//	nossh             disable SSH
//	limit N SECONDS   accept N requests, then none for a time
func OpenBitbucket(contents string) (*Bitbucket, error) {
	b := &Bitbucket{tokens: map[string]*bitbucketToken{}}
	server, err := Open(func(s *Server) API {
		b.Server = s
		return b
	})
	if err != nil {
		return nil, err
	}
	if err := b.Add(contents); err != nil {
		return nil, fmt.Errorf("%w (closing: %w)", err, server.Close())
	}
	return b, nil
}

// Add applies further lines of contents.
func (b *Bitbucket) Add(contents string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := eachLine(contents, b.add); err != nil {
		return err
	}
	b.mux = b.routes()
	return nil
}

func (b *Bitbucket) add(verb string, args []string) error {
	least := map[string]int{"user": 1, "group": 1, "token": 3, "project": 2, "repository": 2, "restrict": 5, "key": 6, "grant": 4, "base": 1, "limit": 2}[verb]
	if len(args) < least {
		return fmt.Errorf("it takes %d arguments", least)
	}
	switch verb {
	case "user":
		b.users = append(b.users, args[0])
		return nil
	case "group":
		b.groups = append(b.groups, strings.Join(args, " "))
		return nil
	case "token":
		b.tokens[args[0]] = &bitbucketToken{args[1], level(args[2]), slices.Contains(args, "expired")}
		return nil
	case "project":
		b.addProject(args[0], args[1], args[2:])
		return nil
	case "nossh":
		b.noSSH = true
		return nil
	case "base":
		b.Base = args[0]
		return nil
	case "limit":
		var err error
		b.limit, err = newQuota(args)
		return err
	case "repository":
		return b.addRepository(args[0], args[1], args[2:])
	}
	r := b.repository(args[0], args[1])
	if r == nil {
		return fmt.Errorf("no repository")
	}
	switch verb {
	case "restrict":
		r.rules = append(r.rules, bitbucketRule{args[2], args[3], args[4], args[5:]})
		if args[3] == "BRANCH" && len(args) == 5 {
			return b.Git.Protect(b.gitName(r), args[4], "Branch refs/heads/"+args[4]+" can only be modified through pull requests.")
		}
	case "key":
		r.keys = append(r.keys, &bitbucketKey{b.id(), strings.Join(args[4:], " "), args[3], level(args[2])})
	case "grant":
		r.groups[args[2]] = level(args[3])
	default:
		return fmt.Errorf("unknown verb %q", verb)
	}
	return nil
}

func (b *Bitbucket) addProject(key, name string, grants []string) *bitbucketProject {
	p := &bitbucketProject{id: b.id(), key: key, name: strings.ReplaceAll(name, "_", " "), grants: map[string]int{}}
	for _, grant := range grants {
		user, permission, _ := strings.Cut(grant, "=")
		p.grants[user] = level(permission)
	}
	b.projects = append(b.projects, p)
	return p
}

func (b *Bitbucket) addRepository(key, slug string, args []string) error {
	p := b.project(key)
	if p == nil {
		p = b.addProject(key, strings.TrimPrefix(key, "~"), nil)
	}
	r, err := b.newRepository(p, slug, slug, "main")
	for _, arg := range args {
		name, value, given := strings.Cut(arg, "=")
		switch {
		case arg == "public":
			r.public = true
		case arg == "archived":
			r.archived = true
		case arg == "broken":
			r.state = "INITIALISATION_FAILED"
		case given:
			r.users[name] = level(value)
		default:
			return fmt.Errorf("unknown argument %q", arg)
		}
	}
	return err
}

func (b *Bitbucket) newRepository(p *bitbucketProject, slug, name, branch string) (*bitbucketRepository, error) {
	r := &bitbucketRepository{id: b.id(), slug: slug, name: name, state: "AVAILABLE", project: p, users: map[string]int{}, groups: map[string]int{}}
	p.repositories = append(p.repositories, r)
	return r, b.Git.Create(b.gitName(r), branch)
}

// gitName returns the name of a repository in Git and over SSH.
func (b *Bitbucket) gitName(r *bitbucketRepository) string {
	return strings.ToLower(r.project.key) + "/" + r.slug
}

// GitName implements Below: the HTTP path of a repository begins with scm.
func (b *Bitbucket) GitName(path string) string { return below("scm", below(b.Base, path)) }

func (b *Bitbucket) id() int {
	b.ids++
	return b.ids
}

func (b *Bitbucket) project(key string) *bitbucketProject {
	i := slices.IndexFunc(b.projects, func(p *bitbucketProject) bool { return strings.EqualFold(p.key, key) })
	if i < 0 {
		return nil
	}
	return b.projects[i]
}

func (b *Bitbucket) repository(key, slug string) *bitbucketRepository {
	p := b.project(key)
	if p == nil {
		return nil
	}
	i := slices.IndexFunc(p.repositories, func(r *bitbucketRepository) bool { return strings.EqualFold(r.slug, slug) })
	if i < 0 {
		return nil
	}
	return p.repositories[i]
}

// inProject returns the permission of a token in a project, inRepository in a
// repository.
func (t *bitbucketToken) inProject(p *bitbucketProject) int {
	has := p.grants[t.user]
	if strings.EqualFold(p.key, "~"+t.user) {
		has = level("admin")
	}
	return min(t.most, has)
}

func (t *bitbucketToken) inRepository(r *bitbucketRepository) int {
	has := max(t.inProject(r.project), min(t.most, r.users[t.user]))
	if r.public {
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
	key, slug, _ := strings.Cut(repository, "/")
	if r := b.repository(key, slug); r != nil {
		has := t.inRepository(r)
		access.Read, access.Write = has >= level("read"), has >= level("write") && !r.archived
	}
	return access
}

// KeyAccess implements Keyed.
func (b *Bitbucket) KeyAccess(key, repository string) Access {
	b.mu.Lock()
	defer b.mu.Unlock()
	var access Access
	for _, p := range b.projects {
		for _, r := range p.repositories {
			for _, k := range r.keys {
				if bareKey(k.text) != key {
					continue
				}
				access.Known = true
				if b.gitName(r) == strings.ToLower(repository) {
					access.Read, access.Write = true, k.permission > level("read") && !r.archived
				}
			}
		}
	}
	return access
}

// Set applies a line of contents from a script; commit KEY/SLUG BRANCH FILE TEXT…
// commits as another user.
func (b *Bitbucket) Set(words ...string) error {
	if words[0] == "commit" && len(words) > 4 {
		return b.Git.Commit(words[1], words[2], "Change "+words[3], map[string]string{words[3]: strings.Join(words[4:], " ") + "\n"})
	}
	return b.Add(strings.Join(words, " "))
}

// State returns the repositories, one on each line, with their details below.
func (b *Bitbucket) State() (string, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	var out strings.Builder
	for _, p := range b.projects {
		for _, r := range p.repositories {
			branch, empty := b.standard(r)
			if empty {
				branch = "empty"
			}
			fmt.Fprintf(&out, "%s/%s %s %s", p.key, r.slug, map[bool]string{true: "public", false: "private"}[r.public], branch)
			if r.description != "" {
				fmt.Fprintf(&out, " %q", r.description)
			}
			out.WriteString("\n")
			for _, group := range b.groups {
				if has := r.groups[group]; has > 0 {
					fmt.Fprintf(&out, "  group %s %s\n", group, bitbucketLevels[has])
				}
			}
			for _, k := range r.keys {
				fmt.Fprintf(&out, "  key %s %s %s\n", bitbucketLevels[k.permission], k.label, keyKind(k.text))
			}
			for _, pull := range r.pulls {
				fmt.Fprintf(&out, "  pull request #%s %s → %s %q\n", strconv.Itoa(pull.number), pull.head, pull.base, pull.title)
			}
			if err := b.Git.describe(&out, b.gitName(r)); err != nil {
				return "", err
			}
		}
	}
	return out.String(), nil
}

// standard returns the default branch, which the first push does not change on
// Bitbucket.
func (b *Bitbucket) standard(r *bitbucketRepository) (branch string, empty bool) {
	branch, err := b.Git.Default(b.gitName(r))
	if err != nil {
		panic(err)
	}
	branches, err := b.Git.Branches(b.gitName(r))
	if err != nil {
		panic(err)
	}
	return branch, len(branches) == 0
}
