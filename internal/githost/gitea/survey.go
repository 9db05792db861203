package gitea

import (
	"context"
	"fmt"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/fluxkit/flux/internal/githost"
	"github.com/fluxkit/flux/internal/githost/rest"
	"github.com/fluxkit/flux/internal/hint"
)

// Read implements rest.Driver.
func (d *driver) Read(ctx context.Context) (*rest.Properties, error) {
	d.repo, d.absent, d.present, d.all = nil, false, nil, nil
	if err := d.identify(ctx); err != nil {
		return nil, err
	}
	var found repository
	err := d.get(ctx, d.path(), &found)
	switch {
	case rest.Missing(err):
		d.absent = true
		return nil, nil // it does not exist
	case err != nil:
		return nil, d.API.Explain(ctx, "reading repository "+d.Hosted.String(), err)
	case found.FullName == "":
		return nil, hint.Errorf("check --hostname", "%s is not a Gitea API", d.Hosted.Hostname)
	}
	return d.use(&found), nil
}

// CheckCreate implements rest.Driver.
func (d *driver) CheckCreate(ctx context.Context, _ githost.Want) (string, error) {
	if d.Hosted.Personal && d.API.Account != "" && !strings.EqualFold(d.API.Account, d.Hosted.Owner) {
		return "", hint.Errorf(fmt.Sprintf("use a token of %s, or omit --personal if it is an organization", d.Hosted.Owner),
			"repository %s cannot be created: the token belongs to %s", d.Hosted, d.API.Account)
	}
	err := d.checkScopes(ctx, d.owner()+"/repos")
	if rest.Missing(err) {
		return "", d.noOwner(ctx)
	}
	if err == nil {
		// Deploy keys require a different scope than creating the repository.
		err = d.checkScopes(ctx, d.path("keys"))
		if rest.Missing(err) {
			err = nil // there is no repository yet
		}
	}
	if err != nil {
		return "", d.API.Explain(ctx, "checking the scopes of the token", err)
	}
	if d.Hosted.Personal {
		return "", nil
	}
	return "", d.mayCreate(ctx)
}

// CheckChanges implements rest.Driver.
func (d *driver) CheckChanges(_ context.Context, _ githost.Want, changes []string) error {
	if d.repo == nil || d.repo.Permissions.Admin || len(changes) == 0 {
		return nil
	}
	return hint.Errorf("use an administrator's token, or omit the flags that require it",
		"%s is not an administrator of %s and cannot %s", d.API.Who(), d.Name(), changes[0])
}

// noOwner returns the error for an organization that does not exist.
func (d *driver) noOwner(ctx context.Context) error {
	var user struct{ Login string }
	if err := d.get(ctx, "/users/"+url.PathEscape(d.Hosted.Owner), &user); err == nil && user.Login != "" {
		return hint.Errorf("add --personal", "%s is a user on %s, not an organization", user.Login, d.Hosted.Hostname)
	}
	return hint.Errorf("check --owner, or add --personal if it is a user",
		"organization %s does not exist on %s, or %s cannot read it", d.Hosted.Owner, d.Hosted.Hostname, d.API.Who())
}

// mayCreate returns an error if the account has no permission to create repositories in the organization. It returns
// nil if the token cannot read the permission.
func (d *driver) mayCreate(ctx context.Context) error {
	if d.API.Account == "" {
		return nil
	}
	var may struct {
		Create bool `json:"can_create_repository"`
		Admin  bool `json:"is_admin"`
		Owner  bool `json:"is_owner"`
	}
	path := fmt.Sprintf("/users/%s/orgs/%s/permissions", url.PathEscape(d.API.Account), url.PathEscape(d.Hosted.Owner))
	err := d.get(ctx, path, &may)
	switch {
	case rest.Denied(err) || rest.Missing(err):
		return nil // unknown: creating the repository may fail
	case err != nil:
		return d.API.Explain(ctx, "checking the permissions in organization "+d.Hosted.Owner, err)
	case !may.Create && !may.Admin && !may.Owner:
		return hint.Errorf("ask an owner of the organization to create the repository, or to allow one of your teams to create repositories",
			"%s has no permission to create repositories in organization %s", d.API.Account, d.Hosted.Owner)
	}
	return nil
}

