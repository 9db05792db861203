package diagnose

import (
	"context"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fluxkit/flux/internal/shell"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/tree"
)

// snapshot is the state of the cluster at one point in time.
type snapshot struct {
	Doctor
	// objects are the objects that were read. In a survey, healthy objects are
	// reduced, and well has those that no object with a problem depends on.
	objects map[controllers.Target]controllers.Object
	well    store
	graph   *tree.Graph
	// judged caches the findings of local: many objects wait for the same few.
	judged map[controllers.Target]judgement
	// now are the current versions of objects that are diagnosed in an earlier
	// version.
	now map[controllers.Target]controllers.Object
	// down are the failed controllers by name. blind describes why they could
	// not be read.
	down  map[string]Finding
	blind string
	// leadersAsked is set once the leases of the controllers were read.
	// uninstalled are the controllers that are not installed.
	leadersAsked bool
	uninstalled  []string
	// needing are objects whose dependents are required even if they block
	// none. dependent are these dependents and those of the roots.
	needing   []controllers.Target
	dependent *dependents
	view
	artifacts cache[controllers.Target, fs.FS]
	workloads *workloads
	// names are the namespaces of the objects with a kind and name.
	names map[[2]string][]string
}

type judgement struct {
	finding *Finding
	waits   bool
}

// survey reads all Flux objects in a namespace, or in all for "", their
// dependencies in other namespaces, and the state of the controllers.
func (d Doctor) survey(ctx context.Context, namespace, fallback string, bearable func(error) bool) (*snapshot, error) {
	s := d.newSnapshot()
	var objects []controllers.Object
	read := d.newReader(bearable)
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() (err error) {
		if objects, s.view, err = d.list(gctx, namespace, fallback, bearable, &s.well); err != nil {
			return err
		}
		var outside []controllers.Target
		for _, o := range objects {
			k, _ := controllers.FindKind(controllers.Path{"kind"}.String(o))
			s.objects[targetOf(k, o)] = o
		}
		if namespace == "" && len(s.narrowed) == 0 {
			return nil
		}
		for _, t := range s.targets() {
			for _, up := range tree.Awaited(s.kindOf(t), s.object(t)) {
				if !s.covers(up) {
					outside = append(outside, up)
				}
			}
		}
		return read.follow(gctx, outside)
	})
	g.Go(func() (err error) {
		if s.down, s.blind, err = d.controllers(gctx, bearable); err != nil || s.blind != "" {
			return err
		}
		return s.readLeaders(gctx, bearable)
	})
	if err := g.Wait(); err != nil {
		return nil, err
	}
	if len(s.refused) == len(controllers.Kinds) {
		return nil, s.refused["Kustomization"]
	}
	s.absent, s.unread = read.absent, read.unread
	maps.Copy(s.objects, read.objects)
	s.dropUnused()
	s.connect(s.suspects())
	return s, nil
}

