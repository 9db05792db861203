package githost

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// Gitea is a repository on a Gitea or Forgejo, called by its REST API
// (https://docs.gitea.com/api/). The API's client is a page here: the SDK adds
// a request to every start, and puts the server's answers into errors as text
// from which a status can no longer be told.
type Gitea struct {
	hosted Hosted
	client *http.Client

	// Found out by Survey.
	surveyed bool
	want     Want
	// account is whom authenticated as, "" where the token may not say.
	account string
	// repo is nil where there is none yet, which is known once absent.
	repo   *giteaRepository
	absent bool
	// neighbour is some repository of the server, whose addresses tell where
	// SSH listens; nil where there is none.
	neighbour *giteaRepository
	edits     map[string]any
	// teams are those that are to be given access.
	teams []string
}

// giteaRepository is a repository as the API has it.
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

// GiteaPermissions returns the words for what a team may do with a repository:
// those of Gitea, and those of other hosts for the same.
func GiteaPermissions() []string {
	return []string{"read", "write", "admin", "pull", "triage", "push", "maintain"}
}

// NewGitea returns the row of Gitea and Forgejo. The client has to bound its requests.
func NewGitea(hosted Hosted, client *http.Client) *Gitea {
	hosted.Owner = strings.Trim(hosted.Owner, "/")
	return &Gitea{hosted: hosted, client: client}
}

// Survey implements Host.
func (g *Gitea) Survey(ctx context.Context, want Want) (Survey, error) {
	*g = Gitea{hosted: g.hosted, client: g.client, want: want}
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
	if err := g.surveyTeams(ctx); err != nil {
		return survey, err
	}
	for _, team := range g.teams {
		survey.Changes = append(survey.Changes, fmt.Sprintf("grant team %s access to %s", team, g.path()))
	}
	if g.repo != nil && !g.repo.Permissions.Admin && len(survey.Changes) > 0 {
		return survey, failure("use a token of an administrator, or omit the flags that require this",
			"%s does not administer %s, so it may not %s", g.who(), g.path(), survey.Changes[0])
	}
	survey.Repository = g.repository()
	g.surveyed = true
	return survey, nil
}

// Ensure implements Host.
func (g *Gitea) Ensure(ctx context.Context) (Repository, error) {
	if !g.surveyed {
		if _, err := g.Survey(ctx, Want{Branch: g.hosted.Branch}); err != nil {
			return Repository{}, err
		}
	}
	if g.repo == nil {
		if err := g.create(ctx); err != nil {
			return Repository{}, err
		}
	}
	if len(g.edits) > 0 {
		if err := g.call(ctx, "changing repository "+g.path(), http.MethodPatch, g.api(), g.edits, g.repo); err != nil {
			return Repository{}, err
		}
		g.edits = nil
	}
	for len(g.teams) > 0 {
		if err := g.addTeam(ctx, g.teams[0]); err != nil {
			return Repository{}, err
		}
		g.teams = g.teams[1:]
	}
	return g.repository(), nil
}

// create makes the repository, which is empty.
func (g *Gitea) create(ctx context.Context) error {
	var made giteaRepository
	err := g.call(ctx, "creating repository "+g.hosted.String(), http.MethodPost, g.owner()+"/repos", map[string]any{
		"name": g.hosted.Name, "description": g.hosted.Description, "private": g.hosted.Visibility != "public",
		"default_branch": g.hosted.Branch,
	}, &made)
	if status(err) != http.StatusConflict {
		if err == nil {
			g.repo = &made
		}
		return err
	}
	// Somebody else made it, or an earlier request of this run whose answer was lost.
	if err := g.find(ctx); err != nil {
		return err
	}
	if g.repo == nil {
		return failure("set another --repository, or use a token with access to the repository",
			"creating repository %s: the name is taken by a repository that the token cannot read", g.hosted)
	}
	return nil
}

// addTeam gives a team access.
func (g *Gitea) addTeam(ctx context.Context, team string) error {
	err := g.call(ctx, fmt.Sprintf("granting team %s access to %s", team, g.path()), http.MethodPut, g.api("teams", team), nil, nil)
	if status(err) == http.StatusUnprocessableEntity && strings.Contains(said(err), "already added") {
		return nil // a team of all repositories had it as soon as the repository was there
	}
	return err
}

// RequestChange implements Requester.
func (g *Gitea) RequestChange(ctx context.Context, change Change) (Request, error) {
	doing := fmt.Sprintf("opening a pull request from %s to %s", change.Head, change.Base)
	if open, err := g.openRequest(ctx, doing, change); err != nil || open.Number != 0 {
		return open, err
	}
	var made giteaRequest
	err := g.call(ctx, doing, http.MethodPost, g.api("pulls"),
		map[string]any{"head": change.Head, "base": change.Base, "title": change.Title, "body": change.Body}, &made)
	if status(err) == http.StatusConflict {
		// Another run opened it meanwhile.
		return g.openRequest(ctx, doing, change)
	}
	return Request{URL: made.URL, Number: made.Number, Opened: true}, err
}

// giteaRequest is a pull request as the API has it.
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

// openRequest returns the open pull request between two branches, with the
// number 0 where there is none. There is at most one.
func (g *Gitea) openRequest(ctx context.Context, doing string, change Change) (Request, error) {
	var found Request
	err := pagesOf(ctx, g, doing, g.api("pulls")+"?state=open", func(open giteaRequest) {
		if open.Head.Ref == change.Head && open.Base.Ref == change.Base && open.Head.Repo.FullName == open.Base.Repo.FullName {
			found = Request{URL: open.URL, Number: open.Number}
		}
	})
	return found, err
}

// repository returns the repository as Git sees it.
func (g *Gitea) repository() Repository {
	path := g.path()
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

// sshHosted is the repository with the user and the host of SSH that the
// server tells, where the user of flux has not.
func (g *Gitea) sshHosted() Hosted {
	h := g.hosted
	told := g.repo
	if told == nil {
		told = g.neighbour
	}
	if told == nil {
		return h
	}
	user, host := sshLogin(told.SSHURL)
	if h.SSHHostname == "" {
		h.SSHHostname = host
	}
	if h.SSHUsername == "" {
		h.SSHUsername = user
	}
	return h
}

// sshLogin returns the user and the host, and port where it is not the usual
// one, of an SSH address in either of its forms: ssh://git@host:port/path and
// git@host:path.
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

// path is the full name of the repository: a renamed one is found by its old
// name, and has another.
func (g *Gitea) path() string {
	if g.repo != nil {
		return g.repo.FullName
	}
	return g.hosted.String()
}

// api is the path of the repository in the API, or of something in it.
func (g *Gitea) api(parts ...string) string {
	owner, name, _ := strings.Cut(g.path(), "/")
	path := "/repos"
	for _, part := range append([]string{owner, name}, parts...) {
		path += "/" + url.PathEscape(part)
	}
	return path
}

// owner is the path in the API of who is to own the repository.
func (g *Gitea) owner() string {
	if g.hosted.Personal {
		return "/user"
	}
	return "/orgs/" + url.PathEscape(g.hosted.Owner)
}

// who is the account in words.
func (g *Gitea) who() string {
	if g.account == "" {
		return "the token's account"
	}
	return g.account
}
