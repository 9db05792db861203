package cli

import (
	"bytes"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/fluxkit/flux/internal/cli/app"
	"github.com/fluxkit/flux/internal/cli/plugin"
)

// TestPluginsCostNothing: only what needs plugins looks for them.
func TestPluginsCostNothing(t *testing.T) {
	t.Parallel()
	for line, looks := range map[string]bool{
		"--version": false, "version --client": false, "get --help": false, "help get": false, "envsubst --help": false,
		"--context=x version --client": false, "-n x get --help": false, "__complete get ": false, "completion bash": false,
		"--help": true, "": true, "help": true, "no-such-command": true, "__complete pl": true,
	} {
		var asked []string
		var out bytes.Buffer
		env := func(name string) string {
			asked = append(asked, name)
			return ""
		}
		a := app.New(strings.NewReader(""), &out, io.Discard, env, time.Now)
		Run(t.Context(), a, strings.Split(line, " "))
		if got := slices.Contains(asked, plugin.PluginFolderVariable); got != looks {
			t.Errorf("flux %s looks for plugins: %v, want %v", line, got, looks)
		}
	}
}

// TestEveryCommandIsReserved: no plugin can shadow a word of flux.
func TestEveryCommandIsReserved(t *testing.T) {
	t.Parallel()
	a := app.New(strings.NewReader(""), io.Discard, io.Discard, func(string) string { return "" }, time.Now)
	root := NewRoot(a, nil)
	root.InitDefaultHelpCmd()
	for _, cmd := range root.Commands() {
		for _, word := range append([]string{cmd.Name()}, cmd.Aliases...) {
			if !plugin.ReservedCommand(a, word) {
				t.Errorf("a plugin can be named %s", word)
			}
		}
	}
	for _, word := range []string{"helm", "sandbox", "help", cobra.ShellCompRequestCmd, cobra.ShellCompNoDescRequestCmd} {
		if !plugin.ReservedCommand(a, word) {
			t.Errorf("a plugin can be named %s", word)
		}
	}
	for _, word := range []string{"operator", "helm-diff", "local"} {
		if plugin.ReservedCommand(a, word) {
			t.Errorf("no plugin can be named %s", word)
		}
	}
}
