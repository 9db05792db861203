package e2e_test

import (
	"context"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// sameCause is the text that commands print before the root cause.
const sameCause = "\n  Root cause\n    "

var (
	programs    = regexp.MustCompile(`(?:^|[ (])((?:flux|kubectl|git) [a-z-])`)
	placeholder = regexp.MustCompile(`<[a-z-]+>`)
)

// commandOf returns the command of a remedy: all of it, or the part after its last
// colon. A program name anywhere else is an error, since a reader would take it for a
// command, too.
func (s *story) commandOf(remedy string) (command string, ok bool) {
	s.Helper()
	at := programs.FindStringSubmatchIndex(remedy)
	if at == nil {
		return "", false
	}
	if begin := at[2]; begin == 0 || strings.HasSuffix(remedy[:begin], ": ") {
		return remedy[begin:], true
	}
	s.Errorf("the remedy %q has a command that it does not end with", remedy)
	return "", false
}

// executes runs the commands of the remedies as printed. Each must succeed, unless
// the row lists its failure.
func (row causeRow) executes(s *story, found finding) {
	s.Helper()
	fails := map[string]string{}
	for command, output := range row.fails {
		fails[row.in(s, command)] = row.in(s, output)
	}
	for _, remedy := range found.Remedies {
		command, ok := s.commandOf(remedy)
		attempt := strings.HasPrefix(command, "flux reconcile ")
		if !ok || attempt && row.once {
			continue
		}
		output, code := s.shell(remedy, row.filled(s, command))
		reason, declared := fails[command]
		if attempt && row.broken {
			reason, declared = sameCause, true
		}
		delete(fails, command)
		switch {
		case !declared && code != 0:
			s.Errorf("the remedy %q ends with %d:\n%s", remedy, code, output)
		case declared && (code != 1 || !strings.Contains(output, reason)):
			s.Errorf("the remedy %q ends with %d and not with 1 and %q:\n%s", remedy, code, reason, output)
		case reason == sameCause:
			_, rest, _ := strings.Cut(output, sameCause)
			if root, _, _ := strings.Cut(rest, "\n"); root == "" || !strings.HasPrefix(found.Message, root) {
				s.Errorf("the remedy %q names another root cause than %q:\n%s", remedy, found.Message, output)
			}
		}
	}
	for command := range fails {
		s.Errorf("no remedy is %q:\n%s", command, strings.Join(found.Remedies, "\n"))
	}
}

// filled replaces the placeholders of a command by their values.
func (row causeRow) filled(s *story, command string) string {
	s.Helper()
	return placeholder.ReplaceAllStringFunc(command, func(name string) string {
		fill, ok := row.given[name]
		if !ok {
			s.Errorf("the row has no value for %s of %q", name, command)
			return name
		}
		return fill(s)
	})
}

// value returns a fixed value, and fileWith the path of a file with the content.
func value(text string) func(*story) string { return func(*story) string { return text } }

func fileWith(content string) func(*story) string {
	return func(s *story) string { return s.write("value", content) }
}

// shell runs the command of a remedy, in a clone of the repository if the remedy
// requires it, and returns its output and exit code.
func (s *story) shell(remedy, command string) (output string, code int) {
	s.Helper()
	dir := s.TempDir()
	if strings.Contains(remedy, "in a clone of the source") {
		dir = filepath.Join(dir, "clone")
		if out, err := exec.CommandContext(s.Context(), "git", "clone", "--quiet", s.url, dir).CombinedOutput(); err != nil {
			s.Fatalf("cloning: %v\n%s", err, out)
		}
	}
	ctx, cancel := context.WithTimeout(s.Context(), stepTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-c", command)
	cmd.Dir, cmd.Env = dir, s.env
	out, err := cmd.CombinedOutput()
	return string(out), exitCode(err)
}
