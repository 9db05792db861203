package rest

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"strings"

	"github.com/fluxkit/flux/internal/githost"
	"github.com/fluxkit/flux/internal/hint"
)

// Driver defines a host's operations on a repository. Host adds a hint to errors of Driver, Keys, Teams and Requests
// that have none.
type Driver interface {
	// Read reads the account of the token and the repository. It returns nil if the repository does not exist or the
	// token cannot read it.
	Read(ctx context.Context) (*Properties, error)
	// Name returns the full name of the repository for messages, and Planned the repository that Create will create. Both
	// require Read.
	Name() string
	Planned() Properties
	// CheckCreate returns an error if the account cannot create the repository, and the reason why the host would
	// reject the first push.
	CheckCreate(ctx context.Context, want githost.Want) (protected string, err error)
	// CheckUse returns an error if the repository cannot be used, and the reason why the host would reject a push to
	// the branch. edits are the changes that --reconcile requires.
	CheckUse(ctx context.Context, want githost.Want, edits Edits) (protected string, err error)
	// CheckChanges returns an error if the token has no permission for the changes or the deploy key.
	CheckChanges(ctx context.Context, want githost.Want, changes []string) error
	// SSHAddress returns the SSH URL of any repository on the host, "" if there is none.
	SSHAddress(ctx context.Context) (string, error)

	Create(ctx context.Context) (*Properties, error)
	Edit(ctx context.Context, edits Edits) (*Properties, error)
}

// Keys manages the deploy keys of a Driver's repository.
type Keys interface {
	List(ctx context.Context) ([]Key, error)
	Add(ctx context.Context, title, public string) error
	Remove(ctx context.Context, key Key) error
}

// Teams manages the access of teams to a Driver's repository.
type Teams interface {
	// Access returns the permission of a team as in [githost.Team], "" for none.
	Access(ctx context.Context, team githost.Team) (string, error)
	// Grant grants a team access. had is the current permission of the team.
	Grant(ctx context.Context, team githost.Team, had string) error
}

// Requests manages the pull requests of a Driver's repository.
type Requests interface {
	// Find returns the open pull request of a change, with the number 0 if there is none.
	Find(ctx context.Context, change githost.Change) (githost.Request, error)
	Open(ctx context.Context, change githost.Change) (githost.Request, error)
}

// Properties describes a repository on its host.
type Properties struct {
	// Path is the path of the HTTP and SSH URLs, without .git.
	Path string
	// HTTPPath is the path of the HTTP URL if it differs from Path with .git.
	HTTPPath string
	// SSH is the SSH URL, which provides the SSH user and host, "" if unknown.
	SSH                     string
	Visibility, Description string
	Branch                  string
}

// Edits contains the repository settings to change, "" for no change.
type Edits struct{ Visibility, Description string }

// Words contains the terms of a host for messages.
type Words struct {
	// Repository is the term for a repository, and Request the term for a pull request.
	Repository, Request string
	// Grant and Regrant are templates that describe a change of a team's access: TEAM, PERMISSION, REPOSITORY and HAD,
	// the current permission, are replaced.
	Grant, Regrant string
	// UniqueTitles is set if the keys of a repository must have different titles.
	UniqueTitles bool
}

// Host implements githost.Host.
type Host struct {
	API      *API
	Driver   Driver
	Keys     Keys
	Teams    Teams
	Requests Requests
	Words    Words

	// Set by Survey.
	want   githost.Want
	found  *Properties // nil if it does not exist
	ssh    string      // the SSH URL of any repository of the host
	edits  Edits
	grants []grant
}

// grant is the permission to give to a team.
type grant struct {
	team githost.Team
	had  string
}

