package diagnose

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/tree"
)

// Doctor finds out why objects of Flux are not as they should be. It reads
// what the controllers say, follows references to what is at the root of it,
// and asks pods, events and logs about that. It changes nothing.
type Doctor struct {
	Client *kube.Client
	// Home is the namespace of the controllers.
	Home string
	Now  time.Time
}

// patienceWithNews is how long a controller may take to begin with what its
// source has fetched before that is told as trouble.
const patienceWithNews = time.Minute

// Everything looks at all objects of Flux and at the controllers. What has one
// root is one case.
func (d Doctor) Everything(ctx context.Context) (Verdict, error) {
	s, err := d.look(ctx, "")
	if err != nil {
		return Verdict{}, err
	}
	v := Verdict{Looked: len(s.objects), Unknown: s.unknown}
	for _, name := range sortedKeys(s.down) {
		s.add(&v, controllers.Target{}, []Finding{s.down[name]})
	}
	for _, vertex := range s.graph.Vertices {
		t := target(vertex.Object)
		o, there := s.objects[t]
		if !there || s.kindOf(t).Suspension.Is(o) {
			continue
		}
		if chain := s.chain(t); len(chain) > 0 {
			s.add(&v, t, chain)
		}
	}
	slices.SortStableFunc(v.Cases, func(a, b Case) int { return len(b.Blocks) - len(a.Blocks) })
	for i := range v.Cases {
		s.examine(ctx, &v.Cases[i])
	}
	return v, nil
}

// add puts an object's chain to the case of its root.
func (s *snapshot) add(v *Verdict, t controllers.Target, chain []Finding) {
	root := chain[len(chain)-1]
	i := slices.IndexFunc(v.Cases, func(c Case) bool { return c.Root.Object == root.Object && c.Root.Code == root.Code })
	if i < 0 {
		v.Cases = append(v.Cases, Case{Object: root.Object, Root: root, Chain: []Finding{root}})
		i = len(v.Cases) - 1
	}
	if t != root.Object && t != (controllers.Target{}) {
		v.Cases[i].Blocks = append(v.Cases[i].Blocks, t)
	}
}

// Object looks at one object of Flux. That it is not there is an error of the
// API (IsNotFound).
func (d Doctor) Object(ctx context.Context, k controllers.Kind, namespace, name string) (Verdict, error) {
	s, err := d.look(ctx, namespace)
	if err != nil {
		return Verdict{}, err
	}
	t := controllers.Target{Kind: k.Kind, Namespace: namespace, Name: name}
	if _, there := s.objects[t]; !there {
		if err := s.refused[k.Kind]; err != nil {
			return Verdict{}, err
		}
		return Verdict{}, apierrors.NewNotFound(schema.GroupResource{Group: k.Group, Resource: k.Resource}, name)
	}
	v := Verdict{Looked: 1, Unknown: s.unknown}
	s.consult(ctx, &v, t)
	return v, nil
}

// consult adds the case of an object, and those of what keeps newer revisions
// from coming to it.
func (s *snapshot) consult(ctx context.Context, v *Verdict, t controllers.Target) {
	if chain := s.chain(t); len(chain) > 0 {
		v.Cases = append(v.Cases, s.caseOf(t, chain))
	}
	for _, e := range s.graph.From(s.vertex(t)) {
		if e.Relation != "source" && e.Relation != "image" {
			continue
		}
		up := target(e.To)
		chain := s.chain(up)
		if len(chain) == 0 {
			continue
		}
		root := chain[len(chain)-1]
		if slices.ContainsFunc(v.Cases, func(c Case) bool { return c.Root.Object == root.Object && c.Root.Code == root.Code }) {
			continue
		}
		first := Finding{Object: t, Code: "stale", Message: "nothing newer comes from " + up.String()}
		v.Cases = append(v.Cases, s.caseOf(t, append([]Finding{first}, chain...)))
	}
	for i := range v.Cases {
		s.examine(ctx, &v.Cases[i])
	}
}

// caseOf puts a chain together with what else its root blocks.
func (s *snapshot) caseOf(t controllers.Target, chain []Finding) Case {
	c := Case{Object: t, Root: chain[len(chain)-1], Chain: chain}
	for _, vertex := range s.graph.Vertices {
		other := target(vertex.Object)
		if other == c.Root.Object || other == t {
			continue
		}
		if slices.ContainsFunc(vertex.BlockedBy, func(o tree.Object) bool { return target(o) == c.Root.Object }) {
			c.Blocks = append(c.Blocks, other)
		}
	}
	return c
}

// snapshot is the cluster at one moment.
type snapshot struct {
	Doctor
	objects map[controllers.Target]controllers.Object
	graph   *tree.Graph
	// judged is what local has found: many objects wait for the same few.
	judged map[controllers.Target]judgement
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
// Those who may not see all namespaces may see the given one.
func (d Doctor) look(ctx context.Context, namespace string) (*snapshot, error) {
	s := &snapshot{Doctor: d, objects: map[controllers.Target]controllers.Object{}, judged: map[controllers.Target]judgement{}}
	var objects []controllers.Object
	var state []string
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() (err error) {
		objects, s.view, err = d.visible(gctx, namespace)
		return err
	})
	g.Go(func() (err error) {
		s.down, state, err = d.controllers(gctx)
		return err
	})
	if err := g.Wait(); err != nil {
		return nil, err
	}
	if len(s.refused) == len(controllers.Kinds) {
		return nil, s.refused["Kustomization"]
	}
	s.unknown = append(state, s.blind()...)
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
	"ArtifactFailed", "DependencyNotReady", "SourceNotReady", "SourceNotFound", "SourceUnavailable", "GitRepositoryNotAvailable",
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
		next, found := s.holdUp(t)
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
		*f = found
	}
}

