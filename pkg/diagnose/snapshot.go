package diagnose

import (
	"context"
	"maps"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/tree"
)

// snapshot is what was read of the cluster at one moment.
type snapshot struct {
	Doctor
	// objects are those that were read. Of a survey, healthy ones are reduced,
	// and well has those that nothing with a problem waits for.
	objects map[controllers.Target]controllers.Object
	well    store
	graph   *tree.Graph
	// judged is what local has found: many objects wait for the same few.
	judged map[controllers.Target]judgement
	// now are the objects as they were read that are looked at as they were before.
	now map[controllers.Target]controllers.Object
	// down are the controllers that do not work, by name, and blind says why
	// these could not be read.
	down  map[string]Finding
	blind string
	// leadersAsked says that the leases of the controllers were read, and
	// uninstalled are the controllers that the cluster does not have.
	leadersAsked bool
	uninstalled  []string
	// needing are objects whose dependents are of interest even where they block
	// none, and dependent are those and the ones of the roots, once they were read.
	needing   []controllers.Target
	dependent *dependents
	view
	artifacts artifacts
	// names are the namespaces of the objects of a kind and a name.
	names map[[2]string][]string
}

type judgement struct {
	finding *Finding
	waits   bool
}

// survey reads all objects of Flux in a namespace, "" for all, what these wait
// for elsewhere, and the state of the controllers.
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

// inspect reads some objects of Flux and all that they wait for, and the state
// of the controllers. Known objects are looked at as they are given.
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

// inspectTrace reads what the applier of an object waits for, besides what the
// trace of the object has.
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

// inspectAround reads what an object waits for and what else it mentions.
func (d Doctor) inspectAround(ctx context.Context, k controllers.Kind, o controllers.Object) (*snapshot, error) {
	s := d.newSnapshot()
	read := d.newReader(apierrors.IsForbidden)
	if err := s.load(ctx, read, []controllers.Target{targetOf(k, o)}, func(ctx context.Context) error {
		read.put(targetOf(k, o), o)
		return read.read(ctx, tree.Mentioned(k, o))
	}); err != nil {
		return nil, err
	}
	return s, nil
}

// load reads objects as first does and all that they wait for, and meanwhile the
// state of the controllers. An object that says that it is ready may have said
// so before its controller stopped to work: only then the leases are needed.
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
		Doctor: d, well: store{text: map[controllers.Target][]byte{}}, objects: map[controllers.Target]controllers.Object{}, judged: map[controllers.Target]judgement{},
		now: map[controllers.Target]controllers.Object{}, down: map[string]Finding{},
	}
}

// targets are the names of all objects that were read.
func (s *snapshot) targets() []controllers.Target {
	all := slices.Collect(maps.Keys(s.objects))
	for t := range s.well.text {
		if s.objects[t] == nil {
			all = append(all, t)
		}
	}
	return all
}

// dropUnused drops what speaks against controllers that nothing needs.
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
			delete(s.down, name) // it was not installed, and nothing needs it
		}
	}
}

// connect finds out which of the objects need which.
func (s *snapshot) connect(objects []controllers.Object) {
	s.graph = tree.Needs(objects, true, func(o tree.Object) bool { return s.hidden(target(o)) == nil && s.object(target(o)) == nil })
}

// findNamesakes asks which namespaces have an object of the name of one that is
// missing.
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

// namesakes are the namespaces of the objects that are called like a missing one.
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

// upstream are the reasons by which controllers say that they wait for another
// object, so that it has to be asked.
var upstream = []string{
	"ArtifactFailed", "DependencyNotReady", "SourceNotReady", "SourceNotFound", "SourceUnavailable", "GitRepositoryNotAvailable", "NoSourceArtifact",
	"HelmChartNotReady", "Progressing", "ProgressingWithRetry", "",
}

// chain leads from an object to the root of why it is not as it should be;
// it is empty for one that is.
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

// cycle is the finding about objects that wait for each other, the same
// whichever of them comes first.
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
			"flux deps " + strings.ToLower(t.Kind) + " " + t.Name + " -n " + t.Namespace,
		},
	}
}

// blame looks for the cause in what an object says that waits for others, where
// none of these is out of order.
func (s *snapshot) blame(f *Finding) {
	o, there := s.objects[f.Object]
	if !there || f.Code != "waiting" {
		return
	}
	if found, ok := recognise(s.subject(s.kindOf(f.Object), o)); ok {
		*f = found.Finding
	}
}

// holdUp is what an object waits for: its source before its dependencies, and
// of these the first that is not as it should be. One that is ready may be in
// the way of an object that says that it waits: it is suspended at an earlier
// revision, or what it has fetched cannot be had because its controller is down.
func (s *snapshot) holdUp(t controllers.Target, says bool) (controllers.Target, bool) {
	for _, relation := range []string{"source", "image", "dependency", "provider"} {
		for _, e := range s.graph.From(s.vertex(t)) {
			if e.Relation != relation {
				continue
			}
			up := target(e.To)
			if o, there := s.objects[up]; there && !says && fine(s.kindOf(up), o) {
				continue
			}
			if f, _ := s.local(up); f != nil {
				return up, true
			}
		}
	}
	return controllers.Target{}, false
}
