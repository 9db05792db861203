package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/fluxkit/flux/internal/git/remote"
	"github.com/fluxkit/flux/internal/githost"
	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/internal/secrets/redact"
)

// commits adds the manifests to the repository: to the branch, or to another
// branch with a pull request.
type commits struct {
	plan       *Plan
	progress   Progress
	repository *repository
	files      *files
	// before is the branch revision before this run's push, "" for none.
	before string
	// request is the pull request, nil for none.
	request *githost.Request
}

// pushAttempts bounds the attempts to push while others push to the same branch.
const pushAttempts = 6

// check returns an error if bootstrap has to push to the branch and cannot.
func (c *commits) check(ctx context.Context) error {
	clone, onHost := c.repository.clone, c.repository.onHost
	pending, err := c.files.pending(clone)
	if err != nil || !pending {
		return err
	}
	_, requests := c.plan.Host.(githost.Requester)
	switch {
	case c.plan.ChangeRequest && !clone.BranchExists():
		return hint.Errorf("push a first commit to it, or run the command once without --pull-request",
			"branch %q does not exist yet: a pull request needs a base branch", c.plan.Branch)
	case (c.plan.ChangeRequest || onHost.Protected == "") && !onHost.Exists:
		return nil
	case c.plan.ChangeRequest || onHost.Protected == "":
		return clone.CheckPush(ctx)
	case requests:
		return hint.Errorf("open a pull request with --pull-request, or allow this account to push to the branch", "branch %q is protected: %s", c.plan.Branch, onHost.Protected)
	default:
		return hint.Errorf("allow this account to push to the branch, or use another one with --branch", "branch %q is protected: %s", c.plan.Branch, onHost.Protected)
	}
}

// add commits the component manifests and, in a second commit, the sync
// manifests. It pushes both together before the cluster is changed, so that a
// rejected push leaves the cluster as it was. If others push at the same time,
// it commits again on top of their commits.
func (c *commits) add(ctx context.Context) error {
	if c.plan.ChangeRequest {
		return c.requestChange(ctx)
	}
	clone := c.repository.clone
	return c.retryPush(c.plan.Branch, func() error {
		c.before = c.repository.headRevision()
		changed, err := c.commit()
		if err != nil || !changed && clone.BranchExists() {
			return err
		}
		return c.push(ctx)
	}, func() error {
		c.files.built = nil
		return clone.Refresh(ctx)
	})
}

// retryPush calls push until no other client has pushed to the branch in the
// meantime. It calls update before each retry.
func (c *commits) retryPush(branch string, push, update func() error) error {
	for attempt := 1; ; attempt++ {
		err := push()
		if !errors.Is(err, remote.ErrNonFastForward) {
			return err
		}
		if attempt == pushAttempts {
			return hint.Errorf("run the command again when the branch is less busy", "pushing manifests: branch %q received new commits during each of %d attempts", branch, attempt)
		}
		c.progress.Warning("branch %q has new commits: retrying on top of them", branch)
		if err := update(); err != nil {
			return err
		}
	}
}

func (c *commits) push(ctx context.Context) error {
	c.progress.Action("pushing manifests to %q", redact.URL(c.repository.Access.URL))
	err := c.repository.clone.Push(ctx, func(lost error) {
		c.progress.Warning("%s: branch %q contains the commits", redact.Text(remote.Unconfirmed(lost)), c.plan.Branch)
	})
	if err == nil {
		c.progress.Success("pushed manifests")
	}
	return err
}

// commit adds the missing commits to the clone, and reports whether it added any.
func (c *commits) commit() (bool, error) {
	c.progress.Action("generating component manifests")
	c.progress.Success("generated component manifests")
	message := strings.Join(strings.Fields("Add Flux "+c.plan.Components.Version+" component manifests"), " ")
	first, err := c.commitFiles("component manifests", message, map[string][]byte{c.files.in(componentsFile): c.files.components})
	if err != nil {
		return false, err
	}
	c.progress.Action("generating sync manifests")
	sync, err := c.files.syncFiles(c.repository.clone)
	if err != nil {
		return false, err
	}
	c.progress.Success("generated sync manifests")
	second, err := c.commitFiles("sync manifests", "Add Flux sync manifests", sync)
	return first || second, err
}

