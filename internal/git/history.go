package git

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"
)

var (
	// ErrUnrelated is returned if two commits have no common ancestor.
	ErrUnrelated = errors.New("the commits have no common ancestor")
	// ErrIncomplete is returned if the clone does not contain the history between two commits: it is shallow, or one of
	// them was not fetched.
	ErrIncomplete = errors.New("the clone does not contain the history between the commits")
	// ErrNoLineage is returned if a commit is not in the first-parent history of another one.
	ErrNoLineage = errors.New("not in the first-parent history")
)

// historyBound is the maximum number of commits that are read to find the commits between two others. skewBound is
// the number of commits that are read after the result seems complete, because the clocks of committers differ.
// textBound is the maximum length of an author or a subject, in characters.
const (
	historyBound = 5000
	skewBound    = 100
	textBound    = 200
)

// errLong is returned for a history that is too long to be read.
func errLong() error { return fmt.Errorf("more than %d commits between them", historyBound) }

// Commit describes a commit. Author and Subject are bounded.
type Commit struct {
	// Hash is the SHA-1 hash in hexadecimal.
	Hash    string    `json:"hash"`
	Author  string    `json:"author"`
	Time    time.Time `json:"time"`
	Subject string    `json:"subject"`
}

// History reads the commits of a clone.
type History struct{ clone *Clone }

// History returns the history of the clone.
func (c *Clone) History() History { return History{c} }

func describe(c *object.Commit) Commit {
	subject, _, _ := strings.Cut(strings.TrimSpace(c.Message), "\n")
	return Commit{Hash: c.Hash.String(), Author: bounded(c.Author.Name), Time: c.Author.When.UTC(), Subject: bounded(subject)}
}

// bounded truncates the text of a commit.
func bounded(text string) string {
	if runes := []rune(text); len(runes) > textBound {
		return string(runes[:textBound]) + "…"
	}
	return text
}

// Describe returns the description of a commit.
func (h History) Describe(hash plumbing.Hash) (Commit, error) {
	h.clone.objects.mu.Lock()
	defer h.clone.objects.mu.Unlock()
	found, err := h.clone.objects.commit(hash)
	if err != nil {
		return Commit{}, err
	}
	return describe(found), nil
}

// Changed returns the sorted paths of the files that differ between a commit and its first parent.
func (h History) Changed(ctx context.Context, hash plumbing.Hash) (files []string, err error) {
	h.clone.objects.mu.Lock()
	defer h.clone.objects.mu.Unlock()
	found, err := h.clone.objects.commit(hash)
	if err != nil {
		return nil, err
	}
	before := &object.Tree{}
	if len(found.ParentHashes) > 0 {
		if before, err = h.clone.objects.files(found.ParentHashes[0]); err != nil {
			return nil, err
		}
	}
	after, err := h.clone.objects.files(hash)
	if err != nil {
		return nil, err
	}
	changes, err := object.DiffTreeWithOptions(ctx, before, after, nil)
	if err != nil {
		return nil, fmt.Errorf("comparing commit %s with its parent: %w", hash, err)
	}
	for _, change := range changes {
		files = append(files, change.From.Name, change.To.Name)
	}
	slices.Sort(files)
	return slices.DeleteFunc(slices.Compact(files), func(name string) bool { return name == "" }), nil
}

// Parents returns the parents of a commit. A shallow clone may not contain them.
func (h History) Parents(commit plumbing.Hash) ([]plumbing.Hash, error) {
	h.clone.objects.mu.Lock()
	defer h.clone.objects.mu.Unlock()
	found, err := h.clone.objects.commit(commit)
	if err != nil {
		return nil, err
	}
	return found.ParentHashes, nil
}

// MergeBase returns the best common ancestor of two commits. In a shallow clone, it runs git, because go-git fails at
// the end of the history.
func (h History) MergeBase(ctx context.Context, one, other plumbing.Hash) (plumbing.Hash, error) {
	if h.clone.Shallow() {
		found, err := h.clone.program().run(ctx, nil, "merge-base", one.String(), other.String())
		var failed *programError
		if errors.As(err, &failed) && failed.text == "" {
			return plumbing.ZeroHash, ErrUnrelated
		}
		return plumbing.NewHash(found), err
	}
	h.clone.objects.mu.Lock()
	defer h.clone.objects.mu.Unlock()
	a, err := h.clone.objects.commit(one)
	if err != nil {
		return plumbing.ZeroHash, err
	}
	b, err := h.clone.objects.commit(other)
	if err != nil {
		return plumbing.ZeroHash, err
	}
	common, err := a.MergeBase(b)
	if errors.Is(err, plumbing.ErrObjectNotFound) || err == nil && len(common) == 0 {
		return plumbing.ZeroHash, ErrUnrelated
	}
	if err != nil {
		return plumbing.ZeroHash, fmt.Errorf("finding the merge base: %w", err)
	}
	return common[0].Hash, nil
}