// CheckUse implements rest.Driver.
func (d *driver) CheckUse(ctx context.Context, want githost.Want, _ rest.Edits) (protected string, err error) {
	name := d.Name()
	settings := "change it in " + d.Hosted.HTTPURL(name+"/settings")
	switch {
	case d.repo.Archived:
		return "", hint.Errorf(settings+", or choose another repository", "repository %s is archived and read-only", name)
	case d.repo.Mirror:
		return "", hint.Errorf("choose another repository, such as the mirrored one", "repository %s is a mirror and read-only", name)
	case !d.repo.Permissions.Push:
		return "", hint.Errorf("ask for write access, or use a token of an account that has it", "%s has no permission to push to %s", d.API.Who(), name)
	case want.ChangeRequest && !d.repo.HasPullRequests:
		return "", hint.Errorf(settings, "pull requests are disabled for repository %s", name)
	case want.KeyTitle != "" && !d.repo.Permissions.Admin:
		return "", hint.Errorf("use a repository administrator's token, or --token-auth",
			"adding a deploy key: %s is not an administrator of %s", d.API.Who(), name)
	}
	if err := d.checkScopes(ctx, d.path("keys")); err != nil {
		return "", d.API.Explain(ctx, "checking the scopes of the token", err)
	}
	return d.surveyBranch(ctx, want.Branch)
}

// surveyBranch returns the reason why a push to the branch would be rejected.
func (d *driver) surveyBranch(ctx context.Context, name string) (string, error) {
	var branch struct {
		Protected   bool   `json:"protected"`
		UserCanPush bool   `json:"user_can_push"`
		Rule        string `json:"effective_branch_protection_name"`
	}
	err := d.get(ctx, d.path(append([]string{"branches"}, strings.Split(name, "/")...)...), &branch)
	switch {
	case rest.Missing(err):
		return d.surveyRules(ctx, name)
	case err != nil || !branch.Protected || branch.UserCanPush:
		return "", d.API.Explain(ctx, fmt.Sprintf("reading branch %s of %s", name, d.Name()), err)
	}
	return protection(branch.Rule, name, d.API.Who()), nil
}

func protection(rule, branch, who string) string {
	if rule == "" || rule == branch {
		return fmt.Sprintf("branch %s is protected, and %s is not allowed to push to it", branch, who)
	}
	return fmt.Sprintf("branch %s is protected by rule %s, and %s is not allowed to push to it", branch, rule, who)
}

// rule is a branch protection rule.
type rule struct {
	Name   string   `json:"rule_name"`
	Push   bool     `json:"enable_push"`
	Listed bool     `json:"enable_push_whitelist"`
	Users  []string `json:"push_whitelist_usernames"`
	Teams  []string `json:"push_whitelist_teams"`
}

// surveyRules returns the reason why a push that creates the branch would be
// rejected. Only administrators of the repository can read the rules.
func (d *driver) surveyRules(ctx context.Context, name string) (string, error) {
	if !d.repo.Permissions.Admin {
		return "", nil
	}
	var rules []rule
	if err := d.get(ctx, d.path("branch_protections"), &rules); err != nil {
		return "", d.API.Explain(ctx, "reading the branch protections of "+d.Name(), err)
	}
	for _, r := range rules {
		matches, err := path.Match(r.Name, name)
		if r.Name != name && (err != nil || !matches) {
			continue
		}
		listed := len(r.Teams) > 0 || slices.ContainsFunc(r.Users, func(user string) bool { return strings.EqualFold(user, d.API.Account) })
		if !r.Push || r.Listed && !listed {
			return protection(r.Name, name, d.API.Who()), nil
		}
		return "", nil // the first rule that matches applies
	}
	return "", nil
}
