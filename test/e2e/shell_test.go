package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fluxkit/flux/test/support/testcluster"
	"github.com/fluxkit/flux/test/support/testlimit"
)

// waitTime is the maximum time of every wait; the machine may be busy.
const waitTime = testlimit.Wait

// ownTime is the timeout that programs get: they exit with a reason before they are killed.
const ownTime = waitTime - 30*time.Second

// waitFlag is ownTime for programs without an environment variable for it.
var waitFlag = "--timeout=" + ownTime.String()

// sandboxWaits is the maximum number of waits of a command that starts sandboxes itself.
const sandboxWaits = 4

// shell runs programs with an environment in a directory, or in the test directory if it is "".
type shell struct {
	t   *testing.T
	env []string
	dir string
	// limit is the maximum time of a command.
	limit time.Duration
}

// newUser returns a shell without a cluster. In its PATH, flux, its helper and flux-sandbox are in one directory.
func newUser(t *testing.T) *shell {
	t.Helper()
	testcluster.Programs(t) // before other tests wait for the slot
	sandboxes.Acquire(t, testcluster.Started)
	sh := newShell(t, "KUBECONFIG="+os.DevNull)
	sh.limit = sandboxWaits * waitTime
	return sh
}

// newShell returns a shell with flux and kubectl, an empty home directory and further variables.
func newShell(t *testing.T, env ...string) *shell {
	t.Helper()
	path := testcluster.Programs(t) + string(os.PathListSeparator) + os.Getenv("PATH")
	return &shell{t: t, limit: waitTime, env: slices.Concat(os.Environ(), []string{
		"HOME=" + t.TempDir(), "GIT_CONFIG_NOSYSTEM=1", "PATH=" + path,
		"GIT_AUTHOR_NAME=dev", "GIT_AUTHOR_EMAIL=dev@example.com", "GIT_COMMITTER_NAME=dev", "GIT_COMMITTER_EMAIL=dev@example.com",
	}, env)}
}

// as returns the shell for a subtest.
func (sh *shell) as(t *testing.T) *shell { return &shell{t, sh.env, sh.dir, sh.limit} }

// in returns the shell in another directory.
func (sh *shell) in(dir string) *shell { return &shell{sh.t, sh.env, dir, sh.limit} }

// with returns the shell with further variables.
func (sh *shell) with(env ...string) *shell {
	return &shell{sh.t, slices.Concat(sh.env, env), sh.dir, sh.limit}
}

// run executes a command, which must succeed, and returns its standard output.
func (sh *shell) run(name string, args ...string) string {
	sh.t.Helper()
	stdout, stderr, err := sh.try(name, args...)
	if err != nil {
		sh.t.Fatalf("%s %s: %v\n%s%s", name, strings.Join(args, " "), err, stdout, stderr)
	}
	return stdout
}

// try executes a command, which may fail.
func (sh *shell) try(name string, args ...string) (stdout, stderr string, err error) {
	sh.t.Helper()
	return sh.tryWith("", name, args...)
}

// tryWith executes a command with a text on standard input.
func (sh *shell) tryWith(input, name string, args ...string) (stdout, stderr string, err error) {
	sh.t.Helper()
	ctx, cancel := context.WithTimeout(sh.t.Context(), sh.limit)
	defer cancel()
	cmd := sh.command(ctx, name, args...)
	var out, log strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &log
	if input != "" {
		cmd.Stdin = strings.NewReader(input)
	}
	err = cmd.Run()
	if ctx.Err() != nil {
		err = fmt.Errorf("%w after %s: %w", ctx.Err(), sh.limit, err)
	}
	return out.String(), log.String(), err
}

// command returns a command that is not started.
func (sh *shell) command(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, lookPath(sh.env, name), args...)
	cmd.Env, cmd.Dir = sh.env, sh.dir
	return cmd
}

// lookPath returns the path of a program in the PATH of an environment.
func lookPath(env []string, name string) string {
	for _, v := range slices.Backward(env) {
		path, ok := strings.CutPrefix(v, "PATH=")
		if !ok {
			continue
		}
		for _, dir := range filepath.SplitList(path) {
			if file := filepath.Join(dir, name); isFile(file) {
				return file
			}
		}
	}
	return name
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// exitCode returns the exit code of a command, or -1 if it could not be run.
func exitCode(err error) int {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return exit.ExitCode()
	default:
		return -1
	}
}

// tempFile creates a file in a new directory and returns its path.
func tempFile(t *testing.T, name, content string) string {
	t.Helper()
	dir := t.TempDir()
	writeFile(t, dir, name, content)
	return filepath.Join(dir, name)
}

// writeFile writes a file in a directory.
func writeFile(t *testing.T, dir, name, content string) {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(content), 0o600)); err != nil {
		t.Fatal(err)
	}
}

// deadline returns a channel that is closed when a wait that starts now must end.
func deadline(t *testing.T) <-chan struct{} {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), waitTime)
	t.Cleanup(cancel)
	return ctx.Done()
}
