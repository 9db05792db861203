package status

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fatih/color"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/report"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/treeview"
	"github.com/fluxkit/flux/cmd/flux/internal/status/layout"
	"github.com/fluxkit/flux/internal/secrets/redact"
	"github.com/fluxkit/flux/internal/terminal/fit"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diagnose"
	"github.com/fluxkit/flux/pkg/diagnose/failure"
	"github.com/fluxkit/flux/pkg/tree"
)

// Limits that keep the output on one screen.
const (
	neighborsShown = 8
	troubleShown   = 12
	eventsShown    = 5
	messageShown   = 200
)

// printSituation prints problems first, then the source, the reconciliation
// and the inventory.
func printSituation(a *app.App, s situation) error {
	t := layout.New(a)
	head(a, t, s)
	t.Section("Source", sourceRows(a, s))
	t.Section("Reconciliation", reconciliationRows(a, s))
	t.Lines(report.UnappliedTitle, s.commits.Lines(a))
	t.Section("Needs", neighborRows(a, s.Needs))
	t.Section("Needed by", neighborRows(a, s.NeededBy))
	inventory(a, t, s)
	t.Section("Events", eventRows(a, s))
	t.Lines("Could not check", s.unknown)
	return a.Print(t.String())
}

// head writes the object, its Ready message and the cause of a failure.
func head(a *app.App, t *layout.Text, s situation) {
	state, hue := readyWord(s)
	t.Title(s.Link.Object.String(), state, hue)
	if message := lineOf(s.outcome.Message); message != "" && !explained(s) {
		t.Paragraph(message)
	}
	for _, c := range s.Result.Causes {
		page := report.NewPage(a)
		page.Problem(c)
		t.Write("\n" + page.B.String())
	}
}

// explained reports whether a root cause in the object itself replaces its Ready message.
func explained(s situation) bool {
	return slices.ContainsFunc(s.Result.Causes, func(c diagnose.Cause) bool { return len(c.Chain) == 1 && c.Root().Object == c.Object })
}

// lineOf returns a message as a single redacted line.
func lineOf(message string) string { return strings.Join(strings.Fields(redact.Text(message)), " ") }

func readyWord(s situation) (string, color.Attribute) {
	word, hue := "Not ready", color.FgRed
	switch s.outcome.Status {
	case "True":
		word, hue = "Ready", color.FgGreen
	case "Unknown":
		word, hue = "Reconciling", color.FgYellow
	}
	if s.outcome.Reason != "" && s.outcome.Status != "True" {
		word += " (" + s.outcome.Reason + ")"
	}
	if s.Link.Kind.Suspension.Is(s.Link.Live) {
		word, hue = word+", suspended", color.FgYellow
	}
	return word, hue
}

func sourceRows(a *app.App, s situation) [][]string {
	var rows [][]string
	for _, link := range s.Sources {
		name := link.Object.String()
		if link.Err != nil {
			rows = append(rows, []string{treeview.Mark(a, tree.Unknown) + name, report.Unreadable(link.Err), "", ""})
			continue
		}
		out := link.Outcome()
		word, since := "Ready", ""
		if out.Status != "True" {
			word = "Not ready: " + out.Reason
		}
		name = treeview.Mark(a, tree.ReadyStatus(out.Status)) + name
		if link.Kind.Suspension.Is(link.Live) {
			word += ", suspended"
		}
		if at := fetchedAt(link); !at.IsZero() {
			since = "fetched " + duration.HumanDuration(a.Now().Sub(at)) + " ago"
		}
		rows = append(rows, []string{name, word, resultOf(link, report.ShortRevision(out.Revision)), since})
	}
	return rows
}

// fetchedAt returns the time of the last update of the artifact.
func fetchedAt(l tree.Link) time.Time {
	at, err := time.Parse(time.RFC3339, controllers.Path{"status.artifact.lastUpdateTime"}.String(l.Live))
	if err != nil {
		return time.Time{}
	}
	return at
}

// resultOf returns the revision of a link, or the Ready message of image
// kinds, whose revision is not self-explanatory.
func resultOf(l tree.Link, revision string) string {
	if revision == "" || l.Kind.Family != "image" {
		return revision
	}
	return fmt.Sprintf(l.Kind.Done, revision)
}

