package diagnose

import (
	"context"
	"maps"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/tree"
)

// diagnosis performs one diagnosis of the cluster. It reads the objects and the controllers and
// combines the findings of its parts into a verdict.
type diagnosis struct {
	*judge
	workloads  *workloads
	contents   *contents
	examiner   *examiner
	verifier   *verifier
	deliveries *deliveries
	// needing lists objects whose dependents are required even if they block none. dependent holds
	// the dependents of these objects and of the roots.
	needing   []controllers.ID
	dependent *dependents
}

func (d Doctor) newDiagnosis() *diagnosis {
	s := newSnapshot()
	j := &judge{snapshot: s, installation: &installation{Doctor: d, down: map[string]Finding{}, crashing: map[string]crash{}}, judged: map[controllers.ID]judgment{}}
	w, c := newWorkloads(d.Client), &contents{Doctor: d, snapshot: s}
	return &diagnosis{
		judge: j, workloads: w, contents: c,
		examiner:   &examiner{judge: j, workloads: w, contents: c},
		verifier:   &verifier{judge: j, contents: c},
		deliveries: &deliveries{Doctor: d, snapshot: s, history: w.history},
	}
}

// survey reads all Flux objects in a namespace, or in all for "", their
// dependencies in other namespaces, and the state of the controllers.
func (d Doctor) survey(ctx context.Context, namespace, fallback string, bearable func(error) bool) (*diagnosis, error) {
	s := d.newDiagnosis()
	var objects []controllers.Object
	read := d.newReader(bearable)
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() (err error) {
		if objects, s.view, err = d.list(gctx, namespace, fallback, bearable, &s.well); err != nil {
			return err
		}
		var outside []controllers.ID
		for _, o := range objects {
			k, _ := controllers.FindKind(controllers.Path{"kind"}.String(o))
			s.objects[k.IDOf(o)] = o
		}
		if namespace == "" && len(s.narrowed) == 0 {
			return nil
		}
		for _, t := range s.targets() {
			for _, up := range tree.Awaited(kindOf(t), s.object(t)) {
				if !s.covers(up) {
					outside = append(outside, up)
				}
			}
		}
		return read.follow(gctx, outside)
	})
	g.Go(func() (err error) {
		if err = s.installation.read(gctx, bearable); err != nil || s.blind != "" {
			return err
		}
		return s.readLeaders(gctx, bearable)
	})
	if err := g.Wait(); err != nil {
		return nil, err
	}
	if len(s.refused) == len(controllers.Kinds) {
		return nil, s.refused[controllers.Kinds[0].Kind]
	}
	s.absent, s.unread = read.absent, read.unread
	maps.Copy(s.objects, read.objects)
	s.dropUnused(s.targets())
	s.connect(s.suspects(s.down))
	return s, nil
}

// inspect reads Flux objects with all their dependencies, and the state of the
// controllers. Known objects are diagnosed as given.
func (d Doctor) inspect(ctx context.Context, targets []controllers.ID, known []controllers.Object, bearable func(error) bool) (*diagnosis, error) {
	s := d.newDiagnosis()
	read := d.newReader(bearable)
	if err := s.load(ctx, read, targets, func(ctx context.Context) error {
		if err := read.read(ctx, targets); err != nil {
			return err
		}
		for _, o := range known {
			k, _ := controllers.FindKind(controllers.Path{"kind"}.String(o))
			t := k.IDOf(o)
			s.now[t] = read.objects[t]
			read.put(t, o)
		}
		return nil
	}); err != nil {
		return nil, err
	}
	return s, nil
}

// inspectTrace reads the dependencies of the applier in a trace.
func (d Doctor) inspectTrace(ctx context.Context, trace *tree.Trace) (*diagnosis, error) {
	s := d.newDiagnosis()
	read := d.newReader(apierrors.IsForbidden)
	targets := []controllers.ID{trace.Applier.Object}
	return s, s.load(ctx, read, targets, func(ctx context.Context) error {
		for _, link := range append([]tree.Link{trace.Applier}, trace.Sources...) {
			if link.Kind.Kind == "" {
				continue
			}
			if err := read.note(link.Object, link.Live, link.Err); err != nil {
				return err
			}
		}
		return read.read(ctx, targets)
	})
}

// inspectAround reads the dependencies of an object and the objects that it
// mentions.
func (s *diagnosis) inspectAround(ctx context.Context, k controllers.Kind, o controllers.Object) error {
	read := s.newReader(apierrors.IsForbidden)
	return s.load(ctx, read, []controllers.ID{k.IDOf(o)}, func(ctx context.Context) error {
		read.put(k.IDOf(o), o)
		return read.read(ctx, tree.Mentioned(k, o))
	})
}

// load reads objects with first, then all their dependencies and, at the same
// time, the state of the controllers. The leases are only needed for a ready
// object, which may have become ready before its controller failed.
func (s *diagnosis) load(ctx context.Context, read *reader, targets []controllers.ID, first func(context.Context) error) error {
	ready := make(chan bool, 1)
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		defer close(ready)
		if err := first(gctx); err != nil {
			return err
		}
		ready <- slices.ContainsFunc(targets, read.ready)
		return read.follow(gctx, targets)
	})
	g.Go(func() (err error) {
		if err = s.installation.read(gctx, read.bearable); err != nil || s.blind != "" || !<-ready {
			return err
		}
		return s.readLeaders(gctx, read.bearable)
	})
	if err := g.Wait(); err != nil {
		return err
	}
	s.absent, s.unread = read.absent, read.unread
	var objects []controllers.Object
	for t, o := range read.objects {
		s.objects[t] = o
		objects = append(objects, o)
	}
	s.findNamesakes(ctx)
	s.dropUnused(s.targets())
	s.connect(objects)
	return nil
}

// findNamesakes finds the namespaces with objects of the same name as the
// missing ones.
func (s *diagnosis) findNamesakes(ctx context.Context) {
	s.names = map[[2]string][]string{}
	byName := func(a, b controllers.ID) int { return strings.Compare(a.String(), b.String()) }
	for i, t := range slices.SortedFunc(maps.Keys(s.absent), byName) {
		if i == elsewhereAsked {
			return
		}
		s.names[[2]string{t.Kind, t.Name}] = s.elsewhere(ctx, t)
	}
}
