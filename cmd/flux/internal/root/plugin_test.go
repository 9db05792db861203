package root

import (
	"bytes"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/cmd/flux/internal/plugin"
)

// TestPluginLookup checks that only unknown commands, help and completion look
// for plugins.
func TestPluginLookup(t *testing.T) {
	t.Parallel()
	for line, looks := range map[string]bool{
		"--version": false, "version --client": false, "get --help": false, "help get": false, "envsubst --help": false,
		"--context=x version --client": false, "-n x get --help": false, "__complete get ": false, "completion bash": false,
		"--help": true, "": true, "help": true, "no-such-command": true, "__complete pl": true,
	} {
		var variables []string
		var out bytes.Buffer
		env := func(name string) string {
			variables = append(variables, name)
			return ""
		}
		a := app.New(strings.NewReader(""), &out, io.Discard, env, time.Now)
		Run(t.Context(), a, strings.Split(line, " "))
		if got := slices.Contains(variables, "FLUXCD_PLUGINS"); got != looks {
			t.Errorf("flux %s looks for plugins: %v, want %v", line, got, looks)
		}
	}
}

// TestEveryCommandIsReserved checks that no plugin can replace a built-in
// command.
func TestEveryCommandIsReserved(t *testing.T) {
	t.Parallel()
	a := app.New(strings.NewReader(""), io.Discard, io.Discard, func(string) string { return "" }, time.Now)
	root := NewRoot(a, nil)
	root.InitDefaultHelpCmd()
	for _, cmd := range root.Commands() {
		for _, word := range append([]string{cmd.Name()}, cmd.Aliases...) {
			if !plugin.ReservedCommand(a, word) {
				t.Errorf("%s is not reserved", word)
			}
		}
	}
	for _, word := range []string{"helper", "sandbox", "help", cobra.ShellCompRequestCmd, cobra.ShellCompNoDescRequestCmd} {
		if !plugin.ReservedCommand(a, word) {
			t.Errorf("%s is not reserved", word)
		}
	}
	for _, word := range []string{"operator", "helm-diff", "local"} {
		if plugin.ReservedCommand(a, word) {
			t.Errorf("%s is reserved", word)
		}
	}
}
