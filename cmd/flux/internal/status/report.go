package status

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/report"
	"github.com/fluxkit/flux/pkg/tree"
)

// statusReport is the JSON and YAML output.
type statusReport struct {
	// Healthy reports whether the exit code is 0.
	Healthy   bool             `json:"healthy"`
	Object    report.Link      `json:"object"`
	Sources   []report.Link    `json:"sources"`
	Timing    timingReport     `json:"timing"`
	Needs     []report.Vertex  `json:"needs"`
	NeededBy  []report.Vertex  `json:"neededBy"`
	Inventory *inventoryReport `json:"inventory,omitempty"`
	Events    []eventReport    `json:"events"`
	Cases     []report.Case    `json:"cases"`
	Unapplied *report.Commits  `json:"unapplied,omitempty"`
	Unknown   []string         `json:"unknown,omitempty"`
}

type timingReport struct {
	Interval      string     `json:"interval,omitempty"`
	RetryInterval string     `json:"retryInterval,omitempty"`
	Duration      string     `json:"duration,omitempty"`
	LastFailed    *time.Time `json:"lastFailed,omitempty"`
	Next          *time.Time `json:"next,omitempty"`
}

type inventoryReport struct {
	Total    int `json:"total"`
	NotReady int `json:"notReady"`
	// Unknown is the number of objects that could not be read.
	Unknown int         `json:"unknown"`
	Kinds   []kindCount `json:"kinds"`
	// Trouble is the tree of the objects that are not ready.
	Trouble *tree.Node `json:"trouble,omitempty"`
}

type kindCount struct {
	Group    string `json:"group,omitempty"`
	Kind     string `json:"kind"`
	Count    int    `json:"count"`
	NotReady int    `json:"notReady"`
}

type eventReport struct {
	LastSeen time.Time `json:"lastSeen"`
	Count    int       `json:"count,omitempty"`
	Type     string    `json:"type"`
	Reason   string    `json:"reason"`
	Message  string    `json:"message"`
}

func statusReportOf(s situation) statusReport {
	result := report.DiagnosisOf(s.Result)
	r := statusReport{
		Healthy: s.well() && len(s.unknown) == 0, Object: report.LinkOf(s.Link), Sources: []report.Link{}, Needs: []report.Vertex{}, NeededBy: []report.Vertex{},
		Events: []eventReport{}, Cases: result.Cases, Unapplied: s.commits.Report(), Unknown: s.unknown,
		Timing: timingReport{report.Duration(s.timing.Interval), report.Duration(s.timing.Retry), report.Duration(s.timing.Last.Took), report.TimeOrNil(s.timing.Failed.At), report.TimeOrNil(s.timing.Next)},
	}
	for _, link := range s.Sources {
		r.Sources = append(r.Sources, report.LinkOf(link))
	}
	for _, v := range s.Needs {
		r.Needs = append(r.Needs, report.VertexOf(v))
	}
	for _, v := range s.NeededBy {
		r.NeededBy = append(r.NeededBy, report.VertexOf(v))
	}
	for _, h := range s.Events[max(0, len(s.Events)-eventsShown):] {
		r.Events = append(r.Events, eventReport{h.At.UTC(), h.Count, h.Type, h.Reason, h.Message})
	}
	if s.tree != nil {
		count := countInventory(s.tree)
		if trouble := s.tree.NotReady(); trouble != nil && len(trouble.Children) > 0 {
			count.Trouble = trouble
		}
		r.Inventory = &count
	}
	return r
}

// countInventory counts the applied objects by kind, sorted by name.
func countInventory(root *tree.Node) inventoryReport {
	r := inventoryReport{Kinds: []kindCount{}}
	for _, n := range root.Children {
		i := slices.IndexFunc(r.Kinds, func(c kindCount) bool {
			return c.Group == n.Object.Group && c.Kind == n.Object.Kind
		})
		if i < 0 {
			i, r.Kinds = len(r.Kinds), append(r.Kinds, kindCount{Group: n.Object.Group, Kind: n.Object.Kind})
		}
		r.Total++
		r.Kinds[i].Count++
		switch n.Status {
		case tree.Ready:
		case tree.Unknown, "":
			r.Unknown++
		default:
			r.NotReady++
			r.Kinds[i].NotReady++
		}
	}
	slices.SortFunc(r.Kinds, func(a, b kindCount) int { return strings.Compare(a.Kind+a.Group, b.Kind+b.Group) })
	return r
}

// String returns a line such as "3 objects: ConfigMap 2, Deployment 1 (1 not
// ready)".
func (r inventoryReport) String() string {
	if r.Total == 0 {
		return "nothing is recorded"
	}
	var kinds []string
	for _, k := range r.Kinds {
		text := fmt.Sprintf("%s %d", k.Kind, k.Count)
		if k.NotReady > 0 {
			text += fmt.Sprintf(" (%d not ready)", k.NotReady)
		}
		kinds = append(kinds, text)
	}
	text := fmt.Sprintf("%d objects", r.Total)
	if r.Total == 1 {
		text = "1 object"
	}
	if r.NotReady > 0 {
		text += fmt.Sprintf(", %d not ready", r.NotReady)
	}
	if r.Unknown > 0 {
		kinds = append(kinds, fmt.Sprintf("%d not checked", r.Unknown))
	}
	return text + ": " + strings.Join(kinds, ", ")
}
