package e2e_test

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// sameCause is the text that commands print before the root cause.
const sameCause = "\n  Root cause\n    "

var (
	programs    = regexp.MustCompile(`(?:^|[ (])((?:flux|kubectl|git) [a-z-])`)
	placeholder = regexp.MustCompile(`<[a-z-]+>`)
)

// remedyCommand returns the command of a fix: the whole text, or the text after its last
// colon. A program name anywhere else is an error, because readers could also take it for
// a command.
func remedyCommand(t *testing.T, remedy string) (command string, ok bool) {
	t.Helper()
	at := programs.FindStringSubmatchIndex(remedy)
	if at == nil {
		return "", false
	}
	if begin := at[2]; begin == 0 || strings.HasSuffix(remedy[:begin], ": ") {
		return remedy[begin:], true
	}
	t.Errorf("the remedy %q has a command that it does not end with", remedy)
	return "", false
}

// execute runs the commands of the fixes as printed. Each must succeed, unless the
// failure lists it in fails.
func (c failure) execute(f *fixture, found finding) {
	f.t.Helper()
	fails := map[string]string{}
	for command, output := range c.fails {
		fails[c.expand(f, command)] = c.expand(f, output)
	}
	for _, remedy := range found.Remedies {
		command, ok := remedyCommand(f.t, remedy)
		attempt := strings.HasPrefix(command, "flux reconcile ")
		if !ok || attempt && c.once {
			continue
		}
		output, code := runRemedy(f, remedy, c.filled(f, command))
		reason, declared := fails[command]
		if attempt && c.broken {
			reason, declared = sameCause, true
		}
		delete(fails, command)
		switch {
		case !declared && code != 0:
			f.t.Errorf("the remedy %q ends with %d:\n%s", remedy, code, output)
		case declared && (code != 1 || !strings.Contains(output, reason)):
			f.t.Errorf("the remedy %q ends with %d and not with 1 and %q:\n%s", remedy, code, reason, output)
		case reason == sameCause:
			_, rest, _ := strings.Cut(output, sameCause)
			if root, _, _ := strings.Cut(rest, "\n"); root == "" || !strings.HasPrefix(found.Message, root) {
				f.t.Errorf("the remedy %q names another root cause than %q:\n%s", remedy, found.Message, output)
			}
		}
	}
	for command := range fails {
		f.t.Errorf("no remedy is %q:\n%s", command, strings.Join(found.Remedies, "\n"))
	}
}

// filled replaces the placeholders in a command with their values.
func (c failure) filled(f *fixture, command string) string {
	f.t.Helper()
	return placeholder.ReplaceAllStringFunc(command, func(name string) string {
		fill, ok := c.given[name]
		if !ok {
			f.t.Errorf("the failure has no value for %s of %q", name, command)
			return name
		}
		return fill(f)
	})
}

// value returns a fixed value, and fileWith the path of a file with the content.
func value(text string) func(*fixture) string { return func(*fixture) string { return text } }

func fileWith(content string) func(*fixture) string {
	return func(f *fixture) string { return tempFile(f.t, "value", content) }
}

// runRemedy runs the command of a fix, in a clone of the repository if the fix requires
// it, and returns its output and exit code.
func runRemedy(f *fixture, remedy, command string) (output string, code int) {
	f.t.Helper()
	dir := f.t.TempDir()
	if strings.Contains(remedy, "in a clone of the source") {
		dir = filepath.Join(dir, "clone")
		f.shell.run("git", "clone", "--quiet", f.git.url, dir)
	}
	stdout, stderr, err := f.shell.in(dir).try("sh", "-c", command)
	return stdout + stderr, exitCode(err)
}
