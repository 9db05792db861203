// Package rehearse runs a repository, or the exported objects of a cluster, through two versions of
// Flux in temporary sandboxes, and compares the results. It prints nothing.
package rehearse

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/testrun"
	"github.com/fluxkit/flux/pkg/testrun/sources"
)

// Rehearsal is a rehearsal of an upgrade. Either Repository or Exported is set.
type Rehearsal struct {
	// Program is the path of flux-sandbox.
	Program string
	// From is the present version, nil for that of the repository, and To the next one.
	From *controllers.Distribution
	To   controllers.Distribution
	// Repository is the repository of a cluster.
	Repository *sources.Repository
	// Exported are the objects of a cluster, in the order in which they are applied.
	Exported []*unstructured.Unstructured
	// FakeSecrets, AgeKey and Kustomizer are those of both runs.
	FakeSecrets bool
	AgeKey      string
	// AllowNetwork lets the controllers connect to other machines and to all programs of this machine.
	AllowNetwork bool
	Kustomizer   build.Kustomizer
	// Now is the clock.
	Now func() time.Time
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
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), testrun.ReadTime)
	defer cancel()
	return compare(ctx, from, to)
}

// run returns the run with a version of Flux.
func (r *Rehearsal) run(d controllers.Distribution) *testrun.Run {
	return &testrun.Run{
		Program: r.Program, Distribution: d, Repository: r.Repository, Exported: r.Exported, Now: r.Now,
		Progress:    func(step string) { r.Progress(d.Version, step) },
		FakeSecrets: r.FakeSecrets, AgeKey: r.AgeKey, AllowNetwork: r.AllowNetwork, Kustomizer: r.Kustomizer,
	}
}

// closeAll removes the sandboxes.
func closeAll(runs ...*testrun.Run) error {
	var g errgroup.Group
	for _, r := range runs {
		g.Go(r.Close)
	}
	return g.Wait()
}

// prepare reads the repository and determines the present version.
func (r *Rehearsal) prepare(ctx context.Context) error {
	var err error
	if r.Repository == nil {
		r.Repository, err = sources.Empty()
	} else {
		err = r.Repository.Load(ctx)
	}
	if err != nil {
		return err
	}
	if r.From == nil {
		d, ok := controllers.SameMinor(r.Repository.Version)
		if !ok {
			return hint.Errorf("set it with --from", "the present version of Flux is not known")
		}
		r.From = &d
	}
	if r.From.Version == r.To.Version {
		return hint.Errorf("select another version with --to or --from", "the present and the next version of Flux are the same: %s", r.To.Version)
	}
	return nil
}
