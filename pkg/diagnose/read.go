package diagnose

import (
	"context"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diagnose/inventory"
	"github.com/fluxkit/flux/pkg/diagnose/observe"
	"github.com/fluxkit/flux/pkg/tree"
)

// diagnosis is one diagnosis of the cluster.
type diagnosis struct {
	config       Diagnoser
	cluster      *observe.Cluster
	snapshot     *observe.Snapshot
	installation *installation
	evaluation   *evaluation
	// needing lists objects whose dependents are read even if the objects block none. dependents holds the dependents of these
	// objects and of the roots.
	needing    []controllers.ID
	dependents *observe.Dependents
}

// begin returns a diagnosis that has read nothing.
func (d Diagnoser) begin() *diagnosis {
	cluster := &observe.Cluster{Client: d.Client, Home: d.Home, Recording: d.Recording}
	s := &diagnosis{config: d, cluster: cluster, installation: newInstallation(cluster, d.Now)}
	s.use(observe.NewSnapshot())
	return s
}

// use sets the objects to diagnose.
func (s *diagnosis) use(snapshot *observe.Snapshot) {
	s.snapshot = snapshot
	s.evaluation = &evaluation{snapshot: snapshot, installation: s.installation, home: s.config.Home, now: s.config.Now, known: map[controllers.ID]evaluated{}}
}

// inventories returns the checker for applied objects.
func (s *diagnosis) inventories() *inventory.Checker {
	return &inventory.Checker{
		Cluster: s.cluster, Flux: s.snapshot.Objects, Kustomizer: s.config.Kustomizer, Now: s.config.Now, Deletion: s.installation.deletion,
	}
}

// survey reads all Flux objects in a namespace, or in all namespaces if it is "", their dependencies in other namespaces, and
// the state of the controllers.
func (d Diagnoser) survey(ctx context.Context, namespace, fallback string, tolerated func(error) bool) (*diagnosis, error) {
	s := d.begin()
	var snapshot *observe.Snapshot
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() (err error) {
		snapshot, err = s.cluster.Survey(gctx, namespace, fallback, tolerated)
		return err
	})
	g.Go(func() (err error) {
		if err = s.installation.read(gctx, tolerated); err != nil || s.installation.unread != "" {
			return err
		}
		return s.installation.readLeases(gctx, tolerated)
	})
	if err := g.Wait(); err != nil {
		return nil, err
	}
	if err := snapshot.AllRefused(); err != nil {
		return nil, err
	}
	s.use(snapshot)
	s.installation.dropUnused(snapshot.IDs())
	snapshot.ConnectSurvey(func(controller string) bool {
		_, down := s.installation.down[controller]
		return down
	})
	return s, nil
}

// inspect reads Flux objects with all their dependencies, and the state of the controllers. Known objects are diagnosed as
// given.
func (d Diagnoser) inspect(ctx context.Context, targets []controllers.ID, known []controllers.Object, tolerated func(error) bool) (*diagnosis, error) {
	s := d.begin()
	return s, s.load(ctx, targets, tolerated, func(ctx context.Context, read *observe.Reader) error {
		if err := read.Read(ctx, targets); err != nil {
			return err
		}
		if err := read.Mentioned(ctx, targets); err != nil {
			return err
		}
		for _, o := range known {
			t := controllers.IDOf(o)
			s.snapshot.Current[t] = s.snapshot.Objects[t]
			read.Put(t, o)
		}
		return nil
	})
}

// inspectTrace reads the dependencies of the applier in a trace.
func (d Diagnoser) inspectTrace(ctx context.Context, trace *tree.Trace) (*diagnosis, error) {
	s := d.begin()
	targets := []controllers.ID{trace.Applier.Object}
	return s, s.load(ctx, targets, apierrors.IsForbidden, func(ctx context.Context, read *observe.Reader) error {
		for _, link := range append([]tree.Link{trace.Applier}, trace.Sources...) {
			if link.Kind.Kind == "" {
				continue
			}
			if err := read.Note(link.Object, link.Live, link.Err); err != nil {
				return err
			}
		}
		return read.Read(ctx, targets)
	})
}

// load calls first to read objects, then reads all their dependencies and, concurrently, the state of the controllers. The
// leases are only needed for a ready object, which may have become ready before its controller failed.
func (s *diagnosis) load(ctx context.Context, targets []controllers.ID, tolerated func(error) bool, first func(context.Context, *observe.Reader) error) error {
	read := s.cluster.NewReader(s.snapshot, tolerated)
	ready := make(chan bool, 1)
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		defer close(ready)
		if err := first(gctx, read); err != nil {
			return err
		}
		ready <- read.AnyReady(targets)
		return read.Follow(gctx, targets)
	})
	g.Go(func() (err error) {
		if err = s.installation.read(gctx, tolerated); err != nil || s.installation.unread != "" || !<-ready {
			return err
		}
		return s.installation.readLeases(gctx, tolerated)
	})
	if err := g.Wait(); err != nil {
		return err
	}
	s.snapshot.FindNamespaces(ctx, s.cluster)
	s.installation.dropUnused(s.snapshot.IDs())
	s.snapshot.Connect()
	return nil
}
