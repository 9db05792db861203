package github

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/fluxkit/flux/internal/githost"
	"github.com/fluxkit/flux/internal/githost/rest"
	"github.com/fluxkit/flux/internal/hint"
)

// Read implements rest.Driver. It reads the account, the owner and the repository in parallel. If several requests
// fail, it returns the error that caused the others.
func (d *driver) Read(ctx context.Context) (*rest.Properties, error) {
	var reads sync.WaitGroup
	var ofAccount, ofOwner, ofRepository error
	reads.Go(func() { d.API.Account, ofAccount = d.readAccount(ctx) })
	reads.Go(func() { d.owner, ofOwner = call(d.client.Users.Get(ctx, d.Hosted.Owner)) })
	reads.Go(func() { d.remote, ofRepository = call(d.client.Repositories.Get(ctx, d.Hosted.Owner, d.Hosted.Name)) })
	reads.Wait()
	switch {
	case ofAccount != nil:
		return nil, d.API.Explain(ctx, "checking the token", ofAccount)
	case rest.Missing(ofOwner):
		return nil, hint.Errorf("check --owner", "user or organization %q not found on %s, or the token cannot read it", d.Hosted.Owner, d.Hosted.Hostname)
	case ofOwner != nil:
		return nil, d.API.Explain(ctx, "reading the owner "+d.Hosted.Owner, ofOwner)
	case rest.Missing(ofRepository):
		d.remote = nil
	case ofRepository != nil:
		return nil, d.API.Explain(ctx, "reading the repository "+d.Name(), ofRepository)
	}
	if name := d.remote.GetFullName(); d.remote != nil && !strings.EqualFold(name, d.Name()) {
		owner, short, _ := strings.Cut(name, "/")
		return nil, hint.Errorf(fmt.Sprintf("set --owner=%s --repository=%s", owner, short), "the repository %s has been renamed to %s", d.Hosted, name)
	}
	if err := cmp.Or(d.checkOwner(), d.scopesSuffice()); err != nil || d.remote == nil {
		return nil, err
	}
	return d.use(d.remote), nil
}

// CheckCreate implements rest.Driver.
func (d *driver) CheckCreate(ctx context.Context, _ githost.Want) (string, error) {
	return "", d.creatable(ctx)
}

// CheckUse implements rest.Driver.
func (d *driver) CheckUse(ctx context.Context, want githost.Want, _ rest.Edits) (string, error) {
	if err := d.writable(); err != nil {
		return "", err
	}
	return branch{d, want.Branch, d.remote.GetPermissions()["admin"]}.protected(ctx)
}

// CheckChanges implements rest.Driver.
func (d *driver) CheckChanges(ctx context.Context, want githost.Want, changes []string) error {
	if len(changes) > 0 || want.KeyTitle != "" {
		if err := d.administers(); err != nil {
			return err
		}
	}
	if want.KeyTitle == "" {
		return nil
	}
	return d.checkKeys(ctx)
}

// checkOwner returns an error for an owner that does not match --personal.
func (d *driver) checkOwner() error {
	organization := d.owner.GetType() == "Organization"
	switch {
	case organization && d.Hosted.Personal:
		return hint.Errorf("omit --personal", "%s is an organization, not a user", d.Hosted.Owner)
	case !organization && !d.Hosted.Personal:
		return hint.Errorf("add --personal", "%s is a user, not an organization", d.Hosted.Owner)
	case d.Hosted.Personal && d.Hosted.Visibility == "internal":
		return hint.Errorf("set --visibility=private or public", "a user's repository cannot be internal")
	}
	return nil
}

// permissions returns the permissions of the account on the repository, nil if they
// are unknown because there is no repository or the token belongs to an app.
func (d *driver) permissions() map[string]bool {
	if d.token.kind == installationToken || d.remote == nil {
		return nil
	}
	return d.remote.GetPermissions()
}

// writable returns an error if the account cannot push to the repository.
func (d *driver) writable() error {
	r, may := d.remote, d.permissions()
	switch {
	case r.GetArchived():
		return hint.Errorf("unarchive it at "+d.Hosted.HTTPURL(d.Hosted.String()+"/settings"), "the repository %s is archived and read-only", d.Hosted)
	case r.GetDisabled():
		return hint.Errorf("contact GitHub Support", "the repository %s is disabled by GitHub", d.Hosted)
	case may != nil && !may["push"]:
		return hint.Errorf("ask for write access, or use a token of an account that has it", "%s has no permission to push to %s", d.API.Account, d.Hosted)
	}
	return nil
}

// administers returns an error if the account cannot change settings, keys and
// teams.
func (d *driver) administers() error {
	if may := d.permissions(); may == nil || may["admin"] {
		return nil
	}
	return hint.Errorf("ask for the admin role, or use a token of an account that has it; --token-auth requires no deploy key",
		"%s is not an administrator of %s: deploy keys, teams and settings require the admin role", d.API.Account, d.Hosted)
}

