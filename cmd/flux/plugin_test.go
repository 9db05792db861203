package main

import (
	"bytes"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
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
		a := newApp(strings.NewReader(""), &out, io.Discard, env, time.Now)
		a.run(t.Context(), strings.Split(line, " "))
		if got := slices.Contains(asked, pluginFolderVariable); got != looks {
			t.Errorf("flux %s looks for plugins: %v, want %v", line, got, looks)
		}
	}
}

// TestEveryCommandIsReserved: no plugin can shadow a word of flux.
func TestEveryCommandIsReserved(t *testing.T) {
	t.Parallel()
	a := newApp(strings.NewReader(""), io.Discard, io.Discard, func(string) string { return "" }, time.Now)
	root := newRoot(a, nil)
	root.InitDefaultHelpCmd()
	for _, cmd := range root.Commands() {
		for _, word := range append([]string{cmd.Name()}, cmd.Aliases...) {
			if !reservedCommand(word) {
				t.Errorf("a plugin can be named %s", word)
			}
		}
	}
	for _, word := range []string{"helm", "sandbox", "help", cobra.ShellCompRequestCmd, cobra.ShellCompNoDescRequestCmd} {
		if !reservedCommand(word) {
			t.Errorf("a plugin can be named %s", word)
		}
	}
	for _, word := range []string{"operator", "helm-diff", "local"} {
		if reservedCommand(word) {
			t.Errorf("no plugin can be named %s", word)
		}
	}
}

func TestFirstWord(t *testing.T) {
	t.Parallel()
	a := newApp(strings.NewReader(""), io.Discard, io.Discard, func(string) string { return "" }, time.Now)
	flags := newRoot(a, nil).PersistentFlags()
	for line, want := range map[string]string{
		"operator get": "operator", "--context x operator": "operator", "--context=x operator": "operator",
		"-n x operator": "operator", "-nx operator": "operator", "--verbose operator": "operator",
		"--unknown operator": "operator", "-": "-", "-n": "", "--context": "", "-- operator": "", "": "",
	} {
		args := strings.Fields(line)
		got := ""
		if i := firstWord(flags, args); i < len(args) {
			got = args[i]
		}
		if got != want {
			t.Errorf("%q: %q, want %q", line, got, want)
		}
	}
}