// Survey implements githost.Host.
func (h *Host) Survey(ctx context.Context, want githost.Want) (githost.Survey, error) {
	h.want, h.ssh, h.edits, h.grants = want, "", Edits{}, nil
	var err error
	if h.found, err = h.Driver.Read(ctx); err != nil {
		return githost.Survey{}, h.API.Explain(ctx, "reading the "+h.repository(), err)
	}
	survey := githost.Survey{Exists: h.found != nil}
	if h.found == nil {
		survey.Changes = []string{fmt.Sprintf("create the %s %s %s", h.API.Hosted.Visibility, h.Words.Repository, h.Driver.Name())}
		survey.Protected, err = h.Driver.CheckCreate(ctx, want)
	} else {
		survey.Changes = h.reconcile()
		survey.Protected, err = h.Driver.CheckUse(ctx, want, h.edits)
	}
	if err == nil {
		survey.Changes, err = h.surveyTeams(ctx, survey.Changes)
	}
	if err == nil {
		err = h.Driver.CheckChanges(ctx, want, survey.Changes)
	}
	if err == nil && h.found == nil && h.usesSSH() && h.API.Hosted.SSHHostname == "" {
		h.ssh, err = h.Driver.SSHAddress(ctx)
	}
	if err != nil {
		return survey, h.API.Explain(ctx, "checking the "+h.repository(), err)
	}
	survey.Account, survey.Expires, survey.Repository = h.API.Account, h.API.Expires, h.describe()
	return survey, nil
}

// repository returns the name of the repository for messages.
func (h *Host) repository() string { return h.Words.Repository + " " + h.API.Hosted.String() }

// reconcile determines the edits that --reconcile requires, and returns descriptions of them.
func (h *Host) reconcile() (changes []string) {
	wanted, name := h.API.Hosted, h.Words.Repository+" "+h.Driver.Name()
	if !wanted.Reconcile {
		return nil
	}
	if wanted.Visibility != h.found.Visibility {
		h.edits.Visibility = wanted.Visibility
		changes = append(changes, fmt.Sprintf("make the %s %s (it is %s)", name, wanted.Visibility, h.found.Visibility))
	}
	if d := wanted.Description; d != "" && d != h.found.Description {
		h.edits.Description = d
		changes = append(changes, fmt.Sprintf("set the description of the %s to %q", name, d))
	}
	return changes
}

// surveyTeams determines the permissions to grant to teams, and adds their descriptions to the changes. The current
// permission of a team is changed only with --reconcile.
func (h *Host) surveyTeams(ctx context.Context, changes []string) ([]string, error) {
	for _, team := range h.API.Hosted.Teams {
		had, err := h.Teams.Access(ctx, team)
		if err != nil {
			return changes, h.API.Explain(ctx, "reading the permission of "+team.Name, err)
		}
		format := h.Words.Grant
		switch {
		case had == team.Permission || had != "" && !h.API.Hosted.Reconcile:
			continue
		case had != "":
			format = h.Words.Regrant
		}
		h.grants = append(h.grants, grant{team, had})
		changes = append(changes, strings.NewReplacer("TEAM", team.Name, "PERMISSION", team.Permission, "REPOSITORY", h.Driver.Name(), "HAD", had).Replace(format))
	}
	return changes, nil
}

// Ensure implements githost.Host. It creates the repository without a commit: the first
// push creates the branch, which becomes the default branch.
func (h *Host) Ensure(ctx context.Context) (githost.Repository, error) {
	if h.found == nil {
		if err := h.create(ctx); err != nil {
			return githost.Repository{}, err
		}
	}
	if h.edits != (Edits{}) {
		edited, err := h.Driver.Edit(ctx, h.edits)
		if err != nil {
			return githost.Repository{}, h.API.Explain(ctx, "changing the "+h.repository(), err)
		}
		h.found, h.edits = edited, Edits{}
	}
	for len(h.grants) > 0 {
		if err := h.Teams.Grant(ctx, h.grants[0].team, h.grants[0].had); err != nil {
			return githost.Repository{}, h.API.Explain(ctx, "granting "+h.grants[0].team.Name+" access to the "+h.repository(), err)
		}
		h.grants = h.grants[1:]
	}
	return h.describe(), nil
}

