// Package report prints the results of commands: outcomes, diagnoses and root causes, as text and
// as JSON.
package report

import (
	"context"
	"errors"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/internal/git"
	"github.com/fluxkit/flux/pkg/diagnose"
)

// commitsShown is the maximum number of reported commits.
const commitsShown = 20

// Unapplied holds the commits between the applied and the fetched revision.
type Unapplied struct {
	// base and head are the applied and the fetched commit, or "" if they are equal or not Git
	// commits.
	base, head string
	commits    []git.Commit
	total      int
	// missing is the reason why the commits could not be read, or "".
	missing string
}

// UnappliedCommits reads the commits from the Git clone around the current
// directory, if it is a clone of the source. It fetches nothing.
func UnappliedCommits(ctx context.Context, f *diagnose.Facts) Unapplied {
	if f == nil {
		return Unapplied{}
	}
	base, head := git.ParseRevision(f.Applied).Commit, git.ParseRevision(f.Fetched).Commit
	if base == "" || head == "" || base == head || f.Address == "" {
		return Unapplied{}
	}
	u := Unapplied{base: base, head: head, missing: "run the command in a clone of " + f.Source.String() + " to list them"}
	repository, err := git.Open(".")
	if err != nil {
		return u
	}
	defer func() { _ = repository.Close() }() // opened for reading
	if !repository.Of(f.Address) {
		return u
	}
	u.commits, u.total, err = repository.History().Between(ctx, base, head, commitsShown)
	switch {
	case errors.Is(err, git.ErrIncomplete):
		u.missing = "not in this clone: run git fetch"
	case err != nil:
		u.missing = "could not be read from this clone: " + err.Error()
	default:
		u.missing = ""
	}
	return u
}

// LocalCommits returns the commits that exist in the Git clone that contains the current directory, by hash.
func LocalCommits(hashes []string) map[string]git.Commit {
	found := map[string]git.Commit{}
	repository, err := git.Open(".")
	if err != nil {
		return found // no clone
	}
	defer func() { _ = repository.Close() }() // opened for reading
	for _, hash := range hashes {
		if c, err := repository.History().Describe(plumbing.NewHash(hash)); err == nil {
			found[hash] = c
		}
	}
	return found
}

// Lines returns the commits as text, the newest first.
func (u Unapplied) Lines(a *app.App) []string {
	const digits = 8
	if u.missing != "" {
		return []string{u.base[:digits] + ".." + u.head[:digits] + ": " + u.missing}
	}
	var lines []string
	for _, c := range u.commits {
		lines = append(lines, c.Hash[:digits]+" "+c.Subject+" ("+c.Author+", "+Moment(a, c.Time)+")")
	}
	return append(lines, more(u.total-len(u.commits))...)
}

// UnappliedTitle is the title of the lines.
const UnappliedTitle = "Commits not applied"

// Commits is the JSON form of Unapplied: the newest commits and their total.
type Commits struct {
	// From is the applied commit, To the fetched one.
	From    string       `json:"from"`
	To      string       `json:"to"`
	Total   int          `json:"total"`
	Commits []git.Commit `json:"commits"`
	// Missing is set if the commits could not be read in the current directory:
	// Total is unknown then.
	Missing bool `json:"missing,omitempty"`
}

// Report returns the commits for JSON, nil if there are none.
func (u Unapplied) Report() *Commits {
	if u.total == 0 && u.missing == "" {
		return nil
	}
	r := &Commits{From: u.base, To: u.head, Total: u.total, Commits: append([]git.Commit{}, u.commits...), Missing: u.missing != ""}
	return r
}
