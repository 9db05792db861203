package testgithost

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Repository is the state of a repository outside of Git.
type Repository struct {
	Owner, Name             string
	Visibility, Description string
	// Disabled is set if the repository cannot be used.
	Archived, Disabled bool
	// Roles holds the permissions of users by name, Teams those of teams or groups.
	Roles, Teams map[string]string
	Keys         []*Key
	Pulls        []*Pull
	Statuses     []CommitStatus

	// Protection and Rules protect branches on GitHub.
	Protection map[string]*GitHubProtection
	Rules      map[string][]GitHubRule

	id int64
	// git is the name in Git.
	git string
	// The following fields are for GitLab. protected holds the roles that can push to a branch.
	deleting, noRequests bool
	protected            map[string]string
	tokens               []*gitlabDeployToken
	// The following fields are for Bitbucket. Name is the slug of title.
	title        string
	restrictions []bitbucketRestriction
}

// FullName returns the owner and the name.
func (r *Repository) FullName() string { return r.Owner + "/" + r.Name }

// Key is a deploy key of a repository.
type Key struct {
	ID       int64
	Title    string
	Key      string
	ReadOnly bool
	expired  bool
}

// Pull is a pull request.
type Pull struct {
	Number      int
	Title, Body string
	Head, Base  string
	Merged      bool
	Notes       []*Note
	// removeHead deletes the branch after the merge.
	removeHead bool
}

// vendor implements the differences between hosts.
type vendor interface {
	// row returns the terms and rules of the host.
	row() row
	// keyObject and pullObject return API objects. A pull request is full in the response to the
	// request that opens it.
	keyObject(*Repository, *Key) any
	pullObject(r *Repository, p *Pull, full bool) any
	// page responds with a part of a list.
	page(c *call, all []any)
	// limited reports whether the rate limit is exceeded, and responds in that case.
	limited(w http.ResponseWriter) bool
}

// row holds the terms and rules of a host.
type row struct {
	// roles lists the permissions on a repository in ascending order.
	roles []string
	// lower is set if repository names in Git have the owner in lower case. gitPath is the base
	// path of repositories over HTTP.
	lower   bool
	gitPath string
	// team and pull are the names of teams and pull requests in State.
	team, pull string
	// The host rejects requests with these responses.
	noKey, badKey refusal
	noBranch      func(branch string) refusal
	pullExists    func(*Repository, *Pull) refusal
}

// refusal is an error response to a request.
type refusal struct {
	status int
	body   any
}

// store holds the state that all hosts share.
type store struct {
	*Server
	vendor
	// Base is the base path of the host, as in "gitlab".
	Base string

	mux      *http.ServeMux
	settings map[string]setting

	mu           sync.Mutex
	ids          int64
	quota        *quota
	rejected     *rejection
	noSSH        bool
	repositories []*Repository
}

// open starts a host with the lines of contents.
func (s *store) open(v vendor, api API, settings map[string]setting, contents string) error {
	s.vendor, s.settings, s.mux = v, s.commonSettings(), http.NewServeMux()
	maps.Copy(s.settings, s.noteSettings())
	maps.Copy(s.settings, settings)
	var err error
	s.Server, err = Open(func(server *Server) API {
		s.Server = server
		return api
	})
	if err != nil {
		return err
	}
	s.mux.HandleFunc("/", s.unknownCall)
	if err := s.Add(contents); err != nil {
		return errors.Join(err, s.Close())
	}
	return nil
}

// ServeHTTP implements API.
func (s *store) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if base := s.Base; base != "" {
		r = r.Clone(r.Context())
		path, below := strings.CutPrefix(r.URL.Path, "/"+base)
		if !below {
			s.unknownCall(w, r)
			return
		}
		r.URL.Path, r.URL.RawPath = path, strings.TrimPrefix(r.URL.RawPath, "/"+base)
	}
	if s.limited(w) || s.rejects(w, r) {
		return
	}
	s.mux.ServeHTTP(w, r)
}

// KeyAccess implements Keyed.
func (s *store) KeyAccess(key, repository string) Access {
	s.mu.Lock()
	defer s.mu.Unlock()
	var access Access
	for _, r := range s.repositories {
		for _, k := range r.Keys {
			if k.expired || bareKey(k.Key) != key {
				continue
			}
			access.Known = true
			if strings.EqualFold(r.git, repository) {
				access.Read, access.Write = true, access.Write || !k.ReadOnly && !r.Archived
			}
		}
	}
	return access
}

// GitName implements Below.
func (s *store) GitName(path string) string { return below(s.row().gitPath, below(s.Base, path)) }

// below removes a base path from a path.
func below(base, path string) string {
	return strings.TrimPrefix(strings.TrimPrefix(path, base), "/")
}

// bareKey returns a public key without its comment.
func bareKey(text string) string {
	fields := strings.Fields(text)
	return strings.Join(fields[:min(2, len(fields))], " ")
}

