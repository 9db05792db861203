package printable

import (
	"io"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// markers lists the prefixes of CI system commands that may occur anywhere in a line: Azure Pipelines
// and older GitHub Actions commands, and TeamCity commands. All of them are case-insensitive.
var markers = []string{"##[", "##vso[", "##teamcity["}

// nameMax is the maximum length of a workflow command name. Commands with longer names are also escaped.
const nameMax = 256

// CommandWriter escapes CI system commands in human-readable text, because the CI runner parses the output of a job,
// and untrusted commands could set variables, masks and results. The first character of a command is replaced with
// its escape. See https://docs.github.com/en/actions/reference/workflows-and-actions/workflow-commands and
// https://learn.microsoft.com/en-us/azure/devops/pipelines/scripts/logging-commands.
type CommandWriter struct {
	w io.Writer

	mu sync.Mutex
	// held is the end of the text written so far if it may be the beginning of a command.
	held string
	// within is set after the first visible character of a line.
	within bool
}

// NewCommandWriter returns a writer to a stream, which Unwrap returns. Flush writes the held text.
func NewCommandWriter(w io.Writer) *CommandWriter { return &CommandWriter{w: w} }

// Commands escapes command markers in a part of a line.
func Commands(text string) string {
	var b strings.Builder
	w := &CommandWriter{w: &b, within: true}
	_ = w.pass(text, true) // a strings.Builder never fails
	return b.String()
}

// Unwrap returns the stream.
func (w *CommandWriter) Unwrap() io.Writer { return w.w }

// Write implements io.Writer.
func (w *CommandWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.pass(w.held+string(p), false); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Flush writes the text that is held because it may be the beginning of a command.
func (w *CommandWriter) Flush() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.pass(w.held, true)
}

// pass writes a text. Unless the text is complete, it holds back an end that may be the beginning of a command.
func (w *CommandWriter) pass(text string, complete bool) error {
	var b strings.Builder
	b.Grow(len(text))
	w.held = ""
	for len(text) > 0 {
		found := w.command(text)
		if found == maybe && !complete {
			w.held = text
			break
		}
		r, size := utf8.DecodeRuneInString(text)
		if found == yes {
			escape(&b, r)
		} else {
			b.WriteString(text[:size])
		}
		switch {
		case r == '\n' || r == '\r': // runners also treat a CR as the end of a line
			w.within = false
		case !unicode.IsSpace(r) && unicode.IsGraphic(r):
			w.within = true
		}
		text = text[size:]
	}
	_, err := io.WriteString(w.w, b.String())
	return err
}

// answer is the result of checking whether a text begins with a command.
type answer int

const (
	no    answer = iota
	maybe        // more text decides
	yes
)

// command reports whether a text begins with a command.
func (w *CommandWriter) command(text string) answer {
	switch {
	case text[0] == '#':
		return marked(text)
	case text[0] == ':' && !w.within:
		return workflow(text)
	case !w.within && !utf8.FullRuneInString(text):
		return maybe
	}
	return no
}

// marked reports whether a text begins with a marker.
func marked(text string) answer {
	found := no
	for _, marker := range markers {
		n := min(len(marker), len(text))
		switch {
		case !strings.EqualFold(text[:n], marker[:n]):
		case n == len(marker):
			return yes
		default:
			found = maybe
		}
	}
	return found
}

// workflow reports whether a line without leading white space begins with a workflow command of
// GitHub, Gitea or Forgejo: "::name::" or "::name parameters::", but not with an IPv6 address.
func workflow(text string) answer {
	name, ok := strings.CutPrefix(text, "::")
	if !ok {
		if len(text) == 1 {
			return maybe
		}
		return no
	}
	end := strings.IndexFunc(name, func(r rune) bool { return r == ':' || unicode.IsSpace(r) })
	switch {
	case end < 0 && len(name) > nameMax:
		return yes
	case end < 0:
		return maybe
	case end == 0:
		return no
	case name[end] == ':' && end+1 == len(name):
		return maybe
	case name[end] == ':' && name[end+1] != ':', name[end] == '\n', name[end] == '\r':
		return no
	case name[end] == ':':
		return yes
	}
	if first := rune(name[0]); !unicode.IsLetter(first) { // such as "::1 is the address"
		return no
	}
	return yes
}
