package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/fluxkit/flux/internal/gitrepo"
	"github.com/fluxkit/flux/pkg/bootstrap/githost"
)

// requestBranch returns the head branch of the pull request. It is the same in
// each run, so that an open request is found again.
func (r *run) requestBranch() string { return path.Join("flux/bootstrap", r.plan.Path) }

// requestChange commits to a separate branch and opens a pull request. The run
// ends there; the next run after the merge has nothing to commit and applies
// the manifests to the cluster.
func (r *run) requestChange(ctx context.Context) error {
	pending, err := r.pending(r.clone)
	if err != nil {
		return err
	}
	if !pending {
		r.progress.Success("manifests are up to date on branch %q", r.plan.Branch)
		return nil
	}
	if err := r.pushRequest(ctx); err != nil {
		return err
	}
	host, ok := r.plan.Host.(githost.Requester)
	if !ok {
		return errNoRequests
	}
	request, err := host.RequestChange(ctx, r.change())
	if err != nil {
		return err
	}
	r.result.Request = &request
	if request.Opened {
		r.progress.Success("opened a pull request for branch %q: %s", r.requestBranch(), request.URL)
	} else {
		r.progress.Success("a pull request is already open: %s", request.URL)
	}
	r.progress.Waiting("after the merge, run the same command again to install Flux on the cluster")
	return nil
}

// change returns the branches, title and body of the pull request.
func (r *run) change() githost.Change {
	folder := r.plan.Path
	if folder == "" {
		folder = "the root of the repository"
	}
	return githost.Change{
		Head: r.requestBranch(), Base: r.plan.Branch,
		Title: strings.Join(strings.Fields(fmt.Sprintf("Add Flux %s to %s", r.plan.Components.Version, folder)), " "),
		Body: fmt.Sprintf("Component and sync manifests of Flux for the cluster that syncs from `%s` on branch `%s`.\n\n"+
			"After the merge, run the same `flux bootstrap` command again to install Flux on the cluster.\n", folder, r.plan.Branch),
	}
}

// pushRequest commits the manifests to the head branch on top of the newest
// commit of the base branch. A head branch that has the manifests already is not
// changed, so that commits of reviewers are kept.
func (r *run) pushRequest(ctx context.Context) error {
	for attempt := 1; ; attempt++ {
		err := r.pushRequestOnce(ctx)
		if !errors.Is(err, gitrepo.ErrNonFastForward) {
			return err
		}
		if attempt == pushAttempts {
			return errBusyBranch(r.requestBranch(), attempt)
		}
		r.progress.Warning("branch %q has new commits: retrying on top of them", r.requestBranch())
		if err := r.recloneBase(ctx); err != nil {
			return err
		}
	}
}

func (r *run) pushRequestOnce(ctx context.Context) (err error) {
	remote, err := r.remote(ctx)
	if err != nil {
		return err
	}
	head, err := gitrepo.Open(ctx, remote, r.requestBranch())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, head.Close()) }()
	tip := ""
	if head.BranchExists() {
		tip = head.Head()
		pending, err := r.pending(head)
		if err != nil {
			return err
		}
		if !pending {
			r.progress.Success("manifests are up to date on branch %q", r.requestBranch())
			return nil
		}
	}
	r.clone.SetBranch(r.requestBranch(), tip)
	if _, err := r.commit(); err != nil {
		return err
	}
	return r.push(ctx)
}

// recloneBase clones the base branch again to get its newest commit.
func (r *run) recloneBase(ctx context.Context) error {
	remote, err := r.remote(ctx)
	if err != nil {
		return err
	}
	fresh, err := gitrepo.Open(ctx, remote, r.plan.Branch)
	if err != nil {
		return err
	}
	old := r.clone
	r.clone, r.built = fresh, nil
	return old.Close()
}

var errNoRequests = &Error{
	errors.New("pull requests are not supported for this Git host"),
	"use an account that can push to the branch and omit --pull-request, or use bootstrap github, gitlab or gitea",
}
