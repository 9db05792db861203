// Package suite runs test files during a run. It receives the expected notifications and commits, and watches the
// objects from the start.
package suite

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/internal/kube/expression"
	"github.com/fluxkit/flux/pkg/diagnose"
	"github.com/fluxkit/flux/pkg/testrun"
	"github.com/fluxkit/flux/pkg/testrun/assert"
	"github.com/fluxkit/flux/pkg/testrun/fault"
	"github.com/fluxkit/flux/pkg/testrun/policy"
)

// Read reads the given test files, or the test files in the repository, and checks their expressions.
func Read(ctx context.Context, evaluator expression.Evaluator, tree fs.FS, names []string) ([]assert.Test, error) {
	tests, err := load(ctx, tree, names)
	if err == nil {
		err = assert.Check(ctx, evaluator, tests)
	}
	var invalid *assert.InvalidError
	if errors.As(err, &invalid) {
		return nil, hint.Errorf("see docs/test-files.md", "%w", err)
	}
	return tests, err
}

func load(ctx context.Context, tree fs.FS, names []string) ([]assert.Test, error) {
	if len(names) == 0 {
		return assert.Find(ctx, tree)
	}
	var tests []assert.Test
	for _, name := range names {
		if !strings.HasSuffix(name, assert.Suffix) {
			return nil, hint.Errorf("use files that end in "+assert.Suffix+", or select a cluster with --path", "%s is not a test file", name)
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

// Suite runs tests in the sandbox of a run.
type Suite struct {
	tests  []assert.Test
	runner *assert.Runner
	sink   *assert.Sink
}

// New makes the sandbox receive the notifications and commits that tests expect, and watches the objects from the start.
// Without tests, it returns nil, a suite without results.
func New(ctx context.Context, evaluator expression.Evaluator, r *testrun.Run, tests []assert.Test) (*Suite, error) {
	if len(tests) == 0 {
		return nil, nil
	}
	sink, err := assert.OpenSink(ctx)
	if err != nil {
		return nil, fmt.Errorf("receiving notifications: %w", err)
	}
	s := &Suite{tests: tests, sink: sink}
	r.Received = &policy.Received{Sink: sink.Address, Permission: rand.Text()}
	r.Watching = func() {
		s.runner = &assert.Runner{
			Client: r.Sandbox.Client, Home: r.Set.Namespace, Repository: assert.Repository{URL: r.Address, Remote: r.Sandbox.Remote(r.Address), Now: r.Now},
			Evaluator: evaluator, Permission: r.Received.Permission, Sink: sink, Now: r.Now, Progress: r.Progress,
			Faults: fault.Injector{Client: r.Sandbox.Client, Sandbox: r.Sandbox, Home: r.Set.Namespace, Now: r.Now},
			Settle: func(ctx context.Context) error {
				if err := r.Settle(ctx); err != nil {
					return err
				}
				return r.Unsettled
			},
			Failed: func() []diagnose.Failed { return failed(r) },
		}
		s.runner.Start(ctx, tests)
	}
	r.Pushing = func(ctx context.Context) { s.runner.Begin(ctx) }
	return s, nil
}

// failed returns the objects that are not ready.
func failed(r *testrun.Run) []diagnose.Failed {
	var all []diagnose.Failed
	for t, f := range r.Flux {
		if f.Failed() {
			all = append(all, diagnose.Failed{ID: t, Last: f.Object})
		}
	}
	slices.SortFunc(all, func(a, b diagnose.Failed) int { return a.ID.Compare(b.ID) })
	return all
}

// Run runs the tests after the first reconciliation.
func (s *Suite) Run(ctx context.Context, r *testrun.Run) ([]assert.Result, error) {
	if s == nil {
		return nil, nil
	}
	if r.Unsettled != nil {
		return assert.Skip(s.tests, "the controllers have not finished within --timeout"), nil
	}
	return s.runner.Run(ctx)
}

// Close ends the suite.
func (s *Suite) Close() error {
	if s == nil {
		return nil
	}
	if s.runner != nil {
		s.runner.Close()
	}
	return s.sink.Close()
}
