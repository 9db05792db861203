package git

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
)

// Origin is the remote from which missing commits are fetched.
const Origin = "origin"

// deepenSteps lists the numbers of commits by which the history of a shallow clone is extended
// before the whole history is fetched.
func deepenSteps() []int { return []int{50, 500} }

// Fetcher runs git to fetch missing objects of a clone from origin.
type Fetcher struct{ c *Clone }

// Fetcher returns a fetcher for the clone.
func (c *Clone) Fetcher() Fetcher { return Fetcher{c} }

// Branch fetches a branch from origin.
func (f Fetcher) Branch(ctx context.Context, branch string) error {
	return f.fetch(ctx, "+refs/heads/"+branch+":refs/remotes/"+Origin+"/"+branch)
}

// Commit fetches a commit from origin by its full SHA.
func (f Fetcher) Commit(ctx context.Context, commit string) error {
	return f.fetch(ctx, commit)
}

// fetch fetches from origin. In a shallow clone, it fetches one commit.
func (f Fetcher) fetch(ctx context.Context, what string) error {
	arguments := []string{"fetch", "--quiet", "--no-tags", "--no-recurse-submodules"}
	if f.c.Shallow() {
		arguments = append(arguments, "--depth=1")
	}
	if _, err := f.c.program().run(ctx, nil, append(arguments, Origin, what)...); err != nil {
		return err
	}
	return f.c.reload()
}

// Deepen extends the history of a shallow clone by a number of commits, 0 for all.
func (f Fetcher) Deepen(ctx context.Context, commits int) error {
	depth := "--unshallow"
	if commits > 0 {
		depth = "--deepen=" + strconv.Itoa(commits)
	}
	if _, err := f.c.program().run(ctx, nil, "fetch", "--quiet", "--no-tags", "--no-recurse-submodules", depth, Origin); err != nil {
		return err
	}
	return f.c.reload()
}

// MergeBase returns the merge base of two commits, and extends the history of a shallow clone
// until it contains the merge base.
func (f Fetcher) MergeBase(ctx context.Context, one, other plumbing.Hash) (plumbing.Hash, error) {
	found, err := f.c.History().MergeBase(ctx, one, other)
	for _, commits := range append(deepenSteps(), 0) {
		if !errors.Is(err, ErrUnrelated) || !f.c.Shallow() {
			break
		}
		if err := f.Deepen(ctx, commits); err != nil {
			return found, err
		}
		found, err = f.c.History().MergeBase(ctx, one, other)
	}
	return found, err
}

// maxRounds is the maximum number of fetches of missing objects: nested directories may be missing one
// level at a time.
const maxRounds = 20

// Files fetches the files of a commit that are missing in a partial clone, in as few requests as
// possible.
func (f Fetcher) Files(ctx context.Context, commit plumbing.Hash) error {
	for range maxRounds {
		listed, err := f.c.program().run(ctx, nil, "rev-list", "--objects", "--no-walk", "--missing=print", commit.String())
		if err != nil {
			return err
		}
		var missing []string
		for line := range strings.Lines(listed) {
			if object, ok := strings.CutPrefix(strings.TrimSpace(line), "?"); ok {
				missing = append(missing, object)
			}
		}
		if len(missing) == 0 {
			return nil
		}
		_, err = f.c.program().run(ctx, strings.NewReader(strings.Join(missing, "\n")+"\n"), "-c", "fetch.negotiationAlgorithm=noop",
			"fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--recurse-submodules=no", "--filter=blob:none", "--stdin", Origin)
		if err != nil {
			return err
		}
		if err := f.c.reload(); err != nil {
			return err
		}
	}
	return fmt.Errorf("fetching the files of commit %s: more than %d rounds", commit, maxRounds)
}
