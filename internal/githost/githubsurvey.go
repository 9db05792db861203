package githost

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"

	"github.com/google/go-github/v60/github"

	"github.com/fluxkit/flux/internal/hint"
)

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

func (g *GitHub) readOwner(ctx context.Context) (*github.User, error) {
	owner, _, err := g.client.Users.Get(ctx, g.Owner)
	if status(err) == http.StatusNotFound {
		return nil, hint.Errorf("check --owner", "there is no user or organization %q on %s, or the token cannot read it", g.Owner, g.Hostname)
	}
	return owner, g.problem(ctx, "reading the owner "+g.Owner, err)
}

func (g *GitHub) readRepository(ctx context.Context) error {
	repository, _, err := g.client.Repositories.Get(ctx, g.Owner, g.Name)
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
	g.remote = repository
	return nil
}

// checkOwner returns an error for an owner that does not match --personal.
func (g *GitHub) checkOwner(owner *github.User) error {
	organization := owner.GetType() == "Organization"
	switch {
	case organization && g.Personal:
		return hint.Errorf("omit --personal", "%s is an organization and not a user", g.Owner)
	case !organization && !g.Personal:
		return hint.Errorf("add --personal", "%s is a user and not an organization", g.Owner)
	case g.Personal && g.Visibility == "internal":
		return hint.Errorf("set --visibility=private or public", "a user's repository cannot be internal")
	}
	return nil
}

// changes returns the changes that Ensure will make, and an error if the account
// has no permission for them.
func (g *GitHub) changes(ctx context.Context, want Want) ([]string, error) {
	var changes []string
	if g.remote == nil {
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
	var grants []string
	var err error
	if g.grants, grants, err = (githubTeams{g.githubAPI, g.remote != nil}).changes(ctx); err != nil {
		return nil, err
	}
	changes = append(changes, grants...)
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
	r := g.remote
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
	if g.token.kind == installationToken || g.remote == nil {
		return nil
	}
	return g.remote.GetPermissions()
}

// writable returns an error if the account cannot push to the repository.
func (g *GitHub) writable() error {
	r, may := g.remote, g.permissions()
	switch {
	case r.GetArchived():
		return hint.Errorf("unarchive it at "+g.HTTPURL(g.String()+"/settings"), "the repository %s is archived and read-only", g.Hosted)
	case r.GetDisabled():
		return hint.Errorf("contact GitHub Support", "the repository %s is disabled by GitHub", g.Hosted)
	case may != nil && !may["push"]:
		return hint.Errorf("ask for write access, or use a token of an account that has it", "%s has no permission to push to %s", g.account, g.Hosted)
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
		"%s is not an administrator of %s: deploy keys, teams and settings require it", g.account, g.Hosted)
}

// creatable returns an error if the account cannot create the repository.
func (g *GitHub) creatable(ctx context.Context) error {
	account := g.account
	switch {
	case g.Personal && account == "":
		return hint.Errorf("use a personal access token, or create the repository first", "authenticated as an app, which cannot create a repository for the user %s", g.Owner)
	case g.Personal && !strings.EqualFold(account, g.Owner):
		return hint.Errorf("use a token of "+g.Owner+", or let "+g.Owner+" create the repository and grant "+account+" access", "authenticated as %s, which can neither read nor create the repository %s", account, g.Hosted)
	case g.Personal || account == "":
		return nil
	}
	membership, _, err := g.client.Organizations.GetOrgMembership(ctx, "", g.Owner)
	switch {
	case status(err) == http.StatusNotFound:
		return hint.Errorf("ask to be invited, or use the token of a member", "%s is not a member of the organization %s, which has no repository %s that the token can read", account, g.Owner, g.Name)
	case status(err) == http.StatusForbidden && !requiresSignOn(err):
		return nil // a token without access to memberships may still create repositories
	case err != nil:
		return g.problem(ctx, "reading the membership of "+account+" in "+g.Owner, err)
	case membership.GetState() != "active":
		return hint.Errorf("accept the invitation at "+g.HTTPURL("orgs/"+g.Owner+"/invitation"), "%s has not accepted the invitation to the organization %s yet", account, g.Owner)
	case membership.GetRole() == "admin":
		return nil
	}
	return g.membersCreate(ctx)
}

// membersCreate returns an error if the organization is known not to let members
// create repositories.
func (g *GitHub) membersCreate(ctx context.Context) error {
	org, _, err := g.client.Organizations.Get(ctx, g.Owner)
	if err != nil {
		return g.problem(ctx, "reading the organization "+g.Owner, err)
	}
	allowed := map[string]*bool{
		"private": org.MembersCanCreatePrivateRepos, "public": org.MembersCanCreatePublicRepos, "internal": org.MembersCanCreateInternalRepos,
	}[g.Visibility]
	if no(allowed) || no(org.MembersCanCreateRepos) {
		return hint.Errorf("ask an owner of "+g.Owner+" to create the repository, or to let members create repositories", "members of the organization %s are not allowed to create %s repositories", g.Owner, g.Visibility)
	}
	return nil
}

// no reports whether a field is present and false.
func no(b *bool) bool { return b != nil && !*b }

// scopesSuffice returns an error if a classic token lacks a scope. The permissions of
// other tokens are unknown until GitHub rejects a request.
func (g *GitHub) scopesSuffice() error {
	if g.token.kind != classicToken {
		return nil
	}
	scope, why := "repo", "a private repository"
	if r := g.remote; g.Visibility == "public" && (r == nil || r.GetVisibility() == "public") {
		scope, why = "public_repo", "a public repository"
	}
	if !g.token.has(scope) {
		return g.lacksScope(g.token, scope, why)
	}
	if len(g.Teams) > 0 && !g.token.has("read:org") {
		return g.lacksScope(g.token, "read:org", "granting teams access")
	}
	return nil
}

// checkKeys returns an error if deploy keys are known not to be allowed.
func (g *GitHub) checkKeys(ctx context.Context) error {
	if !g.Personal {
		if err := (githubKeys{g.githubAPI}).checkPolicy(ctx); err != nil {
			return err
		}
	}
	if g.remote == nil {
		return nil // the account that creates it is its administrator
	}
	_, err := githubKeys{g.githubAPI}.list(ctx, "")
	return err
}
