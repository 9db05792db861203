package snapshot

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
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/fluxkit/flux/internal/redact"
)

// ErrNoGit is returned for what only the program git can do if it is not installed.
var ErrNoGit = errors.New("the program git is required for this, and is not in PATH")

// gitWait is how long git may take to end after an interrupt.
const gitWait = 5 * time.Second

// program is git, run in a repository.
type program struct{ at Location }

func (r *Repository) program() program { return program{r.at} }

// run runs git without its hooks and monitors. Git itself checks safe.directory.
func (p program) run(ctx context.Context, input io.Reader, arguments ...string) (string, error) {
	path, err := exec.LookPath("git")
	if err != nil {
		return "", ErrNoGit
	}
	always := []string{"--no-pager", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=" + os.DevNull, "-c", "gc.auto=0", "-c", "maintenance.auto=false"}
	cmd := exec.CommandContext(ctx, path, append(always, arguments...)...)
	cmd.Dir, cmd.Stdin = p.at.Folder, input
	cmd.Env = append(cmd.Environ(), "GIT_TERMINAL_PROMPT=0", "GIT_OPTIONAL_LOCKS=0", "GIT_ALLOW_PROTOCOL=https:http:ssh:git:file", "LC_ALL=C")
	if p.at.GitDir == "" {
		// The repository is the one that was opened, not that of the environment.
		cmd.Env = without(cmd.Env, "GIT_DIR", "GIT_WORK_TREE")
	}
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
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
		return "", &programError{command: command, text: lastLine(problems.String()), err: err}
	}
	return strings.TrimSpace(output.String()), nil
}

// without returns the environment without variables.
func without(environment []string, names ...string) []string {
	var kept []string
	for _, entry := range environment {
		if name, _, _ := strings.Cut(entry, "="); !slices.Contains(names, name) {
			kept = append(kept, entry)
		}
	}
	return kept
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

// Unwrap returns how git ended.
func (e *programError) Unwrap() error { return e.err }

// lastLine returns the last line of what git printed, which has the cause, without credentials.
func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	line := strings.TrimPrefix(strings.TrimPrefix(lines[len(lines)-1], "fatal: "), "error: ")
	return redact.Text(line)
}

// parse resolves what only git can resolve, such as dates and the previous branch.
func (p program) parse(ctx context.Context, revision string) (plumbing.Hash, error) {
	found, err := p.run(ctx, nil, "rev-parse", "--verify", "--quiet", "--end-of-options", revision+"^{commit}")
	if err != nil {
		return plumbing.ZeroHash, err
	}
	return plumbing.NewHash(found), nil
}
