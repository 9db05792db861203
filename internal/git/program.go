package git

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/fluxkit/flux/internal/lazy"
	"github.com/fluxkit/flux/internal/secrets/redact"
)

// ErrNoGit is returned if an operation requires git and git is not installed.
var ErrNoGit = errors.New("git is required but was not found in PATH")

// gitWait is the time that git has to exit after an interrupt.
const gitWait = 5 * time.Second

// gitStall is the time after which git closes an idle HTTP connection, because its HTTP child
// process does not exit with git.
const gitStall = time.Minute

// program runs git in a repository.
type program struct{ at Location }

func (c *Clone) program() program { return program{c.at} }

// run runs git without its hooks and monitors. Git itself checks safe.directory.
func (p program) run(ctx context.Context, input io.Reader, arguments ...string) (string, error) {
	path, err := exec.LookPath("git")
	if err != nil {
		return "", ErrNoGit
	}
	always := []string{"--no-pager", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=" + os.DevNull, "-c", "gc.auto=0", "-c", "maintenance.auto=false"}
	cmd := exec.CommandContext(ctx, path, append(always, arguments...)...)
	cmd.Dir, cmd.Stdin = p.at.Directory, input
	cmd.Env = append(stall(ctx), p.environment(cmd.Environ(), slices.ContainsFunc(arguments, isRemote))...)
	// Git terminates its child processes on this signal. SIGINT is ignored in the background jobs of a shell.
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	separate(cmd)
	cmd.WaitDelay = gitWait
	var output, problems bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &problems
	err = cmd.Run()
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	if err != nil {
		command := arguments[0]
		if command == "-c" {
			command = arguments[2]
		}
		return "", &programError{command: command, text: causeIn(problems.String()), err: err}
	}
	return strings.TrimSpace(output.String()), nil
}

// isRemote reports whether a command of git connects to a remote.
func isRemote(command string) bool {
	return slices.Contains([]string{"fetch", "ls-remote", "push"}, command)
}

// stall returns environment variables that make git close an idle HTTP connection shortly after the deadline of ctx,
// so that flux reports the deadline. The user's own variables take precedence.
func stall(ctx context.Context) []string {
	wait := gitStall
	if deadline, ok := ctx.Deadline(); ok {
		wait = min(wait, time.Until(deadline)+2*time.Second) //nolint:forbidigo // a context has no other clock
	}
	return []string{"GIT_HTTP_LOW_SPEED_LIMIT=1", fmt.Sprintf("GIT_HTTP_LOW_SPEED_TIME=%d", max(1, int(wait.Seconds())))}
}

// environment returns the environment of git without traces, which write credentials to its output
// or to a file. Credentials in the environment are kept only for commands that fetch, because the
// user's credential helpers read them.
func (p program) environment(all []string, fetches bool) []string {
	kept := slices.DeleteFunc(slices.Clone(all), func(entry string) bool {
		name, value, _ := strings.Cut(entry, "=")
		switch {
		case strings.HasPrefix(name, "GIT_TRACE"), name == "GIT_CURL_VERBOSE":
			return true
		case name == "GIT_DIR", name == "GIT_WORK_TREE":
			return p.at.GitDir == "" // the Directory of the location selects the repository
		}
		return !fetches && (redact.Named(name) || strings.Contains(value, "://"))
	})
	return append(kept, "GIT_TERMINAL_PROMPT=0", "GIT_OPTIONAL_LOCKS=0", "GIT_ALLOW_PROTOCOL=https:http:ssh:git:file", "LC_ALL=C")
}

// programError is returned if git fails.
type programError struct {
	command, text string
	err           error
}

func (e *programError) Error() string {
	if e.text == "" {
		return fmt.Sprintf("git %s: %s", e.command, e.err)
	}
	return fmt.Sprintf("git %s: %s", e.command, e.text)
}

// Unwrap returns the error of the process.
func (e *programError) Unwrap() error { return e.err }

// consequences matches output lines of git that only report the end of a connection or give
// general advice. The cause is in the lines before them, from ssh, curl or the server.
var consequences = lazy.Regexp(`^(Could not read from remote repository\.|Please make sure you have the correct access rights|and the repository exists\.|` +
	`protocol error: bad pack header|expected flush after ref listing|[0-9]+ bytes of body are still expected|early EOF|index-pack failed|` +
	`the remote end hung up( unexpectedly| upon initial contact)?|fetch-pack: (unexpected disconnect while reading sideband packet|invalid index-pack output)|` +
	`remote: .*|[Ww]arning: .*|)$`)

// causeIn returns the line of git's output that contains the cause, without credentials: the
// last line that does not match consequences.
func causeIn(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	for i, line := range lines {
		lines[i] = strings.TrimPrefix(strings.TrimPrefix(strings.TrimSpace(line), "fatal: "), "error: ")
	}
	for _, line := range slices.Backward(lines) {
		if !consequences().MatchString(line) {
			return redact.Text(line)
		}
	}
	return redact.Text(lines[0])
}
