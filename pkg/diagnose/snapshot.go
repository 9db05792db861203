package diagnose

import (
	"context"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/tree"
)

// snapshot is the cluster at one moment.
type snapshot struct {
	Doctor
	objects map[controllers.Target]controllers.Object
	graph   *tree.Graph
	// judged is what local has found: many objects wait for the same few.
	judged map[controllers.Target]judgement
	// now are the objects as they were listed that are looked at as they were before.
	now map[controllers.Target]controllers.Object
	// down are the controllers that do not work, by name.
	down map[string]Finding
	view
	unknown []string
}

type judgement struct {
	finding *Finding
	waits   bool
}

// look reads the objects of Flux and the state of its controllers together.
// Those who may not see all namespaces may see the given one. Known objects are
// looked at as they are given; an error that is bearable only leaves something
// unknown.
func (d Doctor) look(ctx context.Context, namespace string, known []controllers.Object, bearable func(error) bool) (*snapshot, error) {
	s := &snapshot{Doctor: d, objects: map[controllers.Target]controllers.Object{}, judged: map[controllers.Target]judgement{}}
	var objects []controllers.Object
	var state []string
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() (err error) {
		objects, s.view, err = d.visible(gctx, namespace, bearable)
		return err
	})
	g.Go(func() (err error) {
		s.down, state, err = d.controllers(gctx, bearable)
		return err
	})
	if err := g.Wait(); err != nil {
		return nil, err
	}
	if len(s.refused) == len(controllers.Kinds) && len(known) == 0 {
		return nil, s.refused["Kustomization"]
	}
	s.unknown = append(state, s.blind()...)
	objects, s.now = replaced(objects, known)
	used := map[string]bool{}
	for _, o := range objects {
		k, _ := controllers.FindKind(controllers.Path{"kind"}.String(o))
		s.objects[targetOf(k, o)] = o
		used[k.Controller] = true
	}
	for name, f := range s.down {
		if !used[name] && f.Code == "controller-missing" {
			delete(s.down, name) // it was not installed, and nobody misses it
		}
	}
	s.graph = tree.Needs(objects, true, func(o tree.Object) bool { return s.hidden(target(o)) == nil })
	return s, nil
}

// replaced puts known objects into the place of what was listed, which it
// returns too.
func replaced(listed, known []controllers.Object) (objects []controllers.Object, before map[controllers.Target]controllers.Object) {
	name := func(o controllers.Object) controllers.Target {
		k, _ := controllers.FindKind(controllers.Path{"kind"}.String(o))
		return targetOf(k, o)
	}
	before = map[controllers.Target]controllers.Object{}
	for _, o := range known {
		before[name(o)] = nil
	}
	objects = slices.Clone(known)
	for _, o := range listed {
		if _, is := before[name(o)]; is {
			before[name(o)] = o
			continue
		}
		objects = append(objects, o)
	}
	return objects, before
}

func (s *snapshot) kindOf(t controllers.Target) controllers.Kind {
	k, _ := controllers.FindKind(t.Kind)
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
	seen := map[controllers.Target]bool{}
	for {
		seen[t] = true
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
		case seen[next]:
			last := &chain[len(chain)-1]
			last.Code, last.Message = "cycle", "these objects wait for each other: "+s.cycleOf(t)
			last.Remedies = []string{"take one of them out of spec.dependsOn of another", "flux deps " + strings.ToLower(t.Kind) + " " + t.Name + " -n " + t.Namespace}
			return chain
		}
		t = next
	}
}

// blame looks for the cause in what an object says that waits for others, where
// none of these is out of order.
func (s *snapshot) blame(f *Finding) {
	o, there := s.objects[f.Object]
	if !there || f.Code != "waiting" {
		return
	}
	if found, ok := recognise(newSubject(s.kindOf(f.Object), o)); ok {
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

func (s *snapshot) cycleOf(t controllers.Target) string {
	for _, cycle := range s.graph.Cycles {
		if !slices.Contains(cycle, s.vertex(t)) {
			continue
		}
		var words []string
		for _, o := range append(slices.Clone(cycle), cycle[0]) {
			words = append(words, o.String())
		}
		return strings.Join(words, " → ")
	}
	return ""
}