// inspect reads Flux objects with all their dependencies, and the state of the
// controllers. Known objects are diagnosed as given.
func (d Doctor) inspect(ctx context.Context, targets []controllers.Target, known []controllers.Object, bearable func(error) bool) (*snapshot, error) {
	s := d.newSnapshot()
	read := d.newReader(bearable)
	if err := s.load(ctx, read, targets, func(ctx context.Context) error {
		if err := read.read(ctx, targets); err != nil {
			return err
		}
		for _, o := range known {
			k, _ := controllers.FindKind(controllers.Path{"kind"}.String(o))
			t := targetOf(k, o)
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
func (d Doctor) inspectTrace(ctx context.Context, trace *tree.Trace) (*snapshot, error) {
	s := d.newSnapshot()
	read := d.newReader(apierrors.IsForbidden)
	targets := []controllers.Target{target(trace.Applier.Object)}
	return s, s.load(ctx, read, targets, func(ctx context.Context) error {
		for _, link := range append([]tree.Link{trace.Applier}, trace.Sources...) {
			if link.Kind.Kind == "" {
				continue
			}
			if err := read.note(target(link.Object), link.Live, link.Err); err != nil {
				return err
			}
		}
		return read.read(ctx, targets)
	})
}

// inspectAround reads the dependencies of an object and the objects that it
// mentions.
func (s *snapshot) inspectAround(ctx context.Context, k controllers.Kind, o controllers.Object) error {
	read := s.newReader(apierrors.IsForbidden)
	return s.load(ctx, read, []controllers.Target{targetOf(k, o)}, func(ctx context.Context) error {
		read.put(targetOf(k, o), o)
		return read.read(ctx, tree.Mentioned(k, o))
	})
}

// load reads objects with first, then all their dependencies and, at the same
// time, the state of the controllers. The leases are only needed for a ready
// object, which may have become ready before its controller failed.
func (s *snapshot) load(ctx context.Context, read *reader, targets []controllers.Target, first func(context.Context) error) error {
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
		if s.down, s.blind, err = s.controllers(gctx, read.bearable); err != nil || s.blind != "" || !<-ready {
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
	s.dropUnused()
	s.connect(objects)
	return nil
}

func (d Doctor) newSnapshot() *snapshot {
	return &snapshot{
		Doctor: d, workloads: newWorkloads(d.Client), well: store{text: map[controllers.Target][]byte{}}, objects: map[controllers.Target]controllers.Object{}, judged: map[controllers.Target]judgement{},
		now: map[controllers.Target]controllers.Object{}, down: map[string]Finding{},
	}
}

// targets returns all objects that were read.
func (s *snapshot) targets() []controllers.Target {
	all := slices.Collect(maps.Keys(s.objects))
	for t := range s.well.text {
		if s.objects[t] == nil {
			all = append(all, t)
		}
	}
	return all
}

// dropUnused drops the findings for missing controllers whose kinds have no
// objects.
func (s *snapshot) dropUnused() {
	used := map[string]bool{}
	for _, t := range s.targets() {
		used[s.kindOf(t).Controller] = true
	}
	for name, f := range s.down {
		if f.Code != "controller-missing" {
			continue
		}
		s.uninstalled = append(s.uninstalled, name)
		if !used[name] {
			delete(s.down, name) // not installed and not needed
		}
	}
}

// connect builds the dependency graph of the objects.
func (s *snapshot) connect(objects []controllers.Object) {
	s.graph = tree.NewGraph(objects, true, func(o tree.Object) bool { return s.hidden(target(o)) == nil && s.object(target(o)) == nil })
}

// findNamesakes finds the namespaces with objects of the same name as the
// missing ones.
func (s *snapshot) findNamesakes(ctx context.Context) {
	s.names = map[[2]string][]string{}
	byName := func(a, b controllers.Target) int { return strings.Compare(a.String(), b.String()) }
	for i, t := range slices.SortedFunc(maps.Keys(s.absent), byName) {
		if i == elsewhereAsked {
			return
		}
		s.names[[2]string{t.Kind, t.Name}] = s.elsewhere(ctx, t)
	}
}

// namesakes returns the namespaces of the objects with the name of a missing
// one.
func (s *snapshot) namesakes(t controllers.Target) []string {
	if s.names == nil {
		s.names = map[[2]string][]string{}
		for _, other := range s.targets() {
			at := [2]string{other.Kind, other.Name}
			s.names[at] = append(s.names[at], other.Namespace)
		}
	}
	return s.names[[2]string{t.Kind, t.Name}]
}

func (s *snapshot) kindOf(t controllers.Target) controllers.Kind {
	k, _ := controllers.FindKind(t.Kind)
	return k
}

func (s *snapshot) kindNamed(o controllers.Object) controllers.Kind {
	k, _ := controllers.FindKind(controllers.Path{"kind"}.String(o))
	return k
}

func (s *snapshot) vertex(t controllers.Target) tree.Object {
	k := s.kindOf(t)
	return tree.Object{Namespace: t.Namespace, Name: t.Name, GroupKind: schema.GroupKind{Group: k.Group, Kind: k.Kind}}
}

func target(o tree.Object) controllers.Target {
	return controllers.Target{Kind: o.GroupKind.Kind, Namespace: o.Namespace, Name: o.Name}
}

// upstream are the reasons with which controllers report that an object waits
// for another.
var upstream = []string{
	"ArtifactFailed", "DependencyNotReady", "SourceNotReady", "SourceNotFound", "SourceUnavailable", "GitRepositoryNotAvailable", "NoSourceArtifact",
	"HelmChartNotReady", "Progressing", "ProgressingWithRetry", "",
}

// chain returns the findings from an object to its root cause, nil for a
// healthy object.
func (s *snapshot) chain(t controllers.Target) []Finding {
	var chain []Finding
	at := map[controllers.Target]int{}
	for {
		at[t] = len(chain)
		f, waits := s.local(t)
		if f == nil {
			return chain
		}
		chain = append(chain, *f)
		next, found := s.holdUp(t, f.Code == "waiting")
		switch {
		case waits && !found:
			s.blame(&chain[len(chain)-1])
			return chain
		case !waits:
			return chain
		}
		if first, seen := at[next]; seen {
			return append(chain, cycle(chain[first:]))
		}
		t = next
	}
}

// cycle returns the finding for a circular dependency. It does not depend on
// the order of the chain.
func cycle(chain []Finding) Finding {
	var members []controllers.Target
	for _, f := range chain {
		members = append(members, f.Object)
	}
	first := 0
	for i, t := range members {
		if t.String() < members[first].String() {
			first = i
		}
	}
	members = slices.Concat(members[first:], members[:first])
	var names []string
	for _, t := range append(slices.Clone(members), members[0]) {
		names = append(names, t.String())
	}
	t := members[0]
	return Finding{
		Object: t, Code: "cycle", Message: "circular dependency: " + strings.Join(names, " → "), Cycle: members,
		Remedies: []string{
			"remove one of these dependencies from spec.dependsOn",
			shell.Command("flux deps "+strings.ToLower(t.Kind)+" %s -n %s", t.Name, t.Namespace),
		},
	}
}

// blame replaces the finding of a waiting object by the failure in its own
// message, if no dependency has a problem.
func (s *snapshot) blame(f *Finding) {
	o, there := s.objects[f.Object]
	if !there || f.Code != "waiting" {
		return
	}
	if found, ok := recognise(s.subject(s.kindOf(f.Object), o)); ok {
		*f = found.Finding
	}
}

// holdUp returns the object that an object waits for: its source before its
// dependencies, and the first with a problem. A ready source may block an
// object that reports that it waits: it is suspended at an earlier revision, or
// its artifact is unavailable because its controller is down.
func (s *snapshot) holdUp(t controllers.Target, says bool) (controllers.Target, bool) {
	for _, relation := range []string{"source", "image", "dependency", "provider"} {
		for _, e := range s.graph.From(s.vertex(t)) {
			if e.Relation != relation {
				continue
			}
			up := target(e.To)
			if o, there := s.objects[up]; there && !says && s.kindOf(up).IsReady(o) {
				continue
			}
			if f, _ := s.local(up); f != nil {
				return up, true
			}
		}
	}
	return controllers.Target{}, false
}
