package root

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/test/support/testcluster"
	"github.com/fluxkit/flux/test/support/testdocs"
)

// pluginCommands are command lines of plugins in documents.
var pluginCommands = map[string]bool{"operator --help": true}

// TestCommandsInDocuments checks that each command line of flux in a code block of a document is one of
// flux, with flags that exist and a valid number of arguments.
func TestCommandsInDocuments(t *testing.T) {
	t.Parallel()
	root := testcluster.Root()
	files, err := testdocs.Files(root)
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	for _, file := range files {
		if strings.HasPrefix(filepath.ToSlash(file), "docs/cmd/") {
			continue // generated from the help, whose examples are checked
		}
		d := testdocs.Read(t, filepath.Join(root, file))
		for _, b := range d.Blocks {
			for _, words := range documentedLines(b) {
				checked++
				if err := documentedCommand(words); err != nil && !pluginCommands[strings.Join(words, " ")] {
					t.Errorf("%s:%d: flux %s: %v", file, b.Line, strings.Join(words, " "), err)
				}
			}
		}
	}
	if checked < 40 {
		t.Errorf("only %d command lines were found", checked)
	}
}

// beforeCommand is what may precede a command on its line: the prompt, the keys of a pipeline, variables.
var beforeCommand = regexp.MustCompile(`(?m)^(\s*(- )?(run: |\$ )?)([A-Z_]+=\S+ )*flux `)

var comment = regexp.MustCompile(`(?m)(^|\s)#\s.*$`)

// documentedLines returns the words of each command line of flux in a block.
func documentedLines(b testdocs.Block) [][]string {
	text := strings.NewReplacer("\\\n", " ", "&& flux ", "\nflux ", "; flux ", "\nflux ", "| flux ", "\nflux ").Replace(b.Text)
	text = comment.ReplaceAllString(text, "")
	switch b.Language {
	case "sh", "yaml":
	case "console":
		var commands []string
		for line := range strings.Lines(text) {
			if strings.HasPrefix(line, "$ ") {
				commands = append(commands, line)
			}
		}
		text = strings.Join(commands, "")
	default:
		return nil
	}
	return exampleLines(beforeCommand.ReplaceAllString(text, "flux "))
}

// documentedCommand returns what is wrong with a command line.
func documentedCommand(words []string) error {
	a := app.New(strings.NewReader(""), io.Discard, io.Discard, func(string) string { return "" }, time.Now)
	cmd, rest, err := NewRoot(a, nil).Find(words)
	if err != nil {
		return err
	}
	if err := cmd.ParseFlags(rest); err != nil {
		if errors.Is(err, pflag.ErrHelp) {
			return nil
		}
		return err
	}
	if cmd.DisableFlagParsing {
		return nil // the arguments are those of another program
	}
	args := cmd.Flags().Args()
	if cmd.HasSubCommands() && len(args) > 0 && !strings.Contains(args[0], "/") {
		return fmt.Errorf("unknown command %q", args[0])
	}
	return cmd.ValidateArgs(args)
}

// TestDocumentedLines checks how command lines are found, and that wrong ones are refused.
func TestDocumentedLines(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		language, text string
		commands       int
		wrong          string
	}{
		{"sh", "flux get all -A\n", 1, ""},
		{"sh", "flux get al -A\n", 1, "al"},
		{"sh", "flux get all --al\n", 1, "--al"},
		{"sh", "flux gett all\n", 1, "gett"},
		{"sh", "# flux gett all\nkubectl flux gett\n", 0, ""},
		{"sh", "flux get all \\\n  --al\n", 1, "--al"},
		{"sh", "A=b flux gett all && flux gett all | flux gett\n", 3, "gett"},
		{"sh", "eval \"$(flux sandbox env)\"\n", 1, ""},
		{"sh", "eval \"$(flux sandboxes env)\"\n", 1, "sandboxes"},
		{"sh", "flux suspend kustomization a > b\n", 1, ""},
		{"sh", "flux completion bash zsh\n", 1, "zsh"},
		{"sh", "flux get all # all of them\n", 1, ""},
		{"sh", "flux suspend Kustomization/app\n", 1, ""},
		{"console", "$ flux gett all\nflux gett all\n", 1, "gett"},
		{"yaml", "  - run: flux gett all\n  - flux gett\n", 2, "gett"},
		{"output", "flux gett all\n", 0, ""},
	} {
		lines := documentedLines(testdocs.Block{Language: c.language, Text: c.text})
		if len(lines) != c.commands {
			t.Errorf("%q has the commands %q", c.text, lines)
		}
		for _, words := range lines {
			err := documentedCommand(words)
			if (err == nil) != (c.wrong == "") || err != nil && !strings.Contains(err.Error(), c.wrong) {
				t.Errorf("%q: %v, want %q", words, err, c.wrong)
			}
		}
	}
}
