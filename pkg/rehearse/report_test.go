package rehearse

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/fluxkit/flux/internal/budget"
	"github.com/fluxkit/flux/pkg/diff"
	"github.com/fluxkit/flux/pkg/testrun/settle"
)

// TestConclude checks that messages of one MiB, as those of an API server, are excerpts in a report, and that changes are
// whole.
func TestConclude(t *testing.T) {
	t.Parallel()
	large := strings.Repeat("x", 1<<20)
	r := &Report{
		Findings: []Finding{{Message: large, Remedies: []string{large}}}, NotRehearsed: []settle.Omission{{Reason: large}}, Unsettled: []string{large},
		Controllers: []Controller{{Unknown: large}}, Changes: []*diff.Result{{Changes: []diff.Change{{Fields: []diff.Field{{Pointer: large}}}}}},
	}
	r.conclude()
	if r.Changes[0].Changes[0].Fields[0].Pointer != large {
		t.Error("the path of a change is shortened")
	}
	r.Changes = nil
	text, err := json.Marshal(r)
	if want := 6 * budget.ErrorText; err != nil || len(text) > want {
		t.Errorf("%v; the report has %d bytes, more than %d", err, len(text), want)
	}
}
