// Package rehearse runs a repository, or the exported objects of a cluster, through two versions of
// Flux in throw-away sandboxes, and compares the results. It prints nothing.
package rehearse

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/internal/workspace"
	"github.com/fluxkit/flux/pkg/controllers"
)

// Rehearsal is a rehearsal of an upgrade. Either Repository or Exported is set.
type Rehearsal struct {
	// Program is the path of flux-sandbox.
	Program string
	// From is the present version, nil for that of the repository, and To the next one.
	From *controllers.Distribution
	To   controllers.Distribution
	// Repository is the repository of a cluster.
	Repository *Repository
	// Exported are the objects of a cluster, in the order in which they are applied.
	Exported []*unstructured.Unstructured
	// Now is the clock.
	Now func() time.Time
	// Progress is called with the steps of each version, possibly concurrently.
	Progress func(version, step string)

	repository *Repository
	own        own
}

// Run rehearses the upgrade. It returns an error if there is no result; the sandboxes are removed in
// any case.
func (r *Rehearsal) Run(ctx context.Context) (report *Report, err error) {
	if err := r.prepare(ctx); err != nil {
		return nil, err
	}
	from, to := &side{Rehearsal: r, distribution: *r.From}, &side{Rehearsal: r, distribution: r.To}
	defer func() { err = errors.Join(err, closeAll(from, to)) }()
	g, running := errgroup.WithContext(ctx)
	for _, s := range []*side{from, to} {
		g.Go(func() error { return s.run(running) })
	}
	if err := g.Wait(); err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, err
	}
	r.Progress(r.To.Version, "comparing")
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readTime)
	defer cancel()
	return compare(ctx, from, to)
}

// closeAll removes the sandboxes.
func closeAll(sides ...*side) error {
	var g errgroup.Group
	for _, s := range sides {
		if s.sandbox != nil {
			g.Go(s.sandbox.Close)
		}
	}
	return g.Wait()
}

// prepare reads the repository and determines the present version.
func (r *Rehearsal) prepare(ctx context.Context) error {
	r.repository = r.Repository
	if r.repository == nil {
		r.repository = &Repository{}
		if err := r.repository.readInstallation(); err != nil {
			return err
		}
	} else if err := r.repository.load(ctx); err != nil {
		return err
	}
	r.own = r.repository.own(workspace.ComparableAddress)
	if r.From == nil {
		d, ok := controllers.SameMinor(r.repository.version)
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
