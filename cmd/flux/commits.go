package main

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/fluxkit/flux/internal/snapshot"
	"github.com/fluxkit/flux/pkg/diagnose"
)

// commitsShown is how many of the commits that were not applied are reported.
const commitsShown = 20

// unapplied are the commits between the revision that is live and the one that
// its source has fetched.
type unapplied struct {
	commits []snapshot.CommitInfo
	total   int
	// missing says that the current clone is one of the source and does not hold
	// the commits.
	missing bool
}

// unappliedCommits reads the commits from the Git clone around the current
// directory, if it is one of the source. Nothing is fetched: where the commits
// cannot be had, there is nothing to report.
func unappliedCommits(ctx context.Context, f *diagnose.Facts) unapplied {
	if f == nil {
		return unapplied{}
	}
	base, head := revisionCommit(f.Applied), revisionCommit(f.Fetched)
	if base == "" || head == "" || base == head || f.Address == "" {
		return unapplied{}
	}
	repository, err := snapshot.Open(".")
	if err != nil {
		return unapplied{}
	}
	defer func() { _ = repository.Close() }() // it was only read
	remotes, err := repository.Remotes()
	if err != nil {
		return unapplied{}
	}
	for _, remote := range remotes {
		if comparable(remote) != comparable(f.Address) {
			continue
		}
		commits, total, err := repository.Between(ctx, base, head, commitsShown)
		return unapplied{commits, total, errors.Is(err, snapshot.ErrIncomplete)}
	}
	return unapplied{}
}

// revisionCommit is the SHA-1 of a Git revision such as main@sha1:…, "" where it has none.
func revisionCommit(revision string) string {
	const digits = 40
	_, hash, _ := strings.Cut("@"+revision, "@sha1:")
	if len(hash) != digits || strings.Trim(hash, "0123456789abcdef") != "" {
		return ""
	}
	return hash
}

// lines are the commits as people read them, the newest first.
func (u unapplied) lines(a *app) []string {
	if u.missing {
		return []string{"not in this clone: run git fetch"}
	}
	const digits = 8
	var lines []string
	for _, c := range u.commits {
		lines = append(lines, c.Hash[:digits]+" "+c.Subject+" ("+c.Author+", "+a.moment(c.Time)+")")
	}
	return append(lines, more(u.total-len(u.commits))...)
}

// unappliedTitle is above the lines of commits.
const unappliedTitle = "Commits not applied"

// commitReport is a commit as scripts read it.
type commitReport struct {
	Hash    string    `json:"hash"`
	Author  string    `json:"author"`
	Time    time.Time `json:"time"`
	Subject string    `json:"subject"`
}

// commitsReport has the newest commits that were not applied, and how many there are.
type commitsReport struct {
	Total   int            `json:"total"`
	Commits []commitReport `json:"commits"`
	// Missing says that the clone lacks commits, so that total is not known.
	Missing bool `json:"missing,omitempty"`
}

// report is nil where there are none.
func (u unapplied) report() *commitsReport {
	if u.total == 0 && !u.missing {
		return nil
	}
	r := &commitsReport{Total: u.total, Commits: []commitReport{}, Missing: u.missing}
	for _, c := range u.commits {
		r.Commits = append(r.Commits, commitReport{c.Hash, c.Author, c.Time, c.Subject})
	}
	return r
}
