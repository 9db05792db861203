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

// requestBranch is the branch of a cluster's change request: the same in each
// run, so that one that is open is found again.
func (r *run) requestBranch() string { return path.Join("flux/bootstrap", r.plan.Path) }

// requestChange commits to a branch of its own and asks for it to be merged.
// The run ends there; the next one, after the merge, finds nothing to commit
// and goes on.
func (r *run) requestChange(ctx context.Context) error {
	pending, err := r.pending(r.clone)
	if err != nil {
		return err
	}
	if !pending {
		r.say.Success("manifests are up to date on branch %q", r.plan.Branch)
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
		r.say.Success("asked for branch %q to be merged: %s", r.requestBranch(), request.URL)
	} else {
		r.say.Success("the change request is open: %s", request.URL)
	}
	r.say.Waiting("have it merged, then run the same command again: it goes on with the cluster")
	return nil
}

// change is what people read who are asked to merge.
func (r *run) change() githost.Change {
	folder := r.plan.Path
	if folder == "" {
		folder = "the root of the repository"
	}
	return githost.Change{
		Head: r.requestBranch(), Base: r.plan.Branch,
		Title: strings.Join(strings.Fields(fmt.Sprintf("Add Flux %s to %s", r.plan.Components.Version, folder)), " "),
		Body: fmt.Sprintf("The manifests of Flux and of its synchronisation for the cluster that follows `%s` on branch `%s`.\n\n"+
			"Once this is merged, run the same `flux bootstrap` command again: it installs them on the cluster.\n", folder, r.plan.Branch),
	}
}

// pushRequest makes the branch of the change request have the manifests on top
// of the newest state of the branch to merge into. Where it has them already,
// it is left as it is, with what reviewers have added.
func (r *run) pushRequest(ctx context.Context) error {
	for attempt := 1; ; attempt++ {
		err := r.pushRequestOnce(ctx)
		if !errors.Is(err, gitrepo.ErrMoved) {
			return err
		}
		if attempt == pushAttempts {
			return failure("run the command again when fewer others push", "pushing manifests: others have pushed to branch %q %d times meanwhile", r.requestBranch(), attempt)
		}
		r.say.Warning("branch %q has moved: starting again from its newest commit", r.requestBranch())
		if err := r.reopen(ctx); err != nil {
			return err
		}
	}
}

func (r *run) pushRequestOnce(ctx context.Context) (err error) {
	remote, err := r.remote(ctx)
	if err != nil {
		return err
	}
	there, err := gitrepo.Open(ctx, remote, r.requestBranch())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, there.Close()) }()
	tip := ""
	if there.Branched() {
		tip = there.Head()
		pending, err := r.pending(there)
		if err != nil {
			return err
		}
		if !pending {
			r.say.Success("manifests are up to date on branch %q", r.requestBranch())
			return nil
		}
	}
	r.clone.Onto(r.requestBranch(), tip)
	if _, err := r.commit(); err != nil {
		return err
	}
	return r.push(ctx)
}

// reopen goes back to the newest state of the branch to merge into.
func (r *run) reopen(ctx context.Context) error {
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
	errors.New("this Git host takes no change requests from flux"),
	"run it without --pull-request with an account that may push to the branch, or bootstrap github, gitlab or gitea",
}