// creatable returns an error if the account cannot create the repository.
func (d *driver) creatable(ctx context.Context) error {
	account := d.API.Account
	switch {
	case d.Hosted.Personal && account == "":
		return hint.Errorf("use a personal access token, or create the repository first", "authenticated as an app, which cannot create a repository for the user %s", d.Hosted.Owner)
	case d.Hosted.Personal && !strings.EqualFold(account, d.Hosted.Owner):
		return hint.Errorf("use a token of "+d.Hosted.Owner+", or ask "+d.Hosted.Owner+" to create the repository and grant "+account+" access", "authenticated as %s, which can neither read nor create the repository %s", account, d.Hosted)
	case d.Hosted.Personal || account == "":
		return nil
	}
	membership, err := call(d.client.Organizations.GetOrgMembership(ctx, "", d.Hosted.Owner))
	switch {
	case rest.Missing(err):
		return hint.Errorf("ask to be invited, or use the token of a member", "%s is not a member of the organization %s, and repository %s does not exist or the token cannot read it", account, d.Hosted.Owner, d.Hosted.Name)
	case rest.Denied(err) && !requiresSignOn(err):
		return nil // a token without access to memberships may still create repositories
	case err != nil:
		return d.API.Explain(ctx, "reading the membership of "+account+" in "+d.Hosted.Owner, err)
	case membership.GetState() != "active":
		return hint.Errorf("accept the invitation at "+d.Hosted.HTTPURL("orgs/"+d.Hosted.Owner+"/invitation"), "%s has not accepted the invitation to the organization %s yet", account, d.Hosted.Owner)
	case membership.GetRole() == "admin":
		return nil
	}
	return d.membersCreate(ctx)
}

// membersCreate returns an error if the organization is known not to allow members to create repositories.
func (d *driver) membersCreate(ctx context.Context) error {
	org, err := call(d.client.Organizations.Get(ctx, d.Hosted.Owner))
	if err != nil {
		return d.API.Explain(ctx, "reading the organization "+d.Hosted.Owner, err)
	}
	allowed := map[string]*bool{
		"private": org.MembersCanCreatePrivateRepos, "public": org.MembersCanCreatePublicRepos, "internal": org.MembersCanCreateInternalRepos,
	}[d.Hosted.Visibility]
	if no(allowed) || no(org.MembersCanCreateRepos) {
		return hint.Errorf("ask an owner of "+d.Hosted.Owner+" to create the repository, or to allow members to create repositories", "members of the organization %s are not allowed to create %s repositories", d.Hosted.Owner, d.Hosted.Visibility)
	}
	return nil
}

// no reports whether a field is present and false.
func no(b *bool) bool { return b != nil && !*b }

// scopesSuffice returns an error if a classic token lacks a scope. The permissions of
// other tokens are unknown until GitHub rejects a request.
func (d *driver) scopesSuffice() error {
	if d.token.kind != classicToken {
		return nil
	}
	scope, why := "repo", "a private repository"
	if r := d.remote; d.Hosted.Visibility == "public" && (r == nil || r.GetVisibility() == "public") {
		scope, why = "public_repo", "a public repository"
	}
	if !d.token.has(scope) {
		return d.lacksScope(d.token, scope, why)
	}
	if len(d.Hosted.Teams) > 0 && !d.token.has("read:org") {
		return d.lacksScope(d.token, "read:org", "granting teams access")
	}
	return nil
}

// checkKeys returns an error if deploy keys are known to be disabled. The library does not expose this field of the
// organization.
func (d *driver) checkKeys(ctx context.Context) error {
	if !d.Hosted.Personal {
		var policy struct {
			Enabled *bool `json:"deploy_keys_enabled_for_repositories"`
		}
		if err := d.get(ctx, "orgs/"+d.Hosted.Owner, &policy); err != nil {
			return d.API.Explain(ctx, "reading the organization "+d.Hosted.Owner, err)
		}
		if no(policy.Enabled) {
			return d.noKeys()
		}
	}
	if d.remote == nil {
		return nil // the creator of a repository is its administrator
	}
	_, err := keys{d}.List(ctx)
	return d.API.Explain(ctx, "listing the deploy keys of "+d.Name(), err)
}

// noKeys returns the error for an organization that does not allow deploy keys.
func (d *driver) noKeys() error {
	return hint.Errorf("use --token-auth, or ask an owner to allow deploy keys at "+d.Hosted.HTTPURL("organizations/"+d.Hosted.Owner+"/settings/member_privileges"),
		"the owner's policy does not allow deploy keys for %s", d.Hosted)
}
