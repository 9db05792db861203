package root

import (
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
)

// everyCommand calls visit for each command that a user can run, without the root.
func everyCommand(visit func(*cobra.Command)) {
	a := app.New(strings.NewReader(""), io.Discard, io.Discard, func(string) string { return "" }, time.Now)
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		for _, c := range cmd.Commands() {
			if !isTopic(c) {
				visit(c)
				walk(c)
			}
		}
	}
	walk(NewRoot(a, nil))
}

// TestHelpFits checks that the lines of each help have 80 columns at most. Examples
// are commands to copy and are not wrapped, nor are single words.
func TestHelpFits(t *testing.T) {
	t.Parallel()
	everyCommand(func(cmd *cobra.Command) {
		text := usage(cmd, helpWidth)
		_, rest, _ := strings.Cut(text, cmd.Example)
		for _, line := range strings.Split(wrapped(cmd.Long, helpWidth)+"\n"+rest, "\n") {
			if utf8.RuneCountInString(line) > helpWidth && strings.Contains(strings.TrimSpace(line), " ") {
				t.Errorf("%s: %d columns: %s", cmd.CommandPath(), utf8.RuneCountInString(line), line)
			}
		}
	})
}

// helpLines is the number of lines that a help may have before its usage.
const helpLines = 25

// TestHelpLength checks that each help describes the command in few lines before its usage. Details are in topics.
func TestHelpLength(t *testing.T) {
	t.Parallel()
	everyCommand(func(cmd *cobra.Command) {
		var help strings.Builder
		cmd.SetOut(&help)
		if err := cmd.Help(); err != nil {
			t.Fatal(err)
		}
		text, _, found := strings.Cut(help.String(), "\n\nUsage:\n")
		if lines := strings.Count(text, "\n") + 1; !found || lines > helpLines {
			t.Errorf("%s: %d lines before the usage, at most %d are allowed:\n%s", cmd.CommandPath(), lines, helpLines, text)
		}
	})
}

// TestFlagUsages checks that the help of a flag has its allowed values, and its
// default once.
func TestFlagUsages(t *testing.T) {
	t.Parallel()
	everyCommand(func(cmd *cobra.Command) {
		ownFlags(cmd).VisitAll(func(f *pflag.Flag) {
			set := pflag.NewFlagSet("", pflag.ContinueOnError)
			set.AddFlag(f)
			if shown := set.FlagUsages(); strings.Count(shown, "(default") > 1 {
				t.Errorf("%s: two defaults: %s", cmd.CommandPath(), shown)
			}
			if c, ok := f.Value.(interface{ Choices() []string }); ok {
				for _, value := range c.Choices() {
					if !strings.Contains(f.Usage, value) {
						t.Errorf("%s --%s: the help %q lacks %q", cmd.CommandPath(), f.Name, f.Usage, value)
					}
				}
			}
		})
	})
}

// TestFlagGroups checks that the help of a command lists each flag once, in its
// group, and that each row of the groups is used.
func TestFlagGroups(t *testing.T) {
	t.Parallel()
	unused := flagGroups()
	everyCommand(func(cmd *cobra.Command) {
		lines := strings.Split(usage(cmd, helpWidth), "\n")
		ownFlags(cmd).VisitAll(func(f *pflag.Flag) {
			words := strings.Fields(cmd.CommandPath())[1:]
			for n := range len(words) + 1 {
				delete(unused, strings.Join(append(words[:n:n], "--"+f.Name), " "))
			}
			if f.Hidden || f.Deprecated != "" {
				return
			}
			line := regexp.MustCompile(`^  (    |-\w, )--` + f.Name + `( |$)`)
			listed := line.MatchString
			i := slices.IndexFunc(lines, listed)
			if i < 0 || slices.ContainsFunc(lines[i+1:], listed) {
				t.Errorf("%s --%s: not listed once", cmd.CommandPath(), f.Name)
				return
			}
			for i >= 0 && strings.HasPrefix(lines[i], " ") {
				i--
			}
			if want := string(groupOf(cmd, f.Name)) + ":"; lines[i] != want {
				t.Errorf("%s --%s is listed under %q, want %q", cmd.CommandPath(), f.Name, lines[i], want)
			}
		})
	})
	for row := range unused {
		t.Errorf("no command has the flag of the row %q", row)
	}
}

func TestWrapped(t *testing.T) {
	t.Parallel()
	const text = "Some words that are in\none paragraph.\n\n  indented lines are kept as they are\n\nshort"
	const want = "Some words\nthat are in\none\nparagraph.\n\n  indented lines are kept as they are\n\nshort"
	if got := wrapped(text, 12); got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
	if got := wrapped(text, helpWidth); got != text {
		t.Errorf("text that fits is changed:\n%s", got)
	}
}
