package test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/internal/ci/cireport"
	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/internal/terminal/output"
	"github.com/fluxkit/flux/internal/terminal/printable"
	"github.com/fluxkit/flux/pkg/testrun"
	"github.com/fluxkit/flux/pkg/testrun/assert"
	"github.com/fluxkit/flux/pkg/testrun/expression"
	"github.com/fluxkit/flux/pkg/testrun/fault"
)

// completeFiles completes the names of test files.
func completeFiles(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return []string{"yaml"}, cobra.ShellCompDirectiveFilterFileExt
}

// readTests reads the named test files, or those of the repository, and checks their expressions.
func readTests(ctx context.Context, a *app.App, r *testrun.Repository, names []string) ([]assert.Test, error) {
	tests, err := loadTests(ctx, r, names)
	if err == nil {
		err = assert.Check(ctx, expression.New(a.Helpers), tests)
	}
	var invalid *assert.InvalidError
	if errors.As(err, &invalid) {
		return nil, hint.Errorf("see docs/test-files.md", "%w", err)
	}
	return tests, err
}

func loadTests(ctx context.Context, r *testrun.Repository, names []string) ([]assert.Test, error) {
	if len(names) == 0 {
		return assert.Find(ctx, r.Tree)
	}
	var tests []assert.Test
	for _, name := range names {
		if !strings.HasSuffix(name, assert.Suffix) {
			return nil, hint.Errorf("name files that end in "+assert.Suffix+", or select a cluster with --path", "%s is not a test file", name)
		}
		file, err := os.Open(name)
		if err != nil {
			return nil, fmt.Errorf("reading the test file: %w", err)
		}
		found, err := assert.Load(name, file)
		if err := errors.Join(err, file.Close()); err != nil {
			return nil, err
		}
		tests = append(tests, found...)
	}
	return tests, nil
}

// suite runs tests in the sandbox of a run.
type suite struct {
	tests  []assert.Test
	runner *assert.Runner
	sink   *assert.Sink
}

// newSuite lets the sandbox receive what tests expect, and watch from the start. It returns nil without
// tests.
func newSuite(ctx context.Context, a *app.App, r *testrun.Run, tests []assert.Test) (*suite, error) {
	if len(tests) == 0 {
		return nil, nil
	}
	sink, err := assert.OpenSink(ctx)
	if err != nil {
		return nil, fmt.Errorf("receiving notifications: %w", err)
	}
	s := &suite{tests: tests, sink: sink}
	r.Received = &testrun.Received{Sink: sink.Address, Permission: rand.Text()}
	r.Watching = func() {
		s.runner = &assert.Runner{
			Client: r.Sandbox.Client, Home: r.Set.Namespace, Repository: assert.Repository{URL: r.Address, Remote: r.Sandbox.Remote(r.Address), Now: a.Now},
			Evaluator: expression.New(a.Helpers), Permission: r.Received.Permission, Sink: sink, Now: a.Now, Progress: r.Progress,
			Faults: fault.Injector{Client: r.Sandbox.Client, Sandbox: r.Sandbox, Home: r.Set.Namespace, Now: a.Now},
			Settle: func(ctx context.Context) error {
				if err := r.Settle(ctx); err != nil {
					return err
				}
				return r.Unsettled
			},
		}
		s.runner.Start(ctx, tests)
	}
	r.Pushing = func(ctx context.Context) { s.runner.Begin(ctx) }
	return s, nil
}

// run runs the tests after the first reconciliation.
func (s *suite) run(ctx context.Context, r *testrun.Run) ([]assert.Result, error) {
	if s == nil {
		return nil, nil
	}
	if r.Unsettled != nil {
		return assert.Skip(s.tests, "the controllers have not finished within --timeout"), nil
	}
	return s.runner.Run(ctx)
}

func (s *suite) close() error {
	if s == nil {
		return nil
	}
	if s.runner != nil {
		s.runner.Close()
	}
	return s.sink.Close()
}

// testLines describes the results of each test, with the assertions that have not passed.
func testLines(r *testrun.Report) []string {
	var lines, open []string
	passed, name := 0, ""
	flush := func() {
		switch {
		case name == "":
		case len(open) == 0:
			lines = append(lines, name+": "+output.Amount(passed, "assertion")+" passed")
		default:
			lines = append(append(lines, fmt.Sprintf("%s: %d of %s passed", name, passed, output.Amount(passed+len(open), "assertion"))), open...)
		}
		passed, open = 0, nil
	}
	for _, result := range r.Tests {
		if result.Test != name {
			flush()
			name = result.Test
		}
		if result.Outcome == assert.Passed {
			passed++
		} else {
			open = append(open, "  "+string(result.Outcome)+": "+result.String())
		}
	}
	flush()
	return lines
}

// testAnnotations returns the assertions that have not passed as workflow commands.
func testAnnotations(r *testrun.Report) string {
	var b strings.Builder
	for _, result := range r.Tests {
		level := map[assert.Outcome]string{assert.Failed: "error", assert.Undetermined: "warning"}[result.Outcome]
		if level != "" {
			b.WriteString(cireport.Annotation{Level: level, Title: "assertion", File: result.File, Text: result.String()}.String())
		}
	}
	return b.String()
}

// testSuites adds a suite for each test.
func testSuites(all *cireport.Suites, r *testrun.Report) {
	for i := 0; i < len(r.Tests); {
		of := cireport.Suite{Name: printable.Line(r.Tests[i].Test)}
		for name := r.Tests[i].Test; i < len(r.Tests) && r.Tests[i].Test == name; i++ {
			result := r.Tests[i]
			c := cireport.Case{Name: printable.Line(result.Step + ": " + result.Expected), Seconds: result.Seconds}
			problem := cireport.Problem{Type: string(result.Outcome), Message: printable.Line(result.String())}
			switch result.Outcome {
			case assert.Failed:
				c.Failures = []cireport.Problem{problem}
			case assert.Undetermined:
				c.Skipped = &problem
			case assert.Passed:
			}
			of.Add(c)
		}
		all.Add(of)
	}
}
