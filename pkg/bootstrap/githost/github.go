package githost

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"github.com/google/go-github/v60/github"

	"github.com/fluxkit/flux/internal/hint"
)

// GitHub is a repository on github.com or on a GitHub Enterprise server.
type GitHub struct {
	Hosted
	api *github.Client

	// found is set by Survey.
	found struct {
		surveyed bool
		account  string
		token    githubToken
		// repository is nil if it does not exist.
		repository *github.Repository
		// teams are the teams to grant access.
		teams []Team
	}
}

// NewGitHub returns a repository on GitHub. See [Caller.Client] for the client.
func NewGitHub(h Hosted, client *http.Client) (*GitHub, error) {
	base := githubAPI(h)
	api := github.NewClient(client).WithAuthToken(h.Token)
	api.BaseURL = &base
	return &GitHub{Hosted: h, api: api}, nil
}

// githubAPI returns the URL of the API of a host.
func githubAPI(h Hosted) url.URL {
	u := url.URL{Scheme: h.Scheme, Host: h.Hostname, Path: "/api/v3/"}
	if u.Scheme == "" {
		u.Scheme = "https"
	}
	if h.Hostname == "github.com" || strings.HasSuffix(h.Hostname, ".ghe.com") {
		u.Host, u.Path = "api."+h.Hostname, "/"
	}
	return u
}

// settings returns the URL of a page with settings.
func (g *GitHub) settings(path string) string { return g.HTTPURL(path) }

// Survey implements Host.
func (g *GitHub) Survey(ctx context.Context, want Want) (Survey, error) {
	owner, err := g.read(ctx)
	if err != nil {
		return Survey{}, err
	}
	if err := g.checkOwner(owner); err != nil {
		return Survey{}, err
	}
	if err := g.scopesSuffice(); err != nil {
		return Survey{}, err
	}
	changes, err := g.changes(ctx, want)
	if err != nil {
		return Survey{}, err
	}
	if want.KeyTitle != "" {
		if err := g.keysAllowed(ctx); err != nil {
			return Survey{}, err
		}
	}
	survey := Survey{
		Repository: g.repository(), Exists: g.found.repository != nil, Changes: changes, Account: g.found.account, Expires: g.found.token.expires,
	}
	if survey.Exists {
		survey.Protected, err = g.protected(ctx, want.Branch)
	}
	g.found.surveyed = err == nil
	return survey, err
}

// read reads the account, the owner and the repository in parallel. Of several
// errors it returns the one that causes the others.
func (g *GitHub) read(ctx context.Context) (owner *github.User, err error) {
	var reads sync.WaitGroup
	var ofAccount, ofOwner, ofRepository error
	reads.Go(func() { ofAccount = g.readAccount(ctx) })
	reads.Go(func() { owner, ofOwner = g.readOwner(ctx) })
	reads.Go(func() { ofRepository = g.readRepository(ctx) })
	reads.Wait()
	return owner, cmp.Or(ofAccount, ofOwner, ofRepository)
}

// readAccount reads the account and the kind of the token.
func (g *GitHub) readAccount(ctx context.Context) error {
	user, response, err := g.api.Users.Get(ctx, "")
	if response != nil {
		g.found.token = readGitHubToken(g.Token, response.Header)
	}
	switch {
	case err == nil:
		g.found.account = user.GetLogin()
		return nil
	case status(err) == http.StatusForbidden && g.found.token.kind == installationToken:
		return nil // the token of an app has no account
	default:
		return g.problem(ctx, "checking the token", err)
	}
}

func (g *GitHub) readOwner(ctx context.Context) (*github.User, error) {
	owner, _, err := g.api.Users.Get(ctx, g.Owner)
	if status(err) == http.StatusNotFound {
		return nil, hint.Errorf("check --owner", "there is no user or organisation %q on %s, or the token cannot read it", g.Owner, g.Hostname)
	}
	return owner, g.problem(ctx, "reading the owner "+g.Owner, err)
}

func (g *GitHub) readRepository(ctx context.Context) error {
	repository, _, err := g.api.Repositories.Get(ctx, g.Owner, g.Name)
	if status(err) == http.StatusNotFound {
		return nil
	}
	if err != nil {
		return g.problem(ctx, "reading the repository "+g.String(), err)
	}
	if name := repository.GetFullName(); !strings.EqualFold(name, g.String()) {
		owner, short, _ := strings.Cut(name, "/")
		return hint.Errorf(fmt.Sprintf("set --owner=%s --repository=%s", owner, short), "the repository %s has been renamed to %s", g.Hosted, name)
	}
	g.found.repository = repository
	return nil
}

