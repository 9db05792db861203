// Package cireport writes reports that CI systems read: annotations of GitHub Actions, SARIF, and JUnit.
package cireport

import (
	"fmt"
	"strings"

	"github.com/fluxkit/flux/internal/terminal/printable"
)

// Annotation is a message in the summary of a workflow run.
type Annotation struct {
	// Level is error, warning or notice.
	Level string
	Title string
	// File is the affected file, or "". Line is 0 if unknown.
	File string
	Line int
	Text string
}

// String returns the workflow command of GitHub Actions, which Gitea and Forgejo also support:
// https://docs.github.com/en/actions/reference/workflows-and-actions/workflow-commands.
func (a Annotation) String() string {
	file := ""
	if a.File != "" {
		file = "file=" + property(a.File) + ","
		if a.Line > 0 {
			file += fmt.Sprintf("line=%d,", a.Line)
		}
	}
	return fmt.Sprintf("::%s %stitle=%s::%s\n", a.Level, file, property(a.Title), message(a.Text))
}

// message escapes the text of a workflow command, because CI systems may also print the text.
func message(s string) string {
	return strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A").Replace(printable.Commands(printable.Line(s)))
}

// property escapes the value of a property of a workflow command.
func property(s string) string {
	return strings.NewReplacer(":", "%3A", ",", "%2C").Replace(message(s))
}
