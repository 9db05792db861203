// Package ci reads the pull request of a CI system from its environment
// variables.
package ci

import (
	"encoding/json"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/fluxkit/flux/internal/budget"
)

// Kinds of Git hosts.
const (
	GitHub          = "github"
	GitLab          = "gitlab"
	Gitea           = "gitea" // also Forgejo
	BitbucketServer = "bitbucket-server"
	BitbucketCloud  = "bitbucket"
)

// PullRequest is the pull request or merge request that a CI system builds.
type PullRequest struct {
	// System is the name of the CI system, "" for none.
	System string
	// Number is the number of the pull request, 0 if the pipeline has none.
	Number int
	// Target is the branch to merge into, "" if the system does not provide it.
	Target string
	// Fork reports whether the branch is known to be in another repository.
	Fork bool

	// Commit is the commit that the system has checked out. If Merge is set, it may be the merge of the pull request
	// into the target branch, and Into is the target commit of that merge, "" if unknown.
	Commit, Into string
	Merge        bool
	// Head is the last commit of the pull request, "" if unknown.
	Head string

	// Host is the kind of Git host, "" if unknown, Server its URL, and Origin
	// the variable with the URL.
	Host, Server, Origin string
	// Repository is the full name of the target repository, or its ID.
	Repository string
	// CAFile is a file with the CA certificate of the host, "" for none.
	CAFile string
	// Run is the web page of the run, "" if unknown.
	Run string
}

// Known reports whether the variables identify the pull request on its host.
func (p PullRequest) Known() bool {
	return p.Number > 0 && p.Host != "" && p.Server != "" && p.Repository != ""
}

// Read returns the pull request in an environment. Without a CI system it is empty.
func Read(env func(string) string) PullRequest {
	for _, s := range systems {
		if !s.runs(env) {
			continue
		}
		p := PullRequest{
			System: s.name, Host: s.host, Target: strings.TrimPrefix(env(s.target), "refs/heads/"), Number: number(env(s.number)),
			Commit: env(s.commit), Head: env(s.head), Into: env(s.into), Run: env(s.run), CAFile: env(s.ca),
			Repository: env(s.repository), Server: strings.TrimSuffix(env(s.server), "/"), Origin: s.server,
		}
		if s.complete != nil {
			s.complete(env, &p)
		}
		return p
	}
	return PullRequest{}
}

// Variables returns the names of the variables of a CI system that Read uses.
func Variables() []string {
	var names []string
	for _, s := range systems {
		for _, name := range append([]string{s.target, s.number, s.commit, s.head, s.into, s.run, s.ca, s.repository, s.server}, append(s.signs, s.more...)...) {
			if name, _, _ = strings.Cut(name, "="); name != "" && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

// number parses the number of a pull request. It returns 0 for other texts:
// Buildkite passes "false", and CircleCI passes a URL.
func number(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return 0
	}
	return n
}

// maxEvent is the maximum size of a workflow's event file.
const maxEvent = 32 << 20

// readEvent reads fields for which there are no variables from the event of a GitHub, Gitea or Forgejo workflow. If
// the event cannot be read, p is unchanged.
func readEvent(env func(string) string, p *PullRequest) {
	file, err := os.Open(env("GITHUB_EVENT_PATH"))
	if err != nil {
		return
	}
	defer func() { _ = file.Close() }()
	var event struct {
		PullRequest *struct {
			Number int `json:"number"`
			Head   struct {
				SHA  string `json:"sha"`
				Repo *struct {
					FullName string `json:"full_name"`
				} `json:"repo"`
			} `json:"head"`
		} `json:"pull_request"`
	}
	if json.NewDecoder(budget.Reader(file, maxEvent, budget.TooLarge("", "the event", maxEvent))).Decode(&event) != nil || event.PullRequest == nil {
		return
	}
	head := event.PullRequest.Head
	p.Head = head.SHA
	// The repository of a deleted fork is null.
	p.Fork = head.Repo == nil || !strings.EqualFold(head.Repo.FullName, p.Repository)
	if p.Number == 0 {
		p.Number = event.PullRequest.Number
	}
}
