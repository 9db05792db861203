package render

import (
	"fmt"
	"strings"

	"github.com/fluxkit/flux/internal/ci/cireport"
	"github.com/fluxkit/flux/internal/terminal/output"
	"github.com/fluxkit/flux/internal/terminal/printable"
	"github.com/fluxkit/flux/pkg/testrun/assert"
	"github.com/fluxkit/flux/pkg/testrun/examine"
)

// testLines describes the results of each test, with the assertions that have not passed.
func testLines(r *examine.Report) []string {
	var lines, open []string
	passed, name := 0, ""
	flush := func() {
		switch {
		case name == "":
		case len(open) == 0:
			lines = append(lines, name+": "+output.Amount(passed, "assertion")+" passed")
		default:
			lines = append(append(lines, fmt.Sprintf("%s: %d of %s passed", name, passed, output.Amount(passed+len(open), "assertion"))), open...)
		}
		passed, open = 0, nil
	}
	for _, result := range r.Tests {
		if result.Test != name {
			flush()
			name = result.Test
		}
		if result.Outcome == assert.Passed {
			passed++
		} else {
			open = append(open, "  "+string(result.Outcome)+": "+result.String())
		}
	}
	flush()
	return lines
}

// testAnnotations returns the assertions that have not passed as workflow commands.
func testAnnotations(r *examine.Report) string {
	var b strings.Builder
	for _, result := range r.Tests {
		level := map[assert.Outcome]string{assert.Failed: "error", assert.Undetermined: "warning"}[result.Outcome]
		if level != "" {
			b.WriteString(cireport.Annotation{Level: level, Title: "assertion", File: result.File, Text: result.String()}.String())
		}
	}
	return b.String()
}

// testSuites adds a suite for each test.
func testSuites(all *cireport.Suites, r *examine.Report) {
	for i := 0; i < len(r.Tests); {
		of := cireport.Suite{Name: printable.Line(r.Tests[i].Test)}
		for name := r.Tests[i].Test; i < len(r.Tests) && r.Tests[i].Test == name; i++ {
			result := r.Tests[i]
			c := cireport.Case{Name: printable.Line(result.Step + ": " + result.Expected), Seconds: result.Seconds}
			problem := cireport.Problem{Type: string(result.Outcome), Message: printable.Line(result.String())}
			switch result.Outcome {
			case assert.Failed:
				c.Failures = []cireport.Problem{problem}
			case assert.Undetermined:
				c.Skipped = &problem
			case assert.Passed:
			}
			of.Add(c)
		}
		all.Add(of)
	}
}
