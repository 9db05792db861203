package githost

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/fluxkit/flux/internal/hint"
)

// Gitea is a repository on Gitea or Forgejo
// (https://docs.gitea.com/api/). Gitea's SDK is not used: it adds a request to
// each start, and its errors do not have the status of the response.
type Gitea struct {
	*giteaAPI

	// Set by Survey.
	want Want
	// repo is nil if the repository does not exist.
	repo *giteaRepository
	// neighbor is any repository of the server, whose URL has the SSH host; nil
	// for none.
	neighbor *giteaRepository
	edits    map[string]any
	// teams are the teams to grant access.
	teams []string
}

// giteaRepository is a repository in the API.
type giteaRepository struct {
	FullName        string `json:"full_name"`
	Description     string `json:"description"`
	Private         bool   `json:"private"`
	Empty           bool   `json:"empty"`
	Archived        bool   `json:"archived"`
	Mirror          bool   `json:"mirror"`
	HasPullRequests bool   `json:"has_pull_requests"`
	DefaultBranch   string `json:"default_branch"`
	SSHURL          string `json:"ssh_url"`
	Permissions     struct {
		Admin bool `json:"admin"`
		Push  bool `json:"push"`
	} `json:"permissions"`
}

// GiteaPermissions returns the permissions of teams: those of Gitea, and the
// equivalent ones of other hosts.
func GiteaPermissions() []string {
	return []string{"read", "write", "admin", "pull", "triage", "push", "maintain"}
}

// NewGitea returns a repository on Gitea. See [Caller.Client] for the client.
func NewGitea(hosted Hosted, client *http.Client) *Gitea {
	hosted.Owner = strings.Trim(hosted.Owner, "/")
	return &Gitea{giteaAPI: newGiteaAPI(client, hosted)}
}

// Survey implements Host.
func (g *Gitea) Survey(ctx context.Context, want Want) (Survey, error) {
	*g = Gitea{giteaAPI: &giteaAPI{hosted: g.hosted, rest: g.rest}, want: want}
	if err := g.identify(ctx); err != nil {
		return Survey{}, err
	}
	if err := g.find(ctx); err != nil {
		return Survey{}, err
	}
	survey := Survey{Exists: g.repo != nil, Account: g.account}
	var err error
	if g.repo == nil {
		err = g.surveyOwner(ctx)
		survey.Changes = append(survey.Changes, fmt.Sprintf("create the %s repository %s", g.hosted.Visibility, g.hosted))
	} else {
		survey.Protected, err = g.surveyRepository(ctx)
		survey.Changes = append(survey.Changes, g.surveyEdits()...)
	}
	if err != nil {
		return survey, err
	}
	if g.teams, err = g.access().missing(ctx); err != nil {
		return survey, err
	}
	for _, team := range g.teams {
		survey.Changes = append(survey.Changes, fmt.Sprintf("grant team %s access to %s", team, g.fullName()))
	}
	if g.repo != nil && !g.repo.Permissions.Admin && len(survey.Changes) > 0 {
		return survey, hint.Errorf("use a token of an administrator, or omit the flags that require this",
			"%s does not administer %s, so it may not %s", g.who(), g.fullName(), survey.Changes[0])
	}
	survey.Repository = g.repository()
	return survey, nil
}

// Ensure implements Host.
func (g *Gitea) Ensure(ctx context.Context) (Repository, error) {
	if g.repo == nil {
		if err := g.create(ctx); err != nil {
			return Repository{}, err
		}
	}
	if len(g.edits) > 0 {
		if err := g.call(ctx, "changing repository "+g.fullName(), http.MethodPatch, g.path(), g.edits, g.repo); err != nil {
			return Repository{}, err
		}
		g.edits = nil
	}
	for len(g.teams) > 0 {
		if err := g.access().add(ctx, g.teams[0]); err != nil {
			return Repository{}, err
		}
		g.teams = g.teams[1:]
	}
	return g.repository(), nil
}

// create creates the repository without a commit.
func (g *Gitea) create(ctx context.Context) error {
	var created giteaRepository
	err := g.call(ctx, "creating repository "+g.hosted.String(), http.MethodPost, g.owner()+"/repos", map[string]any{
		"name": g.hosted.Name, "description": g.hosted.Description, "private": g.hosted.Visibility != "public",
		"default_branch": g.hosted.Branch,
	}, &created)
	if status(err) != http.StatusConflict {
		if err == nil {
			g.repo = &created
		}
		return err
	}
	// Another client created it, or an earlier request of this run whose response
	// was lost.
	if err := g.find(ctx); err != nil {
		return err
	}
	if g.repo == nil {
		return hint.Errorf("set another --repository, or use a token with access to the repository",
			"creating repository %s: the name is taken by a repository that the token cannot read", g.hosted)
	}
	return nil
}

