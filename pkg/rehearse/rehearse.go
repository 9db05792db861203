// Package rehearse runs a repository, or the exported objects of a cluster, with two Flux versions
// in temporary sandboxes, and compares the results. It prints nothing.
package rehearse

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/testrun"
	"github.com/fluxkit/flux/pkg/testrun/sources"
)

// Rehearsal configures the rehearsal of an upgrade.
type Rehearsal struct {
	// Input is the input of both runs, with either Repository or Exported set.
	Input testrun.Run
	// From is the current version, nil for the version in the repository, and To the next version.
	From *controllers.Distribution
	To   controllers.Distribution
	// Progress is called with the steps of each version, possibly concurrently.
	Progress func(version, step string)
}

// Run rehearses the upgrade. It returns an error if there is no result; the sandboxes are removed in
// any case.
func (r *Rehearsal) Run(ctx context.Context) (report *Report, err error) {
	if err := r.prepare(ctx); err != nil {
		return nil, err
	}
	from, to := r.run(*r.From), r.run(r.To)
	defer func() { err = errors.Join(err, closeAll(from, to)) }()
	g, running := errgroup.WithContext(ctx)
	for _, s := range []*testrun.Run{from, to} {
		g.Go(func() error {
			if err := s.Run(running); err != nil {
				return fmt.Errorf("with Flux %s: %w", s.Distribution.Version, err)
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, err
	}
	r.Progress(r.To.Version, "comparing")
	ctx, cancel := testrun.Reading(ctx)
	defer cancel()
	return compare(ctx, from, to)
}

// run returns the run with a Flux version.
func (r *Rehearsal) run(d controllers.Distribution) *testrun.Run {
	run := r.Input
	run.Distribution, run.Progress = d, func(step string) { r.Progress(d.Version, step) }
	return &run
}

// closeAll removes the sandboxes.
func closeAll(runs ...*testrun.Run) error {
	var g errgroup.Group
	for _, r := range runs {
		g.Go(r.Close)
	}
	return g.Wait()
}

// prepare reads the repository and determines the current version.
func (r *Rehearsal) prepare(ctx context.Context) error {
	var err error
	if r.Input.Repository == nil {
		r.Input.Repository, err = sources.Empty()
	} else {
		err = r.Input.Repository.Load(ctx)
	}
	if err != nil {
		return err
	}
	if r.From == nil {
		version := r.Input.Repository.Version
		d, _, ok := controllers.Select(version)
		switch {
		case version == "":
			return hint.Errorf("set it with --from", "cannot determine the current Flux version")
		case !ok:
			return hint.Errorf("set --from to one of "+strings.Join(controllers.EmbeddedVersions(), ", "), "unsupported Flux version in the repository: %s", version)
		}
		r.From = &d
	}
	if r.From.Version == r.To.Version {
		return hint.Errorf("select another version with --to or --from", "the current and the next Flux version are the same: %s", r.To.Version)
	}
	return nil
}
