// Package reversal opens a pull request that restores the directory of a Kustomization.
package reversal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/pulls"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/report"
	"github.com/fluxkit/flux/internal/ci"
	"github.com/fluxkit/flux/internal/git"
	"github.com/fluxkit/flux/internal/githost"
	"github.com/fluxkit/flux/internal/githost/provider"
	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/internal/kube/objref"
	"github.com/fluxkit/flux/internal/terminal/output"
	"github.com/fluxkit/flux/pkg/rollback"
)

// Options holds the flags of the command.
type Options struct {
	// Revision is the revision to return to, "" for the last good revision.
	Revision string
	// Host is the kind of the Git host. If it is "", it is known for public hosts, or from the CI system.
	Host        string
	DryRun, Yes bool
	Format      string
}

// Hosts returns the values of Host.
func Hosts() []string { return []string{ci.GitHub, ci.GitLab, ci.Gitea, ci.BitbucketServer} }

// answer is the JSON and YAML output with --pull-request.
type answer struct {
	*rollback.Reversion
	Title  string   `json:"title"`
	Branch string   `json:"branch"`
	Files  []string `json:"files"`
	Result string   `json:"result"`
	// Commit is the pushed commit, and PullRequest the web page.
	Commit      string `json:"commit,omitempty"`
	PullRequest string `json:"pullRequest,omitempty"`
	Error       string `json:"error,omitempty"`
}

// The results of the command.
const (
	planned  = "planned"
	pushed   = "pushed"
	opened   = "opened"
	declined = "declined"
)

// reversal opens a pull request in a clone.
type reversal struct {
	*app.App
	Options
	clone       *git.Clone
	plan        *rollback.Reversion
	answer      answer
	restoration git.Restoration
	open        githost.Opener
}

// Run opens a pull request that restores the directory of a Kustomization. ctx bounds the reads before the confirmation.
func Run(ctx context.Context, a *app.App, cmd *cobra.Command, client *kube.Client, t objref.Target, o Options) error {
	clone, err := git.Open(".")
	if err != nil {
		return hint.Errorf("run the command in a clone of the source", "--pull-request: %w", err)
	}
	defer func() { _ = clone.Close() }() // read-only
	plan, err := rollback.Revert(ctx, client, t, o.Revision)
	if err != nil {
		return err
	}
	r := &reversal{App: a, Options: o, clone: clone, plan: plan}
	r.answer = answer{Reversion: plan, Title: plan.Title(), Branch: plan.Branch(), Result: planned}
	if err := r.prepare(ctx); err != nil {
		return err
	}
	err = r.all(cmd)
	if o.Format != "" {
		if err != nil {
			r.answer.Error = a.Secrets.Text(err.Error())
		}
		err = errors.Join(a.Encode(o.Format, r.answer), err)
	}
	return err
}

// prepare fetches the branch and determines the changed files. It fails for everything that would make the pull request
// fail, if that is known.
func (r *reversal) prepare(ctx context.Context) error {
	address, err := r.clone.Fetcher().URL(ctx)
	if err != nil {
		return err
	}
	if git.ComparableAddress(address) != git.ComparableAddress(r.plan.URL) {
		return hint.Errorf("run the command in a clone of "+r.Secrets.Text(withoutUser(r.plan.URL)), "the remote %s of this clone is not %s", git.Origin, r.plan.Source)
	}
	if !r.DryRun {
		if r.open, err = r.connect(address); err != nil {
			return err
		}
	}
	if err := r.clone.Fetcher().Branch(ctx, r.plan.Base); err != nil {
		return fmt.Errorf("fetching branch %q: %w", r.plan.Base, err)
	}
	base, err := r.clone.Resolve(ctx, "refs/remotes/"+git.Origin+"/"+r.plan.Base)
	if err != nil {
		return err
	}
	if _, err := r.clone.Resolve(ctx, r.plan.Commit); err != nil {
		if err := r.clone.Fetcher().Commit(ctx, r.plan.Commit); err != nil {
			return fmt.Errorf("fetching commit %s: %w", r.plan.Commit, err)
		}
	}
	r.restoration = git.Restoration{Base: base.String(), Good: r.plan.Commit, Path: r.plan.Path}
	if r.answer.Files, err = r.restoration.Files(ctx, r.clone); err != nil {
		return err
	}
	if len(r.answer.Files) == 0 {
		return hint.Errorf("if the cause is outside of the directory, revert that commit", "branch %q has the same files in %q as %s: a pull request would change nothing",
			r.plan.Base, r.plan.Path, report.ShortRevision(r.plan.TargetRevision))
	}
	return nil
}

// withoutUser returns a URL without its user and password.
func withoutUser(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return address
	}
	u.User = nil
	return u.String()
}