// DeployKey implements Host.
func (g *Gitea) DeployKey(ctx context.Context, key DeployKey) error {
	return grant(ctx, &giteaKeys{g.giteaAPI, g.fullName(), g.path("keys"), map[string]bool{}}, key)
}

// access returns the teams with access to the repository.
func (g *Gitea) access() giteaTeams {
	if g.repo == nil {
		return giteaTeams{g.giteaAPI, g.fullName(), ""}
	}
	return giteaTeams{g.giteaAPI, g.fullName(), g.path("teams")}
}

// RequestChange implements Requester.
func (g *Gitea) RequestChange(ctx context.Context, change Change) (Request, error) {
	doing := fmt.Sprintf("opening a pull request from %s to %s", change.Head, change.Base)
	return openRequest(func() (found Request, err error) {
		err = giteaPages(ctx, g.giteaAPI, doing, g.path("pulls"), url.Values{"state": {"open"}}, func(open giteaRequest) {
			if open.Head.Ref == change.Head && open.Base.Ref == change.Base && open.Head.Repo.FullName == open.Base.Repo.FullName {
				found = Request{URL: open.URL, Number: open.Number}
			}
		})
		return found, err
	}, func() (Request, error) {
		var opened giteaRequest
		_, err := g.rest.call(ctx, http.MethodPost, g.path("pulls"), nil,
			map[string]any{"head": change.Head, "base": change.Base, "title": change.Title, "body": change.Body}, &opened)
		return Request{URL: opened.URL, Number: opened.Number, Opened: true}, err
	}, conflict, func(err error) error { return g.problem(ctx, doing, err) })
}

// giteaRequest is a pull request in the API.
type giteaRequest struct {
	Number     int    `json:"number"`
	URL        string `json:"html_url"`
	Head, Base struct {
		Ref  string `json:"ref"`
		Repo struct {
			FullName string `json:"full_name"`
		} `json:"repo"`
	}
}

// repository returns the URLs and credentials of the repository.
func (g *Gitea) repository() Repository {
	path := g.fullName()
	r := Repository{DefaultBranch: g.hosted.Branch}
	if g.repo != nil {
		r.DefaultBranch = g.repo.DefaultBranch
	}
	address := g.hosted.HTTPURL(path + ".git")
	r.Access = Access{URL: address, Username: "git", Password: g.hosted.Token, CABundle: g.hosted.CABundle}
	r.SyncURL = address
	if !g.hosted.TokenAuth {
		r.SyncURL = g.sshHosted().SSHURL(path)
	}
	return r
}

// sshHosted returns the repository with the SSH user and host of the server, unless
// flags set them.
func (g *Gitea) sshHosted() Hosted {
	h := g.hosted
	known := g.repo
	if known == nil {
		known = g.neighbor
	}
	if known == nil {
		return h
	}
	user, host := sshLogin(known.SSHURL)
	if h.SSHHostname == "" {
		h.SSHHostname = host
	}
	if h.SSHUsername == "" {
		h.SSHUsername = user
	}
	return h
}

// sshLogin returns the user and the host of an SSH address in either form,
// ssh://git@host:port/path or git@host:path. The host has the port if it is not
// the default one.
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

// fullName returns the full name of the repository. Gitea finds a renamed
// repository by its old name.
func (g *Gitea) fullName() string {
	if g.repo != nil {
		return g.repo.FullName
	}
	return g.hosted.String()
}

// path returns the path of the repository, or of a part of it, in the API.
func (g *Gitea) path(parts ...string) string {
	owner, name, _ := strings.Cut(g.fullName(), "/")
	path := "/repos"
	for _, part := range append([]string{owner, name}, parts...) {
		path += "/" + url.PathEscape(part)
	}
	return path
}

// owner returns the path of the owner of the repository in the API.
func (g *Gitea) owner() string {
	if g.hosted.Personal {
		return "/user"
	}
	return "/orgs/" + url.PathEscape(g.hosted.Owner)
}
