// Package history implements the history command.
package history

import (
	"cmp"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/command"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/kinds"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/report"
	"github.com/fluxkit/flux/internal/git"
	"github.com/fluxkit/flux/internal/kube/objref"
	"github.com/fluxkit/flux/internal/terminal/output"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/tree"
)

// NewCommand returns the history command.
func NewCommand(a *app.App) *cobra.Command {
	var format string
	return kinds.NewCommand(a, kinds.Verb{
		Name: "history", Applies: controllers.History, Single: true,
		Short: "Show the last reconciliations or releases of a resource",
		Of:    "Show the history of %s objects",
		OfKind: []kinds.Example{
			{For: released, Text: `  # Show the last Helm releases
  flux history %[1]s %[2]s`},
			{For: kinds.Unless(released), Text: `  # Show the last revisions with their results and durations
  flux history %[1]s %[2]s`},
			{Text: `  # Print the last successful revision
  flux history %[1]s %[2]s -o json | jq -r 'first(.history[] | select(.succeeded)).revision'`},
		},
		Examples: `  # Show the history of several resources
  flux history ks/my-app hr/my-app

  # In a clone of the source: list the commits, and show the changes between two of them
  flux history ks my-app
  flux diff --base 6f9a1b2c --head 1d2e3f4a --path clusters/production`,
		Flags: func(fs *pflag.FlagSet) {
			command.AddOutput(fs, &format, "output format; wide adds the time of the first run and the digest", "wide", "json", "yaml")
		},
		Run: func(cmd *cobra.Command, s kinds.Selection) error {
			return a.Interruptible(cmd, func() error { return run(a, cmd, format, s) })
		},
	})
}

// released reports whether the history of a kind lists Helm releases.
func released(k controllers.Kind) bool { return k.Release }

// subject is an object with its history.
type subject struct {
	target  objref.Target
	entries []tree.HistoryEntry
	commits map[string]git.Commit
}

func run(a *app.App, cmd *cobra.Command, format string, s kinds.Selection) error {
	if len(s.Objects) == 0 {
		return s.ObjectRequired(cmd)
	}
	client, namespace, err := a.Connect(cmd)
	if err != nil {
		return err
	}
	ctx, cancel := a.WithTimeout(cmd.Context())
	defer cancel()
	targets := s.In(namespace)
	return kinds.Reporter[subject]{
		Format: printed(format), Listed: len(targets) > 1,
		Read: func(i int) (subject, error) {
			t := targets[i]
			if err := t.Read(ctx, client); err != nil {
				return subject{}, err
			}
			return subjectOf(t), nil
		},
		Print:   func(_ int, s subject) error { return s.print(a, format, len(targets) > 1) },
		Encoded: func(_ int, s subject) any { return s.report() },
		Exit:    func(subject) error { return nil },
	}.Run(cmd.Context(), a, len(targets), nil)
}

// printed returns the machine-readable format, or "" for a table.
func printed(format string) string {
	if format == "wide" {
		return ""
	}
	return format
}

// subjectOf returns the history of an object, with the commits that the Git clone in the current directory contains.
func subjectOf(t objref.Target) subject {
	s := subject{target: t, entries: tree.Link{Kind: t.Kind, Live: t.Object}.History()}
	var hashes []string
	for _, e := range s.entries {
		if hash := commitOf(e); hash != "" {
			hashes = append(hashes, hash)
		}
	}
	if len(hashes) > 0 {
		s.commits = report.LocalCommits(hashes)
	}
	return s
}

// commitOf returns the commit of an entry, or "" if its revision is not from a Git repository.
func commitOf(e tree.HistoryEntry) string {
	return git.ParseRevision(cmp.Or(e.Origin, e.Revision)).Commit
}

func (s subject) print(a *app.App, format string, several bool) error {
	if several {
		if err := a.Printf("%s\n", s.target.Named().String()); err != nil {
			return err
		}
	}
	if len(s.entries) == 0 {
		a.UI.Warning("%s has no history: status.history is empty", s.target.Named())
		return nil
	}
	columns := runColumns()
	if s.target.Kind.Release {
		columns = releaseColumns()
	}
	var table output.Table
	for _, c := range columns {
		if !c.wide || format == "wide" {
			table.Headers = append(table.Headers, c.header)
		}
	}
	for _, e := range s.entries {
		var row []string
		for _, c := range columns {
			if !c.wide || format == "wide" {
				row = append(row, c.cell(s, e))
			}
		}
		table.Rows = append(table.Rows, row)
	}
	return a.Table(table, app.TableStyle{Fold: format == "wide"})
}

// column is a table column. Wide columns are only in -o wide.
type column struct {
	header string
	wide   bool
	cell   func(subject, tree.HistoryEntry) string
}

// runColumns returns the columns for reconciliations.
func runColumns() []column {
	return []column{
		{"REVISION", false, func(_ subject, e tree.HistoryEntry) string {
			return report.ShortRevision(cmp.Or(e.Revision, e.Digest))
		}},
		{"STARTED", false, func(_ subject, e tree.HistoryEntry) string { return timestamp(e.Started()) }},
		{"DURATION", false, func(_ subject, e tree.HistoryEntry) string { return report.Duration(rounded(e.Took)) }},
		{"RUNS", false, func(_ subject, e tree.HistoryEntry) string { return strconv.Itoa(e.Runs) }},
		{"STATUS", false, status},
		{"FIRST", true, first},
		{"DIGEST", true, digest},
		{"COMMIT", false, func(s subject, e tree.HistoryEntry) string {
			c, found := s.commits[commitOf(e)]
			if !found {
				return ""
			}
			return c.Subject + " (" + c.Author + ")"
		}},
	}
}

// releaseColumns returns the columns for Helm releases.
func releaseColumns() []column {
	return []column{
		{"REVISION", false, func(_ subject, e tree.HistoryEntry) string { return e.Revision }},
		{"RELEASE", false, func(_ subject, e tree.HistoryEntry) string { return e.Release }},
		{"STARTED", false, func(_ subject, e tree.HistoryEntry) string { return timestamp(e.At) }},
		{"STATUS", false, status},
		{"ACTION", false, func(_ subject, e tree.HistoryEntry) string { return e.Action }},
		{"CHART", true, func(_ subject, e tree.HistoryEntry) string { return e.Chart }},
		{"FIRST", true, first},
		{"DIGEST", true, digest},
		{"APP VERSION", false, func(_ subject, e tree.HistoryEntry) string { return e.AppVersion }},
	}
}

func status(_ subject, e tree.HistoryEntry) string { return e.Status }

func first(_ subject, e tree.HistoryEntry) string { return timestamp(e.First) }

func digest(_ subject, e tree.HistoryEntry) string { return report.ShortRevision(e.Digest) }

// timestamp returns a time in RFC 3339, "" if it is unknown.
func timestamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Format(time.RFC3339)
}

// rounded removes the digits of a duration that the controllers do not measure reliably.
func rounded(d time.Duration) time.Duration { return d.Round(time.Millisecond) }
