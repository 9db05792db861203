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

// ErrIncomplete is returned where the clone does not hold the history between
// two commits: it is shallow, or has not fetched one of them.
var ErrIncomplete = errors.New("the clone does not hold the history between the commits")

// historyBound is how many commits are read to find those between two, skewBound
// how many are read on when all seems to be decided, since the clocks of authors
// differ, and textBound how much of an author or a subject is kept, in characters.
const (
	historyBound = 5000
	skewBound    = 100
	textBound    = 200
)

// CommitInfo describes a commit. Author and Subject are as the commit has them, and bounded.
type CommitInfo struct {
	// Hash is the SHA-1 in hexadecimal digits.
	Hash    string
	Author  string
	Time    time.Time
	Subject string
}

// Between returns the commits that are in the history of head and not in that of
// base, the newest first, at most most of them, and how many there are. As git
// log base..head does, it reads both histories from the newest commit on until
// only what base has is left.
func (r *Repository) Between(ctx context.Context, base, head string, most int) (commits []CommitInfo, total int, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	h := &history{repository: r, met: map[plumbing.Hash]*historic{}}
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
			return nil, 0, fmt.Errorf("more than %d commits lie between them", historyBound)
		}
		c := heap.Pop(&h.queue).(*historic)
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
		if total++; len(commits) < most {
			commits = append(commits, describe(c.Commit))
		}
	}
	return commits, total, nil
}

// history is what was read of the histories of two commits.
type history struct {
	repository *Repository
	met        map[plumbing.Hash]*historic
	queue      byTime
	read       []*historic
	// open counts the commits of the queue that base is not known to have, and
	// oldest is when the last of them that was read was made.
	open   int
	oldest time.Time
}

// historic is a commit, whether base has it too, and whether its parents were met.
type historic struct {
	*object.Commit
	inBase, read bool
}

// undecided reports whether more has to be read: base may have what is as old as
// the last commit that it was not known to have.
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
	h.met[hash] = &historic{Commit: c, inBase: inBase}
	if !inBase {
		h.open++
	}
	heap.Push(&h.queue, h.met[hash])
	return nil
}

// mark notes that base has a commit and what was met of its history: where
// clocks differ, a parent may be read before a child.
func (h *history) mark(c *historic) {
	for pending := []*historic{c}; len(pending) > 0; {
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

// byTime is a heap of commits, the newest on top.
type byTime []*historic

func (q byTime) Len() int           { return len(q) }
func (q byTime) Less(i, j int) bool { return q[i].Committer.When.After(q[j].Committer.When) }
func (q byTime) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }

// Push implements [heap.Interface].
func (q *byTime) Push(c any) { *q = append(*q, c.(*historic)) }

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

// bounded returns text of a commit that is not too long.
func bounded(text string) string {
	if runes := []rune(text); len(runes) > textBound {
		return string(runes[:textBound]) + "…"
	}
	return text
}
