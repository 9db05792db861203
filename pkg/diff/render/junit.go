package render

import (
	"encoding/xml"
	"io"

	"github.com/fluxkit/flux/internal/printable"
	"github.com/fluxkit/flux/pkg/diff"
)

type (
	junitSuites struct {
		XMLName  xml.Name     `xml:"testsuites"`
		Tests    int          `xml:"tests,attr"`
		Failures int          `xml:"failures,attr"`
		Skipped  int          `xml:"skipped,attr"`
		Suites   []junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		Name     string      `xml:"name,attr"`
		Tests    int         `xml:"tests,attr"`
		Failures int         `xml:"failures,attr"`
		Skipped  int         `xml:"skipped,attr"`
		Cases    []junitCase `xml:"testcase"`
	}
	junitCase struct {
		Class    string         `xml:"classname,attr"`
		Name     string         `xml:"name,attr"`
		Failures []junitProblem `xml:"failure"`
		Skipped  *junitProblem  `xml:"skipped"`
	}
	junitProblem struct {
		Type    string `xml:"type,attr,omitempty"`
		Message string `xml:"message,attr"`
	}
)

// JUnit writes a test suite for each Kustomization and HelmRelease and a test for each object that
// changes. A test fails if the object cannot be applied, or if its change is dangerous and not
// allowed. An owner that is not compared is a skipped test.
func JUnit(w io.Writer, results []*diff.Result) error {
	failures := map[place]map[diff.Ref][]junitProblem{}
	for _, p := range problems(results) {
		if p.level == notice {
			continue
		}
		at := p.place()
		if failures[at] == nil {
			failures[at] = map[diff.Ref][]junitProblem{}
		}
		failures[at][p.object] = append(failures[at][p.object], junitProblem{Type: p.rule, Message: printable.Line(p.text)})
	}
	var all junitSuites
	for _, r := range results {
		suite, failures := junitSuite{Name: printable.Line(r.Owner.String())}, failures[placeOf(r)]
		if r.Cluster != "" {
			suite.Name = printable.Line(r.Cluster) + ": " + suite.Name
		}
		add := func(object diff.Ref, action string) {
			c := junitCase{Class: suite.Name, Name: printable.Line(object.String() + " " + action), Failures: failures[object]}
			suite.Cases = append(suite.Cases, c)
			suite.Failures += min(len(c.Failures), 1)
		}
		for _, c := range r.Changes {
			if c.Different() || len(failures[c.Object]) > 0 {
				add(c.Object, verdict(c))
			}
		}
		if len(failures[r.Owner]) > 0 {
			add(r.Owner, "changed")
		}
		if r.NotCompared != nil {
			suite.Cases = append(suite.Cases, junitCase{Class: suite.Name, Name: suite.Name, Skipped: &junitProblem{Message: omission(r)}})
			suite.Skipped++
		}
		suite.Tests = len(suite.Cases)
		all.Tests, all.Failures, all.Skipped = all.Tests+suite.Tests, all.Failures+suite.Failures, all.Skipped+suite.Skipped
		all.Suites = append(all.Suites, suite)
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	encoder := xml.NewEncoder(w)
	encoder.Indent("", "  ")
	if err := encoder.Encode(all); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}
