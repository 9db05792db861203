package plugin

import (
	"bytes"
	"context"
	"errors"
	"os/exec"
	"regexp"
	"strings"
	"time"

	"github.com/fluxkit/flux/internal/printable"
)

// completionMax bounds what a plugin offers.
const completionMax = 1 << 20

// directive is the last line of what cobra's completion protocol answers.
var directive = regexp.MustCompile(`^:[0-9]+$`)

// Complete asks a plugin for the words that complete its arguments, by the
// protocol of cobra's hidden command: words, one a line, and a directive at the
// end. An answer of another form, a failure and one that does not come in time
// are no answer.
func Complete(ctx context.Context, path, command string, args, env []string) (string, bool) {
	var out bytes.Buffer
	cmd := exec.CommandContext(ctx, path, append([]string{command}, args...)...)
	cmd.Env = env
	cmd.Stdout = &limitedBuffer{&out}
	// What the plugin has started may keep the pipe open when the plugin is killed.
	cmd.WaitDelay = 100 * time.Millisecond
	if err := cmd.Run(); err != nil {
		return "", false
	}
	lines := strings.Split(strings.TrimRight(out.String(), "\n"), "\n")
	if !directive.MatchString(lines[len(lines)-1]) {
		return "", false
	}
	for i := range lines {
		lines[i] = printableLine(lines[i])
	}
	return strings.Join(lines, "\n") + "\n", true
}

// printableLine keeps the tab between a word and its description.
func printableLine(line string) string {
	word, description, described := strings.Cut(line, "\t")
	if !described {
		return printable.Line(word)
	}
	return printable.Line(word) + "\t" + printable.Line(description)
}

type limitedBuffer struct{ to *bytes.Buffer }

// Write implements io.Writer; an error ends the plugin by a closed pipe.
func (l *limitedBuffer) Write(p []byte) (int, error) {
	if l.to.Len()+len(p) > completionMax {
		return 0, errors.New("too much output")
	}
	return l.to.Write(p)
}