// Edit changes or reads the state while the host serves.
func (s *store) Edit(edit func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	edit()
}

func (s *store) id() int64 {
	s.ids++
	return s.ids
}

// repository returns a repository by its full name or its ID, or nil if there is none.
func (s *store) repository(name string) *Repository {
	i := slices.IndexFunc(s.repositories, func(r *Repository) bool {
		return strings.EqualFold(r.FullName(), name) || strconv.FormatInt(r.id, 10) == name
	})
	if i < 0 {
		return nil
	}
	return s.repositories[i]
}

// create creates an empty repository.
func (s *store) create(fullName, visibility, branch string) *Repository {
	owner, name, _ := cutLast(fullName)
	r := &Repository{
		id: s.id(), Owner: owner, Name: name, git: fullName, title: name, Visibility: visibility,
		Roles: map[string]string{}, Teams: map[string]string{}, protected: map[string]string{},
		Protection: map[string]*GitHubProtection{}, Rules: map[string][]GitHubRule{},
	}
	if s.row().lower {
		r.git = strings.ToLower(owner) + "/" + name
	}
	s.repositories = append(s.repositories, r)
	s.must(s.Git.Create(r.git, branch))
	return r
}

// must panics if err is not nil. Errors of Git occur only after the temporary directory was removed.
func (s *store) must(err error) {
	if err != nil {
		panic(err)
	}
}

// standard returns the default branch: the first push to an empty repository sets it.
func (s *store) standard(r *Repository) (branch string, empty bool) {
	s.must(s.Git.adopt(r.git))
	branch, err := s.Git.Default(r.git)
	s.must(err)
	branches, err := s.Git.Branches(r.git)
	s.must(err)
	return branch, len(branches) == 0
}

// rank returns the index of a role, or 0 if it is unknown.
func (s *store) rank(role string) int { return max(slices.Index(s.row().roles, role), 0) }

// web returns the URL of a web page.
func (s *store) web(path string) string {
	return "https://" + strings.TrimSuffix(s.Hostname+"/"+s.Base, "/") + path
}

// Merge merges the open pull requests of a repository by fast-forward.
func (s *store) Merge(repository string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.merge(repository)
}

func (s *store) merge(repository string) error {
	r := s.repository(repository)
	if r == nil {
		return fmt.Errorf("there is no repository %s", repository)
	}
	for _, p := range r.Pulls {
		if p.Merged {
			continue
		}
		if err := s.Git.forward(r.git, p.Base, p.Head); err != nil {
			return err
		}
		if p.removeHead {
			if err := s.Git.Delete(r.git, p.Head); err != nil {
				return err
			}
		}
		p.Merged = true
	}
	return nil
}

// State returns a text with one line for each repository and its details on the following lines.
func (s *store) State() (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out strings.Builder
	for _, r := range s.repositories {
		branch, empty := s.standard(r)
		if empty {
			branch = "empty"
		}
		fmt.Fprintf(&out, "%s %s %s", r.FullName(), r.Visibility, branch)
		if r.Description != "" {
			fmt.Fprintf(&out, " %q", r.Description)
		}
		out.WriteString("\n")
		for _, user := range slices.Sorted(maps.Keys(r.Roles)) {
			fmt.Fprintf(&out, "  user %s %s\n", user, r.Roles[user])
		}
		for _, team := range slices.Sorted(maps.Keys(r.Teams)) {
			fmt.Fprintf(&out, "  %s %s %s\n", s.row().team, team, r.Teams[team])
		}
		for _, k := range r.Keys {
			kind, _, _ := strings.Cut(k.Key, " ")
			fmt.Fprintf(&out, "  key %s %s %s\n", map[bool]string{true: "ro", false: "rw"}[k.ReadOnly], k.Title, kind)
		}
		for _, t := range r.tokens {
			fmt.Fprintf(&out, "  deploy token %s %s\n", t.name, strings.Join(t.scopes, ","))
		}
		for _, p := range r.Pulls {
			fmt.Fprintf(&out, "  %s%d %s → %s %q%s\n", s.row().pull, p.Number, p.Head, p.Base, p.Title, map[bool]string{true: " merged"}[p.Merged])
			p.describeNotes(&out)
		}
		for _, c := range r.Statuses {
			fmt.Fprintf(&out, "  status %s %s %q\n", c.Name, c.State, c.Text)
		}
		if err := s.Git.describe(&out, r.git); err != nil {
			return "", err
		}
	}
	return out.String(), nil
}

// quota is the number of accepted requests, and the subsequent time during which all requests are
// rejected.
type quota struct {
	left  int
	pause time.Duration
}

// exceeded counts a request and reports whether it exceeds the quota.
func (q *quota) exceeded() bool {
	if q == nil {
		return false
	}
	q.left--
	return q.left < 0
}

func cutLast(path string) (before, after string, found bool) {
	i := strings.LastIndexByte(path, '/')
	if i < 0 {
		return "", path, false
	}
	return path[:i], path[i+1:], true
}
