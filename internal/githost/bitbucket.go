package githost

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/fluxkit/flux/internal/hint"
)

// Bitbucket is a repository on a Bitbucket Server or Data Center.
type Bitbucket struct {
	*bitbucketAPI
	username string

	// Set by Survey.
	want       Want
	project    bitbucketProject
	repository *bitbucketRepository // nil if it does not exist
	edits      *bitbucketRepository
	grants     []Team
	// ssh has the SSH host of the server, nil if unknown.
	ssh *url.URL
}

var bitbucketPermissions = []string{"read", "write", "admin"}

// BitbucketPermissions returns the permissions of groups.
func BitbucketPermissions() []string { return slices.Clone(bitbucketPermissions) }

// bitbucketPermission returns the name of a permission in the API.
func bitbucketPermission(word string) string { return "REPO_" + strings.ToUpper(word) }

// NewBitbucket returns a repository on Bitbucket Server. The user name is used with
// the token for Git over HTTP. See [Caller.Client] for the client.
func NewBitbucket(hosted Hosted, username string, client *http.Client) *Bitbucket {
	hosted.Owner = strings.Trim(hosted.Owner, "/")
	if strings.HasPrefix(hosted.Owner, "~") {
		hosted.Personal = true
	}
	return &Bitbucket{bitbucketAPI: newBitbucketAPI(client, hosted), username: username}
}

// bitbucketSlug returns the name of a repository in URLs.
func bitbucketSlug(name string) string {
	return strings.Trim(strings.Map(func(r rune) rune {
		switch {
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '-', r == '_', r == '.':
			return r
		default:
			return '-'
		}
	}, name), "-")
}

// Survey implements Host.
func (b *Bitbucket) Survey(ctx context.Context, want Want) (Survey, error) {
	b.want = want
	if err := b.findProject(ctx); err != nil {
		return Survey{}, err
	}
	var err error
	if b.repository, err = b.find(ctx); err != nil {
		return Survey{}, err
	}
	survey := Survey{Exists: b.repository != nil}
	if b.repository == nil {
		err = b.mayCreate(ctx)
		survey.Changes = append(survey.Changes, fmt.Sprintf("create the %s repository %s", b.hosted.Visibility, b))
	} else {
		survey.Changes, survey.Protected, err = b.surveyRepository(ctx)
	}
	if err != nil {
		return survey, err
	}
	grants, err := b.surveyGroups(ctx)
	survey.Changes = append(survey.Changes, grants...)
	survey.Account = b.account
	if err != nil {
		return survey, err
	}
	if err := b.findSSH(ctx); err != nil {
		return survey, err
	}
	survey.Repository, err = b.describe()
	return survey, err
}

// String returns the project and the slug of the repository.
func (b *Bitbucket) String() string { return b.project.Key + "/" + bitbucketSlug(b.hosted.Name) }

// findProject reads the project by its key or its name.
func (b *Bitbucket) findProject(ctx context.Context) error {
	owner := b.hosted.Owner
	key := owner
	if b.hosted.Personal {
		key = "~" + strings.ToLower(strings.TrimPrefix(owner, "~"))
	}
	doing := "finding project " + owner
	err := b.call(ctx, http.MethodGet, bitbucketCore+"/projects/"+url.PathEscape(key), nil, nil, &b.project)
	if err == nil {
		return nil
	}
	if status(err) != http.StatusNotFound && status(err) != http.StatusBadRequest {
		return b.problem(ctx, doing, err)
	}
	if b.hosted.Personal {
		// The project of a user is created with its first repository.
		if b.account == "" || strings.EqualFold(bitbucketSlug(b.account), key[1:]) {
			b.project = bitbucketProject{Key: key, Type: "PERSONAL"}
			return nil
		}
		return hint.Errorf("check --owner, or omit --personal if it is a project", "there is no user %s with repositories that the token of %s can read", key[1:], b.who())
	}
	named, err := bitbucketList[bitbucketProject](ctx, b.bitbucketAPI, bitbucketCore+"/projects", url.Values{"name": {owner}})
	if err != nil {
		return b.problem(ctx, doing, err)
	}
	var matches []bitbucketProject
	for _, p := range named {
		if strings.EqualFold(p.Name, owner) {
			matches = append(matches, p)
		}
	}
	switch {
	case len(matches) == 0:
		return hint.Errorf("set --owner to its key or name, or --personal for a user's repository", "there is no project %q that the token of %s can read", owner, b.who())
	case len(matches) > 1:
		return hint.Errorf("set --owner to its key", "there are %d projects with the name %q", len(matches), owner)
	}
	b.project = matches[0]
	return nil
}

