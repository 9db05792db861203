package script_test

import (
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/cmd/flux/internal/root"
)

// matrixVerbs are the verbs that need, for each kind, a script with a success and
// one with a missing object.
var matrixVerbs = []string{"delete", "export", "get", "history", "reconcile", "resume", "suspend", "tree", "wait"}

// TestEveryCellHasAScript fails if a command of verbs × kinds has no script that runs
// it with success, or none that names an object that does not exist.
func TestEveryCellHasAScript(t *testing.T) {
	t.Parallel()
	lines := scriptLines(t)
	root := root.NewRoot(app.New(strings.NewReader(""), io.Discard, io.Discard, func(string) string { return "" }, time.Now), nil)
	for _, verb := range matrixVerbs {
		cmd, _, err := root.Find([]string{verb})
		if err != nil {
			t.Fatal(err)
		}
		for _, cell := range leaves(cmd) {
			if cell.Name() == "all" {
				continue
			}
			for code, what := range map[string]string{"0": "a success", "1": "a missing object"} {
				if !ran(lines, code, cell) {
					t.Errorf("no script shows %s of '%s'", what, cell.CommandPath())
				}
			}
		}
	}
}

func leaves(cmd *cobra.Command) []*cobra.Command {
	if !cmd.HasSubCommands() {
		return []*cobra.Command{cmd}
	}
	var all []*cobra.Command
	for _, child := range cmd.Commands() {
		all = append(all, leaves(child)...)
	}
	return all
}

// ran reports whether a script runs the command by any of its names with that exit code.
func ran(lines []string, code string, cmd *cobra.Command) bool {
	names := "(" + strings.Join(append([]string{cmd.Name()}, cmd.Aliases...), "|") + ")"
	path := names
	for p := cmd.Parent(); p.HasParent(); p = p.Parent() {
		path = "(" + strings.Join(append([]string{p.Name()}, p.Aliases...), "|") + ") " + path
	}
	missing := ""
	if code == "1" {
		missing = ".* missing"
	}
	pattern := regexp.MustCompile(`^exits ` + code + ` flux ` + path + `\b` + missing)
	for _, line := range lines {
		if pattern.MatchString(line) && !strings.Contains(line, "--help") {
			return true
		}
	}
	return false
}

func scriptLines(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", "*", "*", "*.txtar"))
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		script, _, _ := strings.Cut(string(data), "\n-- ")
		lines = append(lines, strings.Split(script, "\n")...)
	}
	return lines
}
