package root

import (
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
)

// TestSubcommands checks that a command that is built alone equals the one of
// the complete command tree.
func TestSubcommands(t *testing.T) {
	t.Parallel()
	a := app.New(strings.NewReader(""), io.Discard, io.Discard, func(string) string { return "" }, time.Now)
	var names []string
	for _, cmd := range subcommands(a, nil) {
		names = append(names, cmd.Name())
		alone := subcommands(a, []string{cmd.Name(), "--help"})
		if cmd.Name() == "docgen" || cmd.Name() == "exit-codes" { // describe all commands
			continue
		}
		if len(alone) != 1 || alone[0].UsageString() != cmd.UsageString() {
			t.Errorf("%s: %d commands or a different usage if built alone", cmd.Name(), len(alone))
		}
	}
	if cmds := subcommands(a, []string{"--version"}); len(cmds) > 0 {
		t.Errorf("%d commands for --version", len(cmds))
	}
	for _, line := range [][]string{{"docgen"}, {"--version", "get"}, {"--context=here", "get"}, {"no-such"}, {"help", "get"}, {"__complete", "get", ""}} {
		var found []string
		for _, cmd := range subcommands(a, line) {
			found = append(found, cmd.Name())
		}
		if diff := cmp.Diff(names, found); diff != "" {
			t.Errorf("%q: %s", line, diff)
		}
	}
}
