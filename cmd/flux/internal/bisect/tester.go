package bisect

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/clierr"
	"github.com/fluxkit/flux/internal/git"
	"github.com/fluxkit/flux/internal/terminal/printable"
	"github.com/fluxkit/flux/pkg/testrun/examine"
	"github.com/fluxkit/flux/pkg/testrun/settle"
)

// endTime is the time for an interrupted test to remove its sandbox.
const endTime = time.Minute

// tester runs flux test for each commit, in a separate process and sandbox. Emptying a sandbox takes longer
// than starting another one, because Kubernetes deletes namespaces slowly, and objects of the previous commit
// could remain.
type tester struct {
	app      *app.App
	clone    *git.Clone
	program  string
	args     []string
	outcomes map[plumbing.Hash]outcome
}

// outcome is the result of a test.
type outcome struct {
	report examine.Report
	// reason explains why the result could not be determined.
	reason string
}

// test tests a commit, reports its state and stores the outcome.
func (t *tester) test(ctx context.Context, commit plumbing.Hash) (commitState, error) {
	info, err := t.clone.History().Describe(commit)
	if err != nil {
		return commitSkipped, err
	}
	name := short(info.Hash) + " " + printable.Line(info.Subject)
	line := t.app.UI.Progress(t.app.Now, "testing %s", name)
	verdict, found, err := t.run(ctx, commit)
	line.Done()
	if err != nil {
		return commitSkipped, err
	}
	t.outcomes[commit] = found
	switch verdict {
	case commitGood:
		t.app.UI.Success("good: %s", name)
	case commitBad:
		t.app.UI.Failure("bad: %s", name)
	default:
		t.app.UI.Warning("skipped: %s: %s", name, found.reason)
	}
	return verdict, nil
}

// run runs flux test for a commit.
func (t *tester) run(ctx context.Context, commit plumbing.Hash) (commitState, outcome, error) {
	words := slices.Concat([]string{"test", "--revision", commit.String(), "--output", "json", "--timeout", t.app.Global.Timeout.String()}, t.args)
	c := exec.CommandContext(ctx, t.program, words...)
	var out, log bytes.Buffer
	c.Stdout, c.Stderr, c.Env = &out, &log, t.app.Environ()
	c.Cancel = func() error { return c.Process.Signal(os.Interrupt) }
	c.WaitDelay = endTime
	err := c.Run()
	if ctx.Err() != nil {
		return commitSkipped, outcome{}, context.Cause(ctx)
	}
	var exited *exec.ExitError
	if err != nil && !errors.As(err, &exited) {
		return commitSkipped, outcome{}, fmt.Errorf("running flux test: %w", err)
	}
	found := outcome{reason: lastFailure(log.String())}
	code := c.ProcessState.ExitCode()
	if code != clierr.ExitSuccess && code != clierr.ExitFailed {
		return commitSkipped, found, nil
	}
	if err := json.Unmarshal(out.Bytes(), &found.report); err != nil {
		found.reason = "flux test printed no report: " + found.reason
		return commitSkipped, found, nil
	}
	switch {
	case code == clierr.ExitSuccess && found.report.Result == settle.Ready:
		return commitGood, found, nil
	case code == clierr.ExitFailed && found.report.Result == settle.NotReady:
		return commitBad, found, nil
	}
	found.reason = fmt.Sprintf("flux test exited with %d for the result %q", code, found.report.Result)
	return commitSkipped, found, nil
}

// lastFailure returns the last message about a failure.
func lastFailure(log string) string {
	last := "unknown reason"
	for text := range strings.Lines(log) {
		if failure, is := strings.CutPrefix(strings.TrimSpace(text), "✗ "); is {
			last = printable.Line(failure)
		}
	}
	return last
}
