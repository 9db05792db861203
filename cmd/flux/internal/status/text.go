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
	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/internal/kube/event"
	"github.com/fluxkit/flux/internal/secrets/redact"
	"github.com/fluxkit/flux/internal/terminal/fit"
	"github.com/fluxkit/flux/internal/terminal/output"
	"github.com/fluxkit/flux/internal/terminal/printable"
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

// textLayout is the text of the status screen: sections of rows with aligned
// columns.
type textLayout struct {
	app    *app.App
	screen output.Screen
	b      strings.Builder
}

// printSituation prints problems first, then the source, the reconciliation
// and the inventory.
func printSituation(a *app.App, s situation) error {
	screen, _ := a.Screen(false)
	p := &textLayout{app: a, screen: screen}
	p.head(s)
	p.section("Source", p.sources(s))
	p.section("Reconciliation", reconciliationRows(a, s))
	p.section(report.UnappliedTitle, rowsOfLines(s.commits.Lines(a)))
	p.section("Needs", neighborRows(s.Needs))
	p.section("Needed by", neighborRows(s.NeededBy))
	p.inventory(s)
	p.section("Events", eventRows(a, s.Events))
	p.section("Could not check", rowsOfLines(s.unknown))
	return a.Print(p.b.String())
}

// rowsOfLines converts lines to rows with one cell.
func rowsOfLines(lines []string) [][]string {
	var rows [][]string
	for _, line := range lines {
		rows = append(rows, []string{redact.Text(line)})
	}
	return rows
}

// head writes the object, its Ready message and the cause of a failure.
func (p *textLayout) head(s situation) {
	state, hue := readyWord(s)
	p.b.WriteString(p.paint(color.Bold, printable.Line(s.Link.Object.String())) + "  " + p.paint(hue, printable.Line(state)) + "\n")
	if message := lineOf(s.outcome.Message); message != "" && !explained(s) {
		p.b.WriteString(p.folded(message))
	}
	for _, c := range s.Result.Causes {
		text := report.NewPage(p.app)
		text.Problem(c)
		p.b.WriteString("\n" + text.B.String())
	}
}

// explained reports whether a case is about the object itself and replaces its
// Ready message.
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

// section writes rows under a title, or nothing without rows.
func (p *textLayout) section(title string, rows [][]string) {
	if len(rows) == 0 {
		return
	}
	p.b.WriteString("\n" + p.paint(color.Bold, title) + "\n")
	widths := make([]int, len(rows[0]))
	rows = slices.Clone(rows)
	for i, row := range rows {
		rows[i] = printable.Lines(row)
	}
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], fit.Width(cell))
		}
	}
	for _, row := range rows {
		line := "  "
		for i, cell := range row {
			line += fit.Fill(cell, widths[i]) + "  "
		}
		p.b.WriteString(fit.Cut(strings.TrimRight(line, " "), p.screen.Width) + "\n")
	}
}

func (p *textLayout) sources(s situation) [][]string {
	var rows [][]string
	for _, link := range s.Sources {
		name := link.Object.String()
		if link.Err != nil {
			rows = append(rows, []string{name, report.Unreadable(link.Err), "", ""})
			continue
		}
		out := link.Outcome()
		word, since := "Ready", ""
		if out.Status != "True" {
			word = "Not ready: " + out.Reason
		}
		if link.Kind.Suspension.Is(link.Live) {
			word += ", suspended"
		}
		if at := fetchedAt(link); !at.IsZero() {
			since = "fetched " + duration.HumanDuration(p.app.Now().Sub(at)) + " ago"
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

func neighborRows(vertices []*tree.Vertex) [][]string {
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
		rows = append(rows, []string{v.Object.String(), word, message})
	}
	return rows
}

// inventory writes the counts of the inventory and the branches that are not
// ready.
func (p *textLayout) inventory(s situation) {
	if s.tree == nil {
		return
	}
	count := countInventory(s.tree)
	p.b.WriteString("\n" + p.paint(color.Bold, "Inventory") + "\n" + p.folded(count.String()))
	trouble := s.tree.NotReady()
	if trouble == nil || len(trouble.Children) == 0 {
		return
	}
	style := treeview.Style(p.app)
	style.Separator, style.Bare = "  ", true
	if p.screen.Width > 0 {
		style.Width = p.screen.Width
	}
	var drawn bytes.Buffer
	_ = tree.Table(&drawn, []*tree.Node{trouble}, style) // writes to a buffer do not fail
	lines := strings.Split(strings.TrimRight(drawn.String(), "\n"), "\n")
	p.b.WriteString("\n")
	for i, line := range lines {
		if i == troubleShown {
			fmt.Fprintf(&p.b, "and %d more: %s\n", len(lines)-i, hint.Command("flux tree "+s.Link.Kind.Word+" %s -n %s --failed", s.Link.Object.Name, s.Link.Object.Namespace))
			break
		}
		p.b.WriteString(strings.TrimRight(redact.Text(line), " ") + "\n")
	}
}

func eventRows(a *app.App, events []event.Event) [][]string {
	var rows [][]string
	for _, h := range events[max(0, len(events)-eventsShown):] {
		seen := duration.HumanDuration(a.Now().Sub(h.At)) + " ago"
		if h.Count > 1 {
			seen += fmt.Sprintf(" (x%d)", h.Count)
		}
		rows = append(rows, []string{seen, h.Type, h.Reason, fit.Cut(lineOf(failure.WithoutTempDirs(h.Message)), messageShown)})
	}
	return rows
}

// folded wraps a line at the width of the terminal.
func (p *textLayout) folded(text string) string {
	return fit.Fold("  "+printable.Line(text), report.Indent, p.screen.Width) + "\n"
}

func (p *textLayout) paint(attribute color.Attribute, text string) string {
	if !p.screen.Color {
		return text
	}
	c := color.New(attribute)
	c.EnableColor()
	return c.Sprint(text)
}
