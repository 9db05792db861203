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
)

// GitHub is a repository on github.com or on a GitHub Enterprise server.
type GitHub struct {
	Hosted
	api *github.Client

	// found is what the survey saw.
	found struct {
		surveyed bool
		account  string
		token    githubToken
		// repository is nil where there is none.
		repository *github.Repository
		// teams are those that lack their access.
		teams []Team
	}
}

// NewGitHub returns the row of GitHub. The client adds no credentials; see
// [Caller.Client].
func NewGitHub(h Hosted, client *http.Client) (*GitHub, error) {
	base := githubAPI(h)
	api := github.NewClient(client).WithAuthToken(h.Token)
	api.BaseURL = &base
	return &GitHub{Hosted: h, api: api}, nil
}

// githubAPI returns where the API of a host is.
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

// settings returns the address of a page where people change things.
func (g *GitHub) settings(path string) string { return g.HTTPURL(path) }

// Survey implements Host.
func (g *GitHub) Survey(ctx context.Context, want Want) (Survey, error) {
	owner, err := g.ask(ctx)
	if err != nil {
		return Survey{}, err
	}
	if err := g.rightOwner(owner); err != nil {
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

// ask finds out, at the same time, who asks for which repository of whom. Of
// several failures the one that explains the others is returned.
func (g *GitHub) ask(ctx context.Context) (owner *github.User, err error) {
	var asking sync.WaitGroup
	var ofAccount, ofOwner, ofRepository error
	asking.Go(func() { ofAccount = g.askAccount(ctx) })
	asking.Go(func() { owner, ofOwner = g.askOwner(ctx) })
	asking.Go(func() { ofRepository = g.askRepository(ctx) })
	asking.Wait()
	return owner, cmp.Or(ofAccount, ofOwner, ofRepository)
}

// askAccount finds out whose token it is and of which kind.
func (g *GitHub) askAccount(ctx context.Context) error {
	user, answer, err := g.api.Users.Get(ctx, "")
	if answer != nil {
		g.found.token = readGitHubToken(g.Token, answer.Header)
	}
	switch {
	case err == nil:
		g.found.account = user.GetLogin()
		return nil
	case statusOf(err) == http.StatusForbidden && g.found.token.kind == installationToken:
		return nil // it is an app's, which is nobody
	default:
		return g.refused(ctx, "checking the token", err)
	}
}

func (g *GitHub) askOwner(ctx context.Context) (*github.User, error) {
	owner, _, err := g.api.Users.Get(ctx, g.Owner)
	if statusOf(err) == http.StatusNotFound {
		return nil, failure("check --owner", "there is no user or organisation %q on %s, or the token cannot read it", g.Owner, g.Hostname)
	}
	return owner, g.refused(ctx, "looking for "+g.Owner, err)
}

func (g *GitHub) askRepository(ctx context.Context) error {
	repository, _, err := g.api.Repositories.Get(ctx, g.Owner, g.Name)
	if statusOf(err) == http.StatusNotFound {
		return nil
	}
	if err != nil {
		return g.refused(ctx, "looking for the repository "+g.String(), err)
	}
	if name := repository.GetFullName(); !strings.EqualFold(name, g.String()) {
		owner, short, _ := strings.Cut(name, "/")
		return failure(fmt.Sprintf("set --owner=%s --repository=%s", owner, short), "the repository %s has been renamed to %s", g.Hosted, name)
	}
	g.found.repository = repository
	return nil
}

// rightOwner refuses an owner that is not what --personal says.
func (g *GitHub) rightOwner(owner *github.User) error {
	organisation := owner.GetType() == "Organization"
	switch {
	case organisation && g.Personal:
		return failure("omit --personal", "%s is an organisation and not a user", g.Owner)
	case !organisation && !g.Personal:
		return failure("add --personal", "%s is a user and not an organisation", g.Owner)
	case g.Personal && g.Visibility == "internal":
		return failure("set --visibility=private or public", "a user's repository cannot be internal")
	}
	return nil
}

// changes returns what Ensure has to do, and refuses what the token's owner
// may not do.
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
		edits = append(edits, githubEdit{fmt.Sprintf("make the repository %s %s, which is %s", g.Hosted, g.Visibility, r.GetVisibility()), &github.Repository{Visibility: &g.Visibility}})
	}
	if g.Description != "" && r.GetDescription() != g.Description {
		edits = append(edits, githubEdit{fmt.Sprintf("describe the repository %s as %q", g.Hosted, g.Description), &github.Repository{Description: &g.Description}})
	}
	return edits
}