// find returns the repository, nil if it does not exist.
func (b *Bitbucket) find(ctx context.Context) (*bitbucketRepository, error) {
	var found bitbucketRepository
	err := b.call(ctx, http.MethodGet, bitbucketCore+bitbucketPath(b.project.Key, bitbucketSlug(b.hosted.Name)), nil, nil, &found)
	switch {
	case status(err) == http.StatusNotFound:
		return nil, nil // it does not exist
	case status(err) == http.StatusUnauthorized && authenticated(err):
		return nil, hint.Errorf("ask an administrator of the project for access", "repository %s exists, and %s cannot read it", b, b.who())
	case err != nil:
		return nil, b.problem(ctx, "finding repository "+b.String(), err)
	}
	if !strings.EqualFold(found.Project.Key, b.project.Key) || found.Slug != bitbucketSlug(b.hosted.Name) {
		return nil, hint.Errorf(fmt.Sprintf("set --owner=%s --repository=%s", found.Project.Key, found.Slug), "repository %s has been moved to %s", b, found)
	}
	return &found, nil
}

// Ensure implements Host.
func (b *Bitbucket) Ensure(ctx context.Context) (Repository, error) {
	if b.repository == nil {
		if err := b.create(ctx); err != nil {
			return Repository{}, err
		}
	}
	if b.edits != nil {
		var edited bitbucketRepository
		if err := b.call(ctx, http.MethodPut, bitbucketCore+b.repository.path(), nil, b.edits, &edited); err != nil {
			return Repository{}, b.problem(ctx, "changing repository "+b.String(), err)
		}
		b.repository, b.edits = &edited, nil
	}
	for len(b.grants) > 0 {
		grant := b.grants[0]
		query := url.Values{"name": {grant.Name}, "permission": {bitbucketPermission(grant.Permission)}}
		if err := b.call(ctx, http.MethodPut, bitbucketCore+b.repository.path()+"/permissions/groups", query, nil, nil); err != nil {
			return Repository{}, b.problem(ctx, fmt.Sprintf("granting group %s access to repository %s", grant.Name, b), err)
		}
		b.grants = b.grants[1:]
	}
	return b.describe()
}

func (b *Bitbucket) create(ctx context.Context) error {
	wanted := bitbucketRepository{
		Name: b.hosted.Name, ScmID: "git", Public: b.hosted.Visibility == "public",
		Description: b.hosted.Description, Branch: b.hosted.Branch, Project: bitbucketProject{Key: b.project.Key},
	}
	var created bitbucketRepository
	err := b.call(ctx, http.MethodPost, bitbucketCore+"/projects/"+url.PathEscape(b.project.Key)+"/repos", nil, wanted, &created)
	if status(err) == http.StatusConflict {
		// Another client created it, or an earlier request of this run whose
		// response was lost.
		found, findErr := b.find(ctx)
		if findErr != nil {
			return findErr
		}
		if found != nil {
			b.repository = found
			return nil
		}
	}
	if err != nil {
		return b.problem(ctx, "creating repository "+b.String(), err)
	}
	b.repository = &created
	return nil
}

// findSSH reads the SSH host from any repository if this one does not exist yet.
func (b *Bitbucket) findSSH(ctx context.Context) error {
	if b.hosted.TokenAuth || b.hosted.SSHHostname != "" || b.repository != nil || b.ssh != nil {
		return nil
	}
	var page struct {
		Values []bitbucketRepository `json:"values"`
	}
	if err := b.call(ctx, http.MethodGet, bitbucketCore+"/repos", url.Values{"limit": {"1"}}, nil, &page); err != nil {
		return b.problem(ctx, "reading the SSH address", err)
	}
	for _, other := range page.Values {
		b.ssh = other.link("ssh")
	}
	return nil
}

