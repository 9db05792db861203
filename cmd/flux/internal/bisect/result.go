package bisect

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/fluxkit/flux/internal/git"
	"github.com/fluxkit/flux/internal/secrets/redact"
	"github.com/fluxkit/flux/internal/terminal/printable"
	"github.com/fluxkit/flux/pkg/testrun/examine"
)

// result is the result of a search.
type result struct {
	// First is the first bad commit, and Files are the files that it changes.
	First commit   `json:"first"`
	Files []string `json:"files"`
	// Good is the last good commit before First.
	Good commit `json:"good"`
	// Causes are the root causes at First.
	Causes []examine.Cause `json:"causes"`
	// Candidates are skipped commits between Good and First.
	Candidates []commit `json:"candidates"`
	// Tested is the number of tests.
	Tested int `json:"tested"`
}

// commit is a commit with the reason why it was skipped.
type commit struct {
	Hash    string    `json:"hash"`
	Subject string    `json:"subject"`
	Author  string    `json:"author"`
	Time    time.Time `json:"time"`
	Skipped string    `json:"skipped,omitempty"`
}

func commitOf(i git.Commit) commit {
	return commit{Hash: i.Hash, Subject: i.Subject, Author: i.Author, Time: i.Time}
}

// result returns the report of a finished search.
func (t *tester) result(ctx context.Context, commits []plumbing.Hash, found bisection) (result, error) {
	first := commits[found.First]
	r := result{Causes: append([]examine.Cause{}, t.outcomes[first].report.Causes...), Candidates: []commit{}, Tested: found.Tested + 2}
	info, err := t.clone.History().Describe(first)
	if err != nil {
		return r, err
	}
	files, err := t.clone.History().Changed(ctx, first)
	if err != nil {
		return r, err
	}
	r.First, r.Files = commitOf(info), append([]string{}, files...)
	if info, err = t.clone.History().Describe(commits[found.Good]); err != nil {
		return r, err
	}
	r.Good = commitOf(info)
	for _, i := range found.Candidates {
		if info, err = t.clone.History().Describe(commits[i]); err != nil {
			return r, err
		}
		c := commitOf(info)
		c.Skipped = t.outcomes[commits[i]].reason
		r.Candidates = append(r.Candidates, c)
	}
	return r, nil
}

// filesShown and detailsShown are the maximum numbers of files and details in the text.
const filesShown, detailsShown = 20, 5

// text returns the output without --output.
func (r result) text() string {
	var b strings.Builder
	title := "First bad commit"
	if len(r.Candidates) > 0 {
		title = "Bad commit"
	}
	fmt.Fprintf(&b, "%s: %s %s\n  %s, %s\n", title, r.First.Hash, line(r.First.Subject), line(r.First.Author), r.First.Time.Format("2006-01-02 15:04:05 MST"))
	list(&b, "Files", r.Files, filesShown)
	for _, c := range r.Causes {
		where := ""
		if c.File != "" {
			where = " in " + line(c.File)
		}
		fmt.Fprintf(&b, "\nRoot cause\n  %s%s: %s\n", line(c.Object.String()), where, line(redact.Text(c.Message)))
		for _, detail := range c.Details[:min(len(c.Details), detailsShown)] {
			fmt.Fprintf(&b, "    %s\n", line(redact.Text(detail)))
		}
		list(&b, "Fix", c.Remedies, len(c.Remedies))
	}
	var skipped []string
	for _, c := range r.Candidates {
		skipped = append(skipped, c.Hash+" "+c.Subject+": "+redact.Text(c.Skipped))
	}
	list(&b, "Not tested, and possibly the first bad commit", skipped, len(skipped))
	fmt.Fprintf(&b, "\nLast good commit: %s %s\n", r.Good.Hash, line(r.Good.Subject))
	return b.String()
}

// list writes a heading and at most limit lines.
func list(b *strings.Builder, heading string, lines []string, limit int) {
	if len(lines) == 0 {
		return
	}
	fmt.Fprintf(b, "\n%s\n", heading)
	for _, text := range lines[:min(len(lines), limit)] {
		fmt.Fprintf(b, "  %s\n", line(text))
	}
	if more := len(lines) - limit; more > 0 {
		fmt.Fprintf(b, "  and %d more\n", more)
	}
}

func line(text string) string { return printable.Line(text) }
