package snapshot

import (
	"container/heap"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"
)

// ErrIncomplete is returned if the clone does not contain the history between two commits: it is
// shallow, or one of them was not fetched.
var ErrIncomplete = errors.New("the clone does not contain the history between the commits")

// historyBound is the maximum number of commits that are read to find those
// between two. skewBound is the number of commits that are read after the result
// seems complete, since clocks of committers differ. textBound is the maximum
// length of an author or a subject, in characters.
const (
	historyBound = 5000
	skewBound    = 100
	textBound    = 200
)

// CommitInfo describes a commit. Author and Subject are bounded.
type CommitInfo struct {
	// Hash is the SHA-1 hash in hexadecimal.
	Hash    string
	Author  string
	Time    time.Time
	Subject string
}

// Between returns the commits in the history of head that are not in that of base, newest first
// and at most limit of them, and their total number. Like git log base..head, it reads both
// histories from the newest commit until only commits of base are left.
func (r *Repository) Between(ctx context.Context, base, head string, limit int) (commits []CommitInfo, total int, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	h := &history{repository: r, met: map[plumbing.Hash]*queuedCommit{}}
	if err := errors.Join(h.meet(plumbing.NewHash(base), true), h.meet(plumbing.NewHash(head), false)); err != nil {
		return nil, 0, err
	}
	for beyond := 0; len(h.queue) > 0 && beyond < skewBound; beyond++ {
		if h.undecided() {
			beyond = 0
		}
		if err := ctx.Err(); err != nil {
			return nil, 0, err
		}
		if len(h.read) == historyBound {
			return nil, 0, fmt.Errorf("more than %d commits between them", historyBound)
		}
		c := heap.Pop(&h.queue).(*queuedCommit)
		c.read, h.read = true, append(h.read, c)
		if !c.inBase {
			h.open--
			h.oldest = c.Committer.When
		}
		for _, parent := range c.ParentHashes {
			if err := h.meet(parent, c.inBase); err != nil {
				return nil, 0, err
			}
		}
	}
	for _, c := range h.read {
		if c.inBase {
			continue
		}
		if total++; len(commits) < limit {
			commits = append(commits, describe(c.Commit))
		}
	}
	return commits, total, nil
}

// history holds the commits that were read of the histories of base and head.
type history struct {
	repository *Repository
	met        map[plumbing.Hash]*queuedCommit
	queue      byTime
	read       []*queuedCommit
	// open is the number of queued commits that are not known to be in base. oldest is the time of
	// the last such commit that was read.
	open   int
	oldest time.Time
}

// queuedCommit is a commit, whether it is in base, and whether its parents were queued.
type queuedCommit struct {
	*object.Commit
	inBase, read bool
}

// undecided reports whether more commits must be read: base may contain commits that are as old as
// the last one not known to be in it.
func (h *history) undecided() bool {
	return h.open > 0 || !h.queue[0].Committer.When.Before(h.oldest)
}

func (h *history) meet(hash plumbing.Hash, inBase bool) error {
	if c := h.met[hash]; c != nil {
		if inBase {
			h.mark(c)
		}
		return nil
	}
	c, err := h.repository.git.CommitObject(hash)
	if errors.Is(err, plumbing.ErrObjectNotFound) {
		return ErrIncomplete
	}
	if err != nil {
		return fmt.Errorf("reading commit %s: %w", hash, err)
	}
	h.met[hash] = &queuedCommit{Commit: c, inBase: inBase}
	if !inBase {
		h.open++
	}
	heap.Push(&h.queue, h.met[hash])
	return nil
}

// mark records that base contains a commit and its known ancestors: with wrong clocks, a parent
// may be read before its child.
func (h *history) mark(c *queuedCommit) {
	for pending := []*queuedCommit{c}; len(pending) > 0; {
		c, pending = pending[0], pending[1:]
		if c == nil || c.inBase {
			continue
		}
		c.inBase = true
		if !c.read {
			h.open--
			continue
		}
		for _, parent := range c.ParentHashes {
			pending = append(pending, h.met[parent])
		}
	}
}

// byTime is a heap of commits, newest first.
type byTime []*queuedCommit

func (q byTime) Len() int           { return len(q) }
func (q byTime) Less(i, j int) bool { return q[i].Committer.When.After(q[j].Committer.When) }
func (q byTime) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }

// Push implements [heap.Interface].
func (q *byTime) Push(c any) { *q = append(*q, c.(*queuedCommit)) }

// Pop implements [heap.Interface].
func (q *byTime) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
}

func describe(c *object.Commit) CommitInfo {
	subject, _, _ := strings.Cut(strings.TrimSpace(c.Message), "\n")
	return CommitInfo{Hash: c.Hash.String(), Author: bounded(c.Author.Name), Time: c.Author.When.UTC(), Subject: bounded(subject)}
}

// bounded truncates the text of a commit.
func bounded(text string) string {
	if runes := []rune(text); len(runes) > textBound {
		return string(runes[:textBound]) + "…"
	}
	return text
}
