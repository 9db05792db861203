package output_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fluxkit/flux/internal/terminal/output"
)

func TestTable(t *testing.T) {
	t.Parallel()
	table := output.Table{Headers: []string{"NAME", "READY"}, Rows: [][]string{{"a", "True"}, {"größer", "Unknown"}}}
	for name, test := range map[string]struct {
		headers bool
		want    string
	}{
		"with headers":    {true, "NAME  \tREADY   \na     \tTrue   \t\ngrößer\tUnknown\t\n"},
		"without headers": {false, "a     \tTrue   \t\ngrößer\tUnknown\t\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var b strings.Builder
			if err := table.Write(&b, test.headers); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, b.String()); diff != "" {
				t.Error(diff)
			}
		})
	}
}