// Lineage returns the commits from base to head in the first-parent history, oldest first. These are the states of a
// branch into which pull requests are merged.
func (h History) Lineage(ctx context.Context, base, head plumbing.Hash) ([]plumbing.Hash, error) {
	commits := []plumbing.Hash{head}
	for at := head; at != base; {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if len(commits) == historyBound {
			return nil, errLong()
		}
		parents, err := h.Parents(at)
		if err == nil && len(parents) > 0 {
			_, err = h.Parents(parents[0])
		}
		switch {
		case errors.Is(err, plumbing.ErrObjectNotFound):
			return nil, ErrIncomplete
		case err != nil:
			return nil, err
		case len(parents) == 0:
			return nil, ErrNoLineage
		}
		at = parents[0]
		commits = append(commits, at)
	}
	slices.Reverse(commits)
	return commits, nil
}

// Between returns at most limit commits that are in the history of head but not of base, newest first, and the total
// number of such commits. Like git log base..head, it reads both histories from the newest commit until only commits
// of base are left.
func (h History) Between(ctx context.Context, base, head string, limit int) (commits []Commit, total int, err error) {
	h.clone.objects.mu.Lock()
	defer h.clone.objects.mu.Unlock()
	r := &reading{objects: h.clone.objects, met: map[plumbing.Hash]*ancestor{}}
	if err := errors.Join(r.meet(plumbing.NewHash(base), true), r.meet(plumbing.NewHash(head), false)); err != nil {
		return nil, 0, err
	}
	for beyond := 0; len(r.queue) > 0 && beyond < skewBound; beyond++ {
		if r.undecided() {
			beyond = 0
		}
		if err := ctx.Err(); err != nil {
			return nil, 0, err
		}
		if len(r.read) == historyBound {
			return nil, 0, errLong()
		}
		if err := r.next(); err != nil {
			return nil, 0, err
		}
	}
	for _, a := range r.read {
		if a.inBase {
			continue
		}
		if total++; len(commits) < limit {
			commits = append(commits, describe(a.commit))
		}
	}
	return commits, total, nil
}

// reading holds the commits of base and head that have been found so far.
type reading struct {
	objects *Objects
	met     map[plumbing.Hash]*ancestor
	// queue holds the commits that have not been read yet, newest first.
	queue, read []*ancestor
}

// ancestor is a commit of base or head.
type ancestor struct {
	commit *object.Commit
	inBase bool
}

func (a *ancestor) when() time.Time { return a.commit.Committer.When }

// undecided reports whether more commits must be read: a commit that has not been found in base so far may still
// turn out to be part of it.
func (r *reading) undecided() bool {
	outside := func(a *ancestor) bool { return !a.inBase }
	if slices.ContainsFunc(r.queue, outside) {
		return true
	}
	for _, last := range slices.Backward(r.read) {
		if outside(last) {
			return !r.queue[0].when().Before(last.when())
		}
	}
	return false
}

// next reads the newest commit of the queue.
func (r *reading) next() error {
	a := r.queue[0]
	r.queue, r.read = r.queue[1:], append(r.read, a)
	for _, parent := range a.commit.ParentHashes {
		if err := r.meet(parent, a.inBase); err != nil {
			return err
		}
	}
	return nil
}

func (r *reading) meet(hash plumbing.Hash, inBase bool) error {
	if a := r.met[hash]; a != nil {
		if inBase {
			r.mark(a)
		}
		return nil
	}
	found, err := r.objects.commit(hash)
	if errors.Is(err, plumbing.ErrObjectNotFound) {
		return ErrIncomplete
	}
	if err != nil {
		return err
	}
	a := &ancestor{commit: found, inBase: inBase}
	r.met[hash] = a
	i, _ := slices.BinarySearchFunc(r.queue, a, func(b, a *ancestor) int { return a.when().Compare(b.when()) })
	r.queue = slices.Insert(r.queue, i, a)
	return nil
}

// mark records that base contains a commit and its known ancestors: if clocks are wrong, a parent may be read before
// its child.
func (r *reading) mark(a *ancestor) {
	for pending := []*ancestor{a}; len(pending) > 0; {
		a, pending = pending[0], pending[1:]
		if a == nil || a.inBase {
			continue
		}
		a.inBase = true
		for _, parent := range a.commit.ParentHashes {
			pending = append(pending, r.met[parent])
		}
	}
}