func reconciliationRows(a *app.App, s situation) [][]string {
	var rows [][]string
	add := func(label, value string) {
		if value != "" {
			rows = append(rows, []string{label, value})
		}
	}
	when := func(t time.Time) string {
		if t.IsZero() {
			return ""
		}
		return report.Moment(a, t)
	}
	if k := s.Link.Kind; k.Inventory != nil && k.Family == "" {
		add("Applied", s.outcome.Revision)
	} else if s.outcome.Revision != "" {
		add("Result", fmt.Sprintf(k.Done, s.outcome.Revision))
	}
	if s.outcome.Attempted != s.outcome.Revision {
		add("Attempted", s.outcome.Attempted)
	}
	good, failed := s.outcome.LastSuccess, s.timing.Failed.At
	if s.outcome.Status == "True" && s.timing.Last.Succeeded {
		good = s.timing.Last.At
	}
	if s.outcome.Status == "False" && failed.Before(s.outcome.Since) {
		failed = s.outcome.Since
	}
	add("Last success", when(good))
	add("Last failure", when(failed))
	if s.timing.Last.Took > 0 && s.timing.Current {
		add("Took", s.timing.Last.Took.Round(time.Millisecond).String())
	}
	add("Interval", intervalText(s.timing))
	switch {
	case s.Link.Kind.Suspension.Is(s.Link.Live):
		add("Next", "none, suspended"+report.SuspendNote(s.Link.Live))
	case !s.timing.Next.IsZero() && s.timing.Next.Before(a.Now()):
		add("Next", "was due at "+report.Moment(a, s.timing.Next))
	case !s.timing.Next.IsZero():
		add("Next", "about "+report.Moment(a, s.timing.Next))
	}
	return rows
}

func intervalText(t tree.Schedule) string {
	if t.Interval == 0 {
		return ""
	}
	text := duration.HumanDuration(t.Interval)
	if t.Retry > 0 && t.Retry != t.Interval {
		text += ", " + duration.HumanDuration(t.Retry) + " after a failure"
	}
	return text
}

func neighborRows(a *app.App, vertices []*tree.Vertex) [][]string {
	var rows [][]string
	for i, v := range vertices {
		if i == neighborsShown {
			return append(rows, []string{fmt.Sprintf("and %d more", len(vertices)-i), "", ""})
		}
		message := ""
		if v.Status() != tree.Ready {
			message = lineOf(v.Message)
		}
		word := string(v.Status())
		if v.Suspended {
			word += ", suspended"
		}
		rows = append(rows, []string{treeview.Mark(a, v.Status()) + v.Object.String(), word, message})
	}
	return rows
}

// inventory writes the counts of the inventory and the branches that are not
// ready.
func inventory(a *app.App, t *layout.Text, s situation) {
	if s.tree == nil {
		return
	}
	t.Heading("Inventory")
	t.Paragraph(countInventory(s.tree).String())
	trouble := s.tree.NotReady()
	if trouble == nil || len(trouble.Children) == 0 {
		return
	}
	style := treeview.Style(a)
	style.Separator, style.Bare = "  ", true
	if t.Width > 0 {
		style.Width = t.Width
	}
	var drawn bytes.Buffer
	_ = tree.Table(&drawn, []*tree.Node{trouble}, style) // writes to a buffer do not fail
	lines := strings.Split(strings.TrimRight(drawn.String(), "\n"), "\n")
	t.Write("\n")
	for i, line := range lines {
		if i == troubleShown {
			t.Write(treeview.MoreFailed(s.Link.Kind, s.Link.Object, len(lines)-i) + "\n")
			break
		}
		t.Write(strings.TrimRight(redact.Text(line), " ") + "\n")
	}
}

func eventRows(a *app.App, s situation) [][]string {
	var rows [][]string
	for _, h := range s.Events[max(0, len(s.Events)-eventsShown):] {
		seen := duration.HumanDuration(a.Now().Sub(h.At)) + " ago"
		if h.Count > 1 {
			seen += fmt.Sprintf(" (x%d)", h.Count)
		}
		rows = append(rows, []string{seen, h.Type, h.Reason, fit.Cut(lineOf(failure.WithoutTempDirs(h.Message)), messageShown)})
	}
	return rows
}
