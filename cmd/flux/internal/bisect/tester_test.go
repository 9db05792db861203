package bisect

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
)

// TestRunVerdicts checks that only a report with the matching exit code is a verdict on a commit.
func TestRunVerdicts(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		script string
		want   commitState
		reason string
	}{
		"ready":               {`echo '{"result": "ready"}'`, commitGood, ""},
		"not ready":           {`echo '{"result": "not-ready", "causes": [{"message": "wrong"}]}'; echo '✗ 1 of 2 ready' >&2; exit 1`, commitBad, ""},
		"undetermined":        {`echo '{"result": "undetermined"}'; echo '◎ waiting' >&2; echo '✗ timed out' >&2; exit 2`, commitSkipped, "timed out"},
		"killed":              {`kill -9 $$`, commitSkipped, "unknown reason"},
		"failed":              {`echo '✗ first' >&2; echo '✗ no sandbox' >&2; exit 1`, commitSkipped, "flux test printed no report: no sandbox"},
		"nothing":             {`exit 0`, commitSkipped, "flux test printed no report: unknown reason"},
		"ready, but failed":   {`echo '{"result": "ready"}'; exit 1`, commitSkipped, `flux test exited with 1 for the result "ready"`},
		"not ready, but done": {`echo '{"result": "not-ready"}'`, commitSkipped, `flux test exited with 0 for the result "not-ready"`},
	} {
		// One after the other: a program cannot be run while a process that is just forked has it open.
		t.Run(name, func(t *testing.T) {
			program := filepath.Join(t.TempDir(), "flux")
			if err := os.WriteFile(program, []byte("#!/bin/sh\n"+c.script+"\n"), 0o700); err != nil { // it is run
				t.Fatal(err)
			}
			a := app.New(strings.NewReader(""), io.Discard, io.Discard, func(string) string { return "" }, time.Now)
			verdict, found, err := (&tester{app: a, program: program}).run(t.Context(), plumbing.ZeroHash)
			if err != nil || verdict != c.want || verdict == commitSkipped && found.reason != c.reason {
				t.Errorf("%v %q %v, want %v %q", verdict, found.reason, err, c.want, c.reason)
			}
		})
	}
}
