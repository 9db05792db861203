package create

import (
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/pkg/controllers"
)

// TestEveryKindHasABuilder checks that the builders match the rows of the catalog.
func TestEveryKindHasABuilder(t *testing.T) {
	t.Parallel()
	var rows, built []string
	for _, k := range controllers.Kinds {
		if k.Has(controllers.Create) {
			rows = append(rows, k.Kind)
		}
	}
	a := app.New(strings.NewReader(""), io.Discard, io.Discard, func(string) string { return "" }, time.Now)
	for _, b := range builders() {
		built = append(built, b.Kind)
		k, _ := controllers.FindKind(b.Kind)
		words := strings.Fields(k.Noun())
		cmd, rest, err := NewCommand(a).Find(words)
		if err != nil || len(rest) > 0 {
			t.Errorf("command %q not found", words)
		} else if cmd.Example == "" {
			t.Errorf("%s has no example", cmd.CommandPath())
		}
	}
	slices.Sort(rows)
	slices.Sort(built)
	if diff := cmp.Diff(rows, built); diff != "" {
		t.Errorf("rows with Create and builders (-rows +builders):\n%s", diff)
	}
}