func (h *Host) create(ctx context.Context) error {
	doing := "creating the " + h.repository()
	created, err := h.Driver.Create(ctx)
	if err == nil || !Exists(err) {
		h.found = created
		return h.API.Explain(ctx, doing, err)
	}
	// The repository was created by another client, or by an earlier request of this run whose response was lost.
	if h.found, err = h.Driver.Read(ctx); err == nil && h.found == nil {
		err = hint.Errorf("set another --repository, or use a token with access to the "+h.Words.Repository,
			"%s: the name is taken by a %s that the token cannot read", doing, h.Words.Repository)
	}
	return h.API.Explain(ctx, doing, err)
}

// usesSSH reports whether the cluster fetches over SSH.
func (h *Host) usesSSH() bool { return !h.API.Hosted.TokenAuth && !h.want.DeployToken }

// describe returns the URLs and credentials of the repository. Flags take precedence over the SSH user and host of the
// server.
func (h *Host) describe() githost.Repository {
	hosted := h.API.Hosted
	found := h.Driver.Planned()
	found.SSH, found.Branch = cmp.Or(h.ssh, found.SSH), hosted.Branch
	if h.found != nil {
		found = *h.found
	}
	user, host := sshLogin(found.SSH)
	hosted.SSHUsername, hosted.SSHHostname = cmp.Or(hosted.SSHUsername, user), cmp.Or(hosted.SSHHostname, host)
	access := githost.Access{
		URL: hosted.HTTPURL(cmp.Or(found.HTTPPath, found.Path+".git")), Username: cmp.Or(hosted.Username, "git"), Password: hosted.Token,
		CABundle: hosted.CABundle,
	}
	r := githost.Repository{Access: access, SyncURL: access.URL, DefaultBranch: found.Branch}
	if h.usesSSH() {
		r.SyncURL = hosted.SSHURL(found.Path)
	}
	return r
}

// sshLogin returns the user and the host of an SSH address in either form, ssh://git@host:port/path or git@host:path.
// The host includes a port that is not the default port.
func sshLogin(address string) (user, host string) {
	if u, err := url.Parse(address); err == nil && u.Scheme == "ssh" {
		return u.User.Username(), strings.TrimSuffix(u.Host, ":22")
	}
	user, rest, found := strings.Cut(address, "@")
	host, _, path := strings.Cut(rest, ":")
	if !found || !path {
		return "", ""
	}
	return user, host
}

// RequestChange implements githost.Requester.
func (h *Host) RequestChange(ctx context.Context, change githost.Change) (githost.Request, error) {
	doing := fmt.Sprintf("opening a %s from %q to %q", h.Words.Request, change.Head, change.Base)
	found, err := h.Requests.Find(ctx, change)
	if err != nil || found.Number != 0 {
		return found, h.API.Explain(ctx, doing, err)
	}
	opened, err := h.Requests.Open(ctx, change)
	if err == nil {
		opened.Opened = true
		return opened, nil
	}
	if Exists(err) { // opened in the meantime, possibly by a request whose response was lost
		if found, findErr := h.Requests.Find(ctx, change); findErr != nil || found.Number != 0 {
			return found, h.API.Explain(ctx, doing, findErr)
		}
	}
	return githost.Request{}, h.API.Explain(ctx, doing, err)
}

// OpenRequest implements githost.Opener.
func (h *Host) OpenRequest(ctx context.Context, change githost.Change) (githost.Request, error) {
	found, err := h.Driver.Read(ctx)
	switch {
	case err != nil:
		return githost.Request{}, h.API.Explain(ctx, "reading the "+h.repository(), err)
	case found == nil:
		return githost.Request{}, hint.Errorf("check the token in "+h.API.Hosted.TokenOrigin, "the %s does not exist, or the token cannot read it", h.repository())
	}
	return h.RequestChange(ctx, change)
}
