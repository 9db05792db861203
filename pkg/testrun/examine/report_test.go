package examine

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/fluxkit/flux/internal/budget"
	"github.com/fluxkit/flux/pkg/testrun/assert"
	"github.com/fluxkit/flux/pkg/testrun/settle"
)

// TestConclude checks that messages of one MiB, as those of an API server, are excerpts in a report, also after the results
// of test files are added.
func TestConclude(t *testing.T) {
	t.Parallel()
	large := "rejected: " + strings.Repeat("\x01", 1<<20)
	r := &Report{
		Causes: []Cause{{Message: large, Details: []string{large}}}, Objects: []settle.Status{{Status: settle.NotReady, Message: large}},
		Deprecated: []Deprecation{{Message: large}}, NotTested: []settle.Omission{{Reason: large}}, Unknown: []string{large},
	}
	r.conclude()
	r.AddTests([]assert.Result{{Actual: large}})
	text, err := json.Marshal(r)
	if err != nil || r.Result != settle.NotReady {
		t.Fatal(err, r.Result)
	}
	if want := 7 * 6 * budget.ErrorText; len(text) > want+1000 { // an escaped character has six bytes
		t.Errorf("the report has %d bytes, more than %d", len(text), want)
	}
	if short := budget.Excerpt(large, budget.ErrorText); r.Causes[0].Message != short || r.Tests[0].Actual != short {
		t.Errorf("%.100q is not an excerpt", r.Causes[0].Message)
	}
}