// checkOwner returns an error for an owner that does not match --personal.
func (g *GitHub) checkOwner(owner *github.User) error {
	organisation := owner.GetType() == "Organization"
	switch {
	case organisation && g.Personal:
		return hint.Errorf("omit --personal", "%s is an organisation and not a user", g.Owner)
	case !organisation && !g.Personal:
		return hint.Errorf("add --personal", "%s is a user and not an organisation", g.Owner)
	case g.Personal && g.Visibility == "internal":
		return hint.Errorf("set --visibility=private or public", "a user's repository cannot be internal")
	}
	return nil
}

// changes returns the changes that Ensure will make, and an error if the account
// has no permission for them.
func (g *GitHub) changes(ctx context.Context, want Want) ([]string, error) {
	var changes []string
	if g.found.repository == nil {
		if err := g.creatable(ctx); err != nil {
			return nil, err
		}
		changes = append(changes, fmt.Sprintf("create the %s repository %s", g.Visibility, g.Hosted))
	} else if err := g.writable(); err != nil {
		return nil, err
	}
	for _, edit := range g.drift() {
		changes = append(changes, edit.what)
	}
	given, err := g.teamChanges(ctx)
	if err != nil {
		return nil, err
	}
	changes = append(changes, given...)
	if len(changes) > 0 || want.KeyTitle != "" {
		err = g.administers()
	}
	return changes, err
}

// githubEdit is a change of a repository's settings.
type githubEdit struct {
	what   string
	fields *github.Repository
}

// drift returns what --reconcile changes.
func (g *GitHub) drift() []githubEdit {
	r := g.found.repository
	if !g.Reconcile || r == nil {
		return nil
	}
	var edits []githubEdit
	if r.GetVisibility() != g.Visibility {
		edits = append(edits, githubEdit{fmt.Sprintf("make the repository %s %s (it is %s)", g.Hosted, g.Visibility, r.GetVisibility()), &github.Repository{Visibility: &g.Visibility}})
	}
	if g.Description != "" && r.GetDescription() != g.Description {
		edits = append(edits, githubEdit{fmt.Sprintf("set the description of the repository %s to %q", g.Hosted, g.Description), &github.Repository{Description: &g.Description}})
	}
	return edits
}

// permissions returns the permissions of the account on the repository, nil if they
// are unknown: there is no repository, or the token is the token of an app.
func (g *GitHub) permissions() map[string]bool {
	if g.found.token.kind == installationToken || g.found.repository == nil {
		return nil
	}
	return g.found.repository.GetPermissions()
}

// writable returns an error if the account cannot push to the repository.
func (g *GitHub) writable() error {
	r, may := g.found.repository, g.permissions()
	switch {
	case r.GetArchived():
		return hint.Errorf("unarchive it at "+g.settings(g.String()+"/settings"), "the repository %s is archived and read-only", g.Hosted)
	case r.GetDisabled():
		return hint.Errorf("contact GitHub Support", "the repository %s is disabled by GitHub", g.Hosted)
	case may != nil && !may["push"]:
		return hint.Errorf("ask for write access, or use a token of an account that has it", "%s has no permission to push to %s", g.found.account, g.Hosted)
	}
	return nil
}

// administers returns an error if the account cannot change settings, keys and
// teams.
func (g *GitHub) administers() error {
	if may := g.permissions(); may == nil || may["admin"] {
		return nil
	}
	return hint.Errorf("ask for the role admin, or use a token of an account that has it; with --token-auth no deploy key is needed",
		"%s is not an administrator of %s: deploy keys, teams and settings require it", g.found.account, g.Hosted)
}

