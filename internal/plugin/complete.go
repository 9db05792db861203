package plugin

import (
	"bytes"
	"context"
	"errors"
	"os/exec"
	"strings"
	"time"

	"github.com/fluxkit/flux/internal/budget"
	"github.com/fluxkit/flux/internal/lazy"
	"github.com/fluxkit/flux/internal/terminal/printable"
)

// completionMax is the maximum size of completion output.
const completionMax = 1 << 20

// directive matches the last line of a response in cobra's completion protocol.
var directive = lazy.Regexp(`^:[0-9]+$`)

// Complete runs the hidden completion command of a plugin, as cobra defines it, and returns its
// output: one word per line, followed by a directive. It returns false if the plugin fails,
// exceeds the context's deadline or prints a different format.
func Complete(ctx context.Context, path, command string, args, env []string) (string, bool) {
	var out bytes.Buffer
	cmd := exec.CommandContext(ctx, path, append([]string{command}, args...)...)
	cmd.Env = env
	cmd.Stdout = budget.Writer(&out, completionMax, errors.New("too much output")) // an error closes the pipe, which makes the plugin exit
	// Child processes of the plugin may keep the pipe open after the plugin has exited.
	cmd.WaitDelay = 500 * time.Millisecond
	if err := cmd.Run(); err != nil && !errors.Is(err, exec.ErrWaitDelay) {
		return "", false
	}
	lines := strings.Split(strings.TrimRight(out.String(), "\n"), "\n")
	if !directive().MatchString(lines[len(lines)-1]) {
		return "", false
	}
	for i := range lines {
		lines[i] = printableLine(lines[i])
	}
	return strings.Join(lines, "\n") + "\n", true
}

// printableLine escapes control characters, except the tab between a word and its description.
func printableLine(line string) string {
	word, description, described := strings.Cut(line, "\t")
	if !described {
		return printable.Line(word)
	}
	return printable.Line(word) + "\t" + printable.Line(description)
}