// holdUp is what an object waits for: its source before its dependencies, and
// of these the first that is not as it should be.
func (s *snapshot) holdUp(t controllers.Target) (controllers.Target, bool) {
	for _, relation := range []string{"source", "image", "dependency", "provider"} {
		for _, e := range s.graph.From(s.vertex(t)) {
			if e.Relation != relation {
				continue
			}
			if f, _ := s.local(target(e.To)); f != nil {
				return target(e.To), true
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

// local is what is wrong with one object as far as it tells itself; waits says
// that it waits for others, so that these know better. It is nil for one that
// is as it should be.
func (s *snapshot) local(t controllers.Target) (f *Finding, waits bool) {
	known, ok := s.judged[t]
	if !ok {
		known.finding, known.waits = s.judge(t)
		s.judged[t] = known
	}
	return known.finding, known.waits
}

func (s *snapshot) judge(t controllers.Target) (f *Finding, waits bool) {
	o, there := s.objects[t]
	if !there {
		return s.missing(t), false
	}
	k := s.kindOf(t)
	sub := newSubject(k, o)
	down, broken := s.down[k.Controller]
	finding := func(code, message string, remedies ...string) *Finding {
		return &Finding{Object: t, Code: code, Message: message, Remedies: remedies}
	}
	switch {
	case controllers.Path{"metadata.deletionTimestamp"}.String(o) != "":
		held := strings.Join(kube.Finalizers(o), ", ")
		if broken {
			return &down, false
		}
		return finding("deleting", "it is being deleted and waits for its finalizers: "+held,
			fmt.Sprintf("see what the controller says: flux logs --kind=%s --name=%s --namespace=%s", t.Kind, t.Name, t.Namespace)), false
	case k.Suspension.Is(o):
		note := "it is suspended"
		if why := controllers.SuspendNote(o); why != "" {
			note += ": " + why
		}
		return finding("suspended", note, sub.command("resume")), false
	case sub.ready.Status == "True" && controllers.Observed(o):
		return s.behind(sub), false
	case broken:
		return &down, false
	case sub.ready.Reason == "" && sub.ready.Status != "True":
		return finding("unreconciled", "its controller has not looked at it yet", sub.command("reconcile")), true
	case sub.ready.Status == "Unknown":
		message := sub.ready.Message
		if doing, ok := controllers.FindCondition(o, "Reconciling"); ok && doing.Message != "" {
			message = doing.Message
		}
		return finding("progressing", "its controller is at work: "+oneLine(message)), true
	}
	if slices.Contains(upstream, sub.ready.Reason) {
		return finding("waiting", oneLine(sub.ready.Message), sub.again()), true
	}
	if controllers.RetriesExhausted(o) {
		return finding("retries-exhausted", "its retries are exhausted: "+oneLine(sub.ready.Message), "mend the cause", sub.command("reconcile", "--with-source", "--reset")), false
	}
	if found, ok := recognise(sub); ok {
		return &found, false
	}
	return finding("not-ready", spoken(sub.ready), sub.again()), false
}

// spoken is what an object says of itself in a line.
func spoken(r controllers.Readiness) string { return join(r.Reason, r.Message) }

// behind tells of an object that is ready and has not begun with what its
// source has fetched, although it had the time.
func (s *snapshot) behind(sub subject) *Finding {
	for _, e := range s.graph.From(s.vertex(targetOf(sub.kind, sub.object))) {
		source := s.objects[target(e.To)]
		k := s.kindOf(target(e.To))
		if e.Relation != "source" || source == nil {
			continue
		}
		fetched, at := k.Result.String(source), controllers.Path{"status.artifact.lastUpdateTime"}.String(source)
		when, err := time.Parse(time.RFC3339, at)
		if err != nil || fetched == "" || sub.kind.Tried(sub.object, k, fetched) || s.Now.Sub(when) < patienceWithNews {
			continue
		}
		return &Finding{
			Object: targetOf(sub.kind, sub.object), Code: "behind", Remedies: []string{sub.command("reconcile")},
			Message: fmt.Sprintf("it has not begun with %s, which %s fetched at %s", fetched, target(e.To), when.UTC().Format(time.RFC3339)),
		}
	}
	return nil
}

// missing tells of an object that others name and that is not there.
func (s *snapshot) missing(t controllers.Target) *Finding {
	if s.hidden(t) != nil {
		return nil // nobody knows
	}
	f := &Finding{Object: t, Code: "missing", Message: "it does not exist"}
	for other := range s.objects {
		if other.Kind == t.Kind && other.Name == t.Name {
			f.Remedies = append(f.Remedies, fmt.Sprintf("it exists in namespace %q: name that in the reference", other.Namespace))
		}
	}
	slices.Sort(f.Remedies)
	f.Remedies = append(f.Remedies, "create it, or correct the reference to it")
	return f
}