// creatable returns an error if the account cannot create the repository.
func (g *GitHub) creatable(ctx context.Context) error {
	account := g.found.account
	switch {
	case g.Personal && account == "":
		return hint.Errorf("use a personal access token, or create the repository first", "authenticated as an app, which cannot create a repository for the user %s", g.Owner)
	case g.Personal && !strings.EqualFold(account, g.Owner):
		return hint.Errorf("use a token of "+g.Owner+", or let "+g.Owner+" create the repository and grant "+account+" access", "authenticated as %s, which can neither read nor create the repository %s", account, g.Hosted)
	case g.Personal || account == "":
		return nil
	}
	membership, _, err := g.api.Organizations.GetOrgMembership(ctx, "", g.Owner)
	switch {
	case status(err) == http.StatusNotFound:
		return hint.Errorf("ask to be invited, or use the token of a member", "%s is not a member of the organisation %s, which has no repository %s that the token can read", account, g.Owner, g.Name)
	case status(err) == http.StatusForbidden && !requiresSignOn(err):
		return nil // a token without access to memberships may still create repositories
	case err != nil:
		return g.problem(ctx, "reading the membership of "+account+" in "+g.Owner, err)
	case membership.GetState() != "active":
		return hint.Errorf("accept the invitation at "+g.settings("orgs/"+g.Owner+"/invitation"), "%s has not accepted the invitation to the organisation %s yet", account, g.Owner)
	case membership.GetRole() == "admin":
		return nil
	}
	return g.membersCreate(ctx)
}

// membersCreate returns an error if the organisation is known not to let members
// create repositories.
func (g *GitHub) membersCreate(ctx context.Context) error {
	org, _, err := g.api.Organizations.Get(ctx, g.Owner)
	if err != nil {
		return g.problem(ctx, "reading the organisation "+g.Owner, err)
	}
	allowed := map[string]*bool{
		"private": org.MembersCanCreatePrivateRepos, "public": org.MembersCanCreatePublicRepos, "internal": org.MembersCanCreateInternalRepos,
	}[g.Visibility]
	if no(allowed) || no(org.MembersCanCreateRepos) {
		return hint.Errorf("ask an owner of "+g.Owner+" to create the repository, or to let members create repositories", "members of the organisation %s are not allowed to create %s repositories", g.Owner, g.Visibility)
	}
	return nil
}

// no reports whether a field is present and false.
func no(b *bool) bool { return b != nil && !*b }

// repository returns the URLs and credentials of the repository.
func (g *GitHub) repository() Repository {
	name := g.String()
	access := Access{URL: g.HTTPURL(name + ".git"), Username: "git", Password: g.Token, CABundle: g.CABundle}
	r := Repository{Access: access, SyncURL: g.SSHURL(name), DefaultBranch: g.Branch}
	if g.TokenAuth {
		r.SyncURL = access.URL
	}
	if g.found.repository != nil {
		r.DefaultBranch = g.found.repository.GetDefaultBranch()
	}
	return r
}

// Ensure implements Host. It creates the repository without a commit: the first
// push creates the branch, which becomes the default one.
func (g *GitHub) Ensure(ctx context.Context) (Repository, error) {
	if !g.found.surveyed {
		if _, err := g.Survey(ctx, Want{Branch: g.Branch}); err != nil {
			return Repository{}, err
		}
	}
	if g.found.repository == nil {
		if err := g.create(ctx); err != nil {
			return Repository{}, err
		}
	}
	for _, edit := range g.drift() {
		changed, _, err := g.api.Repositories.Edit(ctx, g.Owner, g.Name, edit.fields)
		if err != nil {
			return Repository{}, g.problem(ctx, "trying to "+edit.what, err)
		}
		g.found.repository = changed
	}
	return g.repository(), g.grantTeams(ctx)
}

func (g *GitHub) create(ctx context.Context) error {
	private, org := g.Visibility != "public", g.Owner
	wanted := &github.Repository{Name: &g.Name, Private: &private}
	if g.Visibility == "internal" {
		wanted.Visibility = &g.Visibility
	}
	if g.Description != "" {
		wanted.Description = &g.Description
	}
	if g.Personal {
		org = ""
	}
	created, _, err := g.api.Repositories.Create(ctx, org, wanted)
	if err == nil {
		g.found.repository = created
		return nil
	}
	var rejected *github.ErrorResponse
	if !errors.As(err, &rejected) || !mentions(rejected, "already exists") {
		return g.problem(ctx, "creating the repository "+g.String(), err)
	}
	// Another client created it, or the token cannot read the existing one.
	if err := g.readRepository(ctx); err != nil || g.found.repository != nil {
		return err
	}
	return hint.Errorf("grant the token access to it, or set another --repository", "there is a repository %s already, which the token cannot read", g.Hosted)
}
