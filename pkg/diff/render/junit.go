package render

import (
	"strings"

	"github.com/fluxkit/flux/internal/ci/cireport"
	"github.com/fluxkit/flux/internal/terminal/printable"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diff"
)

// junit returns a test suite for each Kustomization and HelmRelease and a test for each object that
// changes. A test fails if the object cannot be applied, or if its change is dangerous and not
// allowed. An owner that is not compared is a skipped test.
func junit(results []*diff.Result) (string, error) {
	failures := map[place]map[controllers.VersionedID][]cireport.Problem{}
	for _, p := range problems(results) {
		if p.level == notice {
			continue
		}
		at := p.place()
		if failures[at] == nil {
			failures[at] = map[controllers.VersionedID][]cireport.Problem{}
		}
		failures[at][p.object] = append(failures[at][p.object], cireport.Problem{Type: p.rule, Message: printable.Line(p.text)})
	}
	var all cireport.Suites
	for _, r := range results {
		suite, failures := cireport.Suite{Name: printable.Line(r.Owner.String())}, failures[placeOf(r)]
		if r.Cluster != "" {
			suite.Name = printable.Line(r.Cluster) + ": " + suite.Name
		}
		add := func(object controllers.VersionedID, action, file string, line int) {
			suite.Add(cireport.Case{Name: printable.Line(object.String() + " " + action), File: file, Line: line, Failures: failures[object]})
		}
		for _, c := range r.Changes {
			if c.Different() || len(failures[c.Object]) > 0 {
				add(c.Object, verdict(c), c.File, c.Line)
			}
		}
		if len(failures[r.Owner]) > 0 {
			add(r.Owner, "changed", r.File, r.Line)
		}
		if r.NotCompared != nil {
			suite.Add(cireport.Case{Name: suite.Name, Skipped: &cireport.Problem{Message: omission(r)}})
		}
		all.Add(suite)
	}
	var b strings.Builder
	err := all.Write(&b)
	return b.String(), err
}