// describe returns the URLs and credentials of the repository. The URLs are those
// of the server, because they have the port of SSH.
func (b *Bitbucket) describe() (Repository, error) {
	h := b.hosted
	path := strings.ToLower(b.project.Key) + "/" + bitbucketSlug(h.Name) + ".git"
	http := h.HTTPURL("/scm/" + path)
	ssh := url.URL{Scheme: "ssh", User: url.User("git"), Host: bare(url.URL{Host: h.Hostname}) + ":7999", Path: "/" + path}
	if b.ssh != nil {
		ssh.User, ssh.Host = b.ssh.User, b.ssh.Host
	}
	r := Repository{DefaultBranch: h.Branch}
	if b.repository != nil {
		r.DefaultBranch = b.repository.Branch
		link := b.repository.link("http")
		if link == nil {
			return r, hint.Errorf("ask an administrator to enable it", "Git over HTTP is disabled on %s", h.Hostname)
		}
		// The base URL that is configured in the server may not be reachable from here.
		link.User, link.Host, link.Scheme = nil, h.Hostname, h.Scheme
		http = link.String()
		if link := b.repository.link("ssh"); link != nil {
			ssh = *link
		} else if !h.TokenAuth {
			return r, hint.Errorf("use --token-auth, or ask an administrator to enable SSH", "Git over SSH is disabled on %s", h.Hostname)
		}
	}
	if h.SSHHostname != "" {
		ssh.Host = h.SSHHostname
	}
	if h.SSHUsername != "" {
		ssh.User = url.User(h.SSHUsername)
	}
	r.Access = Access{URL: http, Username: b.username, Password: h.Token, CABundle: h.CABundle}
	r.SyncURL = http
	if !h.TokenAuth {
		r.SyncURL = ssh.String()
	}
	return r, nil
}

// DeployKey implements Host.
func (b *Bitbucket) DeployKey(ctx context.Context, key DeployKey) error {
	return grant(ctx, bitbucketKeys{b.bitbucketAPI, *b.repository}, key)
}

// RequestChange implements Requester.
func (b *Bitbucket) RequestChange(ctx context.Context, change Change) (Request, error) {
	path := bitbucketCore + b.repository.path() + "/pull-requests"
	wanted := bitbucketPull{Title: change.Title, Description: change.Body, From: b.ref(change.Head), To: b.ref(change.Base)}
	return openRequest(func() (Request, error) {
		open, err := bitbucketList[bitbucketPull](ctx, b.bitbucketAPI, path, url.Values{"state": {"OPEN"}, "direction": {"OUTGOING"}, "at": {wanted.From.ID}})
		if err != nil {
			return Request{}, b.problem(ctx, "looking for an open pull request in repository "+b.String(), err)
		}
		for _, p := range open {
			if p.To.ID == wanted.To.ID && p.To.Repository.ID == b.repository.ID {
				return p.request(false), nil
			}
		}
		return Request{}, nil
	}, func() (Request, error) {
		var opened bitbucketPull
		err := b.call(ctx, http.MethodPost, path, nil, wanted, &opened)
		return opened.request(true), err
	}, conflict, func(err error) error { return b.problem(ctx, "opening a pull request in repository "+b.String(), err) })
}

func (b *Bitbucket) ref(branch string) bitbucketRef {
	return bitbucketRef{ID: "refs/heads/" + branch, Repository: bitbucketPlace{Slug: b.repository.Slug, Project: bitbucketProject{Key: b.project.Key}}}
}

func (p bitbucketPull) request(opened bool) Request {
	r := Request{Number: p.ID, Opened: opened}
	if len(p.Links.Self) > 0 {
		r.URL = p.Links.Self[0].Href
	}
	return r
}
