package root

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/test/support/testcluster"
)

// recordedCommand is a command of Flux 2.9, as test/compat/commands.json has it.
type recordedCommand struct {
	Command string         `json:"command"`
	Aliases []string       `json:"aliases"`
	Flags   []recordedFlag `json:"flags"`
}

type recordedFlag struct {
	Name        string `json:"name"`
	Short       string `json:"short"`
	Type        string `json:"type"`
	Default     string `json:"default"`
	NoOptDefVal string `json:"no_opt_default"`
	Persistent  bool   `json:"inherited_by_subcommands"`
}

// TestContract compares the command tree with that of Flux 2.9: every command
// word, alias and flag, with shorthand, type, default and reach. What differs
// must have a row in docs/compat.md.
func TestContract(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile(filepath.Join(testcluster.Root(), "test", "compat", "commands.json"))
	if err != nil {
		t.Fatal(err)
	}
	var recorded []recordedCommand
	if err := json.Unmarshal(data, &recorded); err != nil {
		t.Fatal(err)
	}
	a := app.New(strings.NewReader(""), io.Discard, io.Discard, func(string) string { return "" }, time.Now)
	root := NewRoot(a, nil)
	documented := documentedDifferences(t)
	var words, aliases, flags, same, differ int
	check := func(what, difference string) {
		reason, expected := documented[what]
		delete(documented, what)
		switch {
		case difference == "" && expected:
			t.Errorf("%s no longer differs: remove its row from docs/compat.md", what)
		case difference == "":
			same++
		case expected:
			t.Logf("%s differs as documented: %s: %s", what, difference, reason)
			differ++
		default:
			t.Errorf("%s: %s", what, difference)
		}
	}
	for _, want := range recorded {
		words++
		aliases += len(want.Aliases)
		flags += len(want.Flags)
		cmd, rest, err := root.Find(strings.Fields(want.Command)[1:])
		if err != nil || len(rest) > 0 || cmd.CommandPath() != want.Command {
			check(want.Command, "does not exist")
			continue
		}
		check(want.Command, "")
		for _, alias := range want.Aliases {
			check(want.Command+" alias "+alias, compareAlias(cmd, alias))
		}
		for _, flag := range want.Flags {
			check(want.Command+" --"+flag.Name, compareFlag(cmd, flag))
		}
	}
	for what := range documented {
		t.Errorf("docs/compat.md lists %s, which was not recorded", what)
	}
	t.Logf("%d of %d are the same (%d command words, %d aliases, %d flags), %d differ as documented",
		same, words+aliases+flags, words, aliases, flags, differ)
}

func compareAlias(cmd *cobra.Command, alias string) string {
	if cmd.Name() == alias || cmd.HasAlias(alias) {
		return ""
	}
	return "does not exist"
}

// compareFlag returns the differences of a flag from the recorded one.
func compareFlag(cmd *cobra.Command, want recordedFlag) string {
	f := cmd.Flags().Lookup(want.Name)
	if f == nil || want.Persistent {
		// A persistent flag may be inherited from a parent command.
		if reaching := cmd.PersistentFlags().Lookup(want.Name); reaching != nil {
			f = reaching
		} else if reaching := cmd.InheritedFlags().Lookup(want.Name); reaching != nil {
			f = reaching
		} else if cmd.HasSubCommands() {
			f = nil
		}
	}
	if f == nil {
		return "does not exist"
	}
	var differences []string
	for _, part := range []struct{ what, want, got string }{
		{"shorthand", want.Short, f.Shorthand},
		{"type", valueType(want.Type), valueType(f.Value.Type())},
		{"default", want.Default, f.DefValue},
		{"value without an argument", want.NoOptDefVal, f.NoOptDefVal},
	} {
		if part.want != part.got {
			differences = append(differences, fmt.Sprintf("%s was %q, is %q", part.what, part.want, part.got))
		}
	}
	return strings.Join(differences, "; ")
}

// valueType returns the type of the values of a flag. Custom types accept
// strings; their names appear only in help.
func valueType(name string) string {
	if slices.Contains([]string{"bool", "duration", "float32", "int", "int64", "stringArray", "stringSlice", "stringToString"}, name) {
		return name
	}
	return "string"
}

// treeRow matches a row of docs/compat.md for a command, an alias or a flag.
var treeRow = regexp.MustCompile("(?m)^\\| tree: `(flux[^`]*)` \\| (.+?) \\| (.+?) \\| (.+?) \\|$")

func documentedDifferences(t *testing.T) map[string]string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(testcluster.Root(), "docs", "compat.md"))
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]string{}
	for _, m := range treeRow.FindAllStringSubmatch(string(data), -1) {
		rows[m[1]] = m[4]
	}
	return rows
}