// connect returns the host of the clone.
func (r *reversal) connect(address string) (githost.Opener, error) {
	server, repository := ci.SplitClone(address)
	p := ci.PullRequest{Host: r.Host, Server: server, Repository: repository, Origin: "the URL of the remote " + git.Origin}
	run := ci.Read(r.Env)
	if u, err := url.Parse(run.Server); err == nil && u.Host != "" && strings.HasSuffix(server, "://"+u.Host) {
		p.System, p.CAFile = run.System, run.CAFile
		if p.Host == "" {
			p.Host = run.Host
		}
	}
	if p.Host == "" {
		p.Host = kindOf(server)
	}
	if base, name, found := strings.Cut("/"+repository, "/scm/"); found && p.Host == ci.BitbucketServer { // the path of Git over HTTP
		p.Server, p.Repository = server+base, name
	}
	host, supported := provider.Hosts()[p.Host]
	switch {
	case p.Host == "":
		return nil, hint.Errorf("set --git-host to one of "+strings.Join(Hosts(), ", "), "cannot determine the kind of the Git host %s", server)
	case !supported:
		return nil, hint.Errorf("push the branch, and open the pull request in the browser", "--pull-request does not support %s", githost.PullRequestHosts()[p.Host].Name)
	}
	hosted, client, err := pulls.Connect(r.App, p)
	if err != nil {
		return nil, err
	}
	hosted.TokenAuth = true // SSH is not required
	opened, err := host.Open(hosted, client)
	if err != nil {
		return nil, err
	}
	return opened.(githost.Opener), nil // all hosts with an API
}

// kindOf returns the kind of a public Git host, "" for other hosts. A name such as github.example.com does not identify a host: anybody can
// choose it for a server that receives the token.
func kindOf(server string) string {
	u, err := url.Parse(server)
	if err != nil {
		return ""
	}
	return map[string]string{
		"github.com": ci.GitHub, "gitlab.com": ci.GitLab, "gitea.com": ci.Gitea, "codeberg.org": ci.Gitea, "bitbucket.org": ci.BitbucketCloud,
	}[u.Hostname()]
}

// all prints the plan, asks for confirmation, pushes the branch and opens the pull request.
func (r *reversal) all(cmd *cobra.Command) error {
	r.UI.Action("%s: %s → %s", r.plan.Object, cmp.Or(report.ShortRevision(r.plan.CurrentRevision), "(none)"), report.ShortRevision(r.plan.TargetRevision))
	r.UI.Action("branch %q with the files of %q in %.8s, to merge into %q", r.answer.Branch, r.plan.Path, r.plan.Commit, r.plan.Base)
	r.UI.Action("pull request %q, which changes %s:", r.answer.Title, output.Amount(len(r.answer.Files), "file"))
	for _, file := range r.answer.Files {
		r.UI.Line("  %s", file)
	}
	if r.DryRun {
		return nil
	}
	if !r.Yes {
		if err := app.Approve(cmd.Context(), r.App, "Push the branch and open the pull request?"); err != nil {
			r.answer.Result = declined
			return err
		}
	}
	ctx, stop := r.WithTimeout(cmd.Context()) // without the time of the prompt
	defer stop()
	return r.push(ctx)
}

// body returns the description of the pull request. Backticks would end the code.
func (r *reversal) body() string {
	code := func(text string) string { return "`" + strings.ReplaceAll(text, "`", "'") + "`" }
	return fmt.Sprintf("Restores %s to its content in %s, to which %s returns.\n\nOther directories keep the content of %s. Created by `flux rollback --pull-request`.",
		code(r.plan.Path), code(r.plan.TargetRevision), code(r.plan.Object.String()), code(r.plan.Base))
}

func (r *reversal) push(ctx context.Context) error {
	commit, err := r.restoration.Commit(ctx, r.clone, r.answer.Title+"\n\n"+strings.ReplaceAll(r.body(), "`", ""))
	if err != nil {
		return err
	}
	if err := r.clone.Fetcher().Push(ctx, commit, r.answer.Branch); err != nil {
		return fmt.Errorf("pushing branch %q: %w", r.answer.Branch, err)
	}
	r.answer.Result, r.answer.Commit = pushed, commit
	r.UI.Success("pushed commit %.8s to branch %q", commit, r.answer.Branch)
	request, err := r.open.OpenRequest(ctx, githost.Change{Head: r.answer.Branch, Base: r.plan.Base, Title: r.answer.Title, Body: r.body()})
	if err != nil {
		r.UI.Warning("branch %q exists on %s without a pull request: open it in the browser, or delete the branch with '%s'",
			r.answer.Branch, git.Origin, hint.Command("git push origin --delete %s", r.answer.Branch))
		return err
	}
	r.answer.Result, r.answer.PullRequest = opened, request.URL
	if !request.Opened {
		r.UI.Success("pull request %d of the branch is open: %s", request.Number, request.URL)
		return nil
	}
	r.UI.Success("opened pull request %d: %s", request.Number, request.URL)
	return nil
}