// commitFiles commits files unless the branch already contains them.
func (c *commits) commitFiles(what, message string, files map[string][]byte) (bool, error) {
	if appendix := c.plan.Commit.Appendix; appendix != "" {
		message += "\n\n" + appendix
	}
	clone := c.repository.clone
	changed, err := clone.Commit(remote.Change{
		Message: message, Files: files, When: c.plan.Now(), Sign: c.plan.Commit.Sign,
		AuthorName: c.plan.Commit.AuthorName, AuthorEmail: c.plan.Commit.AuthorEmail,
	})
	switch {
	case err != nil:
		return false, fmt.Errorf("committing %s: %w", what, err)
	case changed:
		c.progress.Success("committed %s to %q (%q)", what, clone.Branch(), clone.Head())
	default:
		c.progress.Success("%s are up to date", what)
	}
	return changed, nil
}

var errNoRequests = &hint.Error{
	Err:  errors.New("pull requests are not supported for this Git host"),
	Hint: "use an account that can push to the branch and omit --pull-request, or use bootstrap github, gitlab or gitea",
}

// requestChange commits to a separate branch and opens a pull request. The run
// ends there; the next run after the merge has nothing to commit and applies
// the manifests to the cluster.
func (c *commits) requestChange(ctx context.Context) error {
	pending, err := c.files.pending(c.repository.clone)
	if err != nil {
		return err
	}
	if !pending {
		c.progress.Success("manifests are up to date on branch %q", c.plan.Branch)
		return nil
	}
	head := c.plan.requestBranch()
	err = c.retryPush(head, func() error { return c.pushRequest(ctx, head) }, func() error { return c.cloneAgain(ctx) })
	if err != nil {
		return err
	}
	host, ok := c.plan.Host.(githost.Requester)
	if !ok {
		return errNoRequests
	}
	request, err := host.RequestChange(ctx, c.change(head))
	if err != nil {
		return err
	}
	c.request = &request
	if request.Opened {
		c.progress.Success("opened a pull request for branch %q: %s", head, request.URL)
	} else {
		c.progress.Success("a pull request is already open: %s", request.URL)
	}
	c.progress.Waiting("after the merge, run the same command again to install Flux on the cluster")
	return nil
}

// change returns the branches, title and body of the pull request.
func (c *commits) change(head string) githost.Change {
	folder := c.plan.Path
	if folder == "" {
		folder = "the repository root"
	}
	return githost.Change{
		Head: head, Base: c.plan.Branch,
		Title: strings.Join(strings.Fields(fmt.Sprintf("Add Flux %s to %s", c.plan.Components.Version, folder)), " "),
		Body: fmt.Sprintf("Flux component and sync manifests for the cluster that syncs from `%s` on branch `%s`.\n\n"+
			"After the merge, run the same `flux bootstrap` command again to install Flux on the cluster.\n", folder, c.plan.Branch),
	}
}

// pushRequest commits the manifests to the head branch on top of the newest
// commit of the base branch. It does not change a head branch that already has
// the manifests, so that reviewers' commits are kept.
func (c *commits) pushRequest(ctx context.Context, branch string) (err error) {
	head, err := c.repository.open(ctx, branch)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, head.Close()) }()
	tip := ""
	if head.BranchExists() {
		tip = head.Head()
		pending, err := c.files.pending(head)
		if err != nil {
			return err
		}
		if !pending {
			c.progress.Success("manifests are up to date on branch %q", branch)
			return nil
		}
	}
	c.repository.clone.SetBranch(branch, tip)
	if _, err := c.commit(); err != nil {
		return err
	}
	return c.push(ctx)
}

// cloneAgain clones the base branch again to get its newest commit.
func (c *commits) cloneAgain(ctx context.Context) error {
	fresh, err := c.repository.open(ctx, c.plan.Branch)
	if err != nil {
		return err
	}
	old := c.repository.clone
	c.repository.clone, c.files.built = fresh, nil
	return old.Close()
}