// may is what the token's owner may do with the repository, nil where there is
// none, or where the token is an app's, which has permissions of which only a
// refusal tells.
func (g *GitHub) may() map[string]bool {
	if g.found.token.kind == installationToken || g.found.repository == nil {
		return nil
	}
	return g.found.repository.GetPermissions()
}

// writable refuses a repository that takes no pushes from the token's owner.
func (g *GitHub) writable() error {
	r, may := g.found.repository, g.may()
	switch {
	case r.GetArchived():
		return failure("unarchive it at "+g.settings(g.String()+"/settings"), "the repository %s is archived and read-only", g.Hosted)
	case r.GetDisabled():
		return failure("contact GitHub Support", "the repository %s is disabled by GitHub", g.Hosted)
	case may != nil && !may["push"]:
		return failure("ask for write access, or use a token of an account that has it", "%s may not push to %s", g.found.account, g.Hosted)
	}
	return nil
}

// administers refuses an account that may not change settings, keys and teams.
func (g *GitHub) administers() error {
	if may := g.may(); may == nil || may["admin"] {
		return nil
	}
	return failure("ask for the role admin, or use a token of an account that has it; with --token-auth no deploy key is needed",
		"%s is not an administrator of %s: deploy keys, teams and settings require it", g.found.account, g.Hosted)
}

// creatable refuses a repository that the token's owner may not make.
func (g *GitHub) creatable(ctx context.Context) error {
	account := g.found.account
	switch {
	case g.Personal && account == "":
		return failure("use a personal access token, or create the repository first", "authenticated as an app, which cannot create a repository for the user %s", g.Owner)
	case g.Personal && !strings.EqualFold(account, g.Owner):
		return failure("use a token of "+g.Owner+", or let "+g.Owner+" create the repository and grant "+account+" access", "authenticated as %s, which can neither read nor create the repository %s", account, g.Hosted)
	case g.Personal || account == "":
		return nil
	}
	membership, _, err := g.api.Organizations.GetOrgMembership(ctx, "", g.Owner)
	switch {
	case statusOf(err) == http.StatusNotFound:
		return failure("ask to be invited, or use the token of a member", "%s is not a member of the organisation %s, which has no repository %s that the token can read", account, g.Owner, g.Name)
	case statusOf(err) == http.StatusForbidden && !signOn(err):
		return nil // a token that may not read memberships may still make repositories
	case err != nil:
		return g.refused(ctx, "reading the membership of "+account+" in "+g.Owner, err)
	case membership.GetState() != "active":
		return failure("accept the invitation at "+g.settings("orgs/"+g.Owner+"/invitation"), "%s has not accepted the invitation to the organisation %s yet", account, g.Owner)
	case membership.GetRole() == "admin":
		return nil
	}
	return g.membersCreate(ctx)
}

// membersCreate refuses where the organisation does not let members make
// repositories, as far as it says so.
func (g *GitHub) membersCreate(ctx context.Context) error {
	org, _, err := g.api.Organizations.Get(ctx, g.Owner)
	if err != nil {
		return g.refused(ctx, "reading the organisation "+g.Owner, err)
	}
	allowed := map[string]*bool{
		"private": org.MembersCanCreatePrivateRepos, "public": org.MembersCanCreatePublicRepos, "internal": org.MembersCanCreateInternalRepos,
	}[g.Visibility]
	if no(allowed) || no(org.MembersCanCreateRepos) {
		return failure("ask an owner of "+g.Owner+" to create the repository, or to let members create repositories", "members of the organisation %s may not create %s repositories", g.Owner, g.Visibility)
	}
	return nil
}

func no(b *bool) bool { return b != nil && !*b }

// repository is the repository as it is or will be.
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

// Ensure implements Host. The repository is made without a first commit: the
// first push makes the branch, which becomes the default one.
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
			return Repository{}, g.refused(ctx, "trying to "+edit.what, err)
		}
		g.found.repository = changed
	}
	return g.repository(), g.giveTeams(ctx)
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
	made, _, err := g.api.Repositories.Create(ctx, org, wanted)
	if err == nil {
		g.found.repository = made
		return nil
	}
	var refusal *github.ErrorResponse
	if !errors.As(err, &refusal) || !says(refusal, "already exists") {
		return g.refused(ctx, "creating the repository "+g.String(), err)
	}
	// Somebody was faster, or the token may not see what is there.
	if err := g.askRepository(ctx); err != nil || g.found.repository != nil {
		return err
	}
	return failure("grant the token access to it, or set another --repository", "there is a repository %s already, which the token cannot read", g.Hosted)
}
