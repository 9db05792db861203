package diagnose

import (
	"context"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/controllers"
)

// Doctor finds out why objects of Flux are not as they should be. It reads
// what the controllers say, follows references to what is at the root of it,
// and asks pods, events and logs about that. It changes nothing.
type Doctor struct {
	Client *kube.Client
	// Home is the namespace of the controllers.
	Home string
	Now  time.Time
	// Kustomizer runs kustomize, see build.Options.
	Kustomizer build.Kustomizer
}

// patienceWithNews is how long a controller may take to begin with what its
// source has fetched before that is told as trouble.
const patienceWithNews = time.Minute

// Scope says what Everything looks at, and how much of it is reported.
type Scope struct {
	// Namespace is "" for all namespaces.
	Namespace string
	// Fallback is the namespace to look at where objects may not be listed in
	// all of them; "" for none.
	Fallback string
	// Cases bounds the root causes that are examined and returned, those that
	// block most first; 0 is no bound.
	Cases int
}

// Everything looks at all objects of Flux in a scope and at the controllers.
// What has one root is one case.
func (d Doctor) Everything(ctx context.Context, scope Scope) (Verdict, error) {
	s, err := d.survey(ctx, scope.Namespace, scope.Fallback, apierrors.IsForbidden)
	if err != nil {
		return Verdict{}, err
	}
	v := Verdict{}
	known := caseIndex{}
	if scope.Namespace == "" || scope.Namespace == d.Home {
		for _, name := range sortedKeys(s.down) {
			known.add(&v, controllers.Target{}, []Finding{s.down[name]})
			v.Problems++
		}
	}
	for _, t := range s.targets() {
		if scope.Namespace == "" || t.Namespace == scope.Namespace {
			v.Looked++
		}
	}
	for _, vertex := range s.graph.Vertices {
		t := target(vertex.Object)
		o, there := s.objects[t]
		if !there || scope.Namespace != "" && t.Namespace != scope.Namespace {
			continue
		}
		if s.kindOf(t).Suspension.Is(o) {
			continue
		}
		if chain := s.chain(t); len(chain) > 0 {
			known.add(&v, t, chain)
			v.Problems++
		}
	}
	v.limit(scope.Cases, s.Now)
	v.Unknown = s.everythingUnknown(scope)
	s.examineAll(ctx, v.Cases)
	s.undeliveredEverywhere(ctx, &v, scope.Namespace)
	v.separate(0, s.Now)
	return v, nil
}

// limit sorts the cases by what they block and keeps the first n, 0 for all, of
// those that are problems and of those that are young progress: one kind must
// not displace the other.
func (v *Verdict) limit(n int, now time.Time) {
	slices.SortStableFunc(v.Cases, func(a, b Case) int { return len(b.Blocks) - len(a.Blocks) })
	v.RootCauses = len(v.Cases)
	var problems, young []Case
	for _, c := range v.Cases {
		if c.young(now) {
			young = append(young, c)
		} else {
			problems = append(problems, c)
		}
	}
	if n == 0 {
		n = len(v.Cases)
	}
	more := Verdict{Cases: young[min(n, len(young)):], RootCauses: v.RootCauses, Problems: v.Problems}
	more.separate(0, now)
	v.Progress, v.RootCauses, v.Problems = more.Progress, more.RootCauses, more.Problems
	v.Cases = slices.Concat(problems[:min(n, len(problems))], young[:min(n, len(young))])
}

// everythingUnknown are the gaps in what was read of a scope. The controllers
// are a part of the whole cluster; those of one namespace may look without them.
func (s *snapshot) everythingUnknown(scope Scope) []string {
	var lines []string
	if s.blind != "" && (scope.Namespace == "" || s.blind == s.vacant() || scope.Namespace == s.Home) {
		lines = append(lines, s.blind)
	}
	return append(lines, s.gaps()...)
}

// examinedAtOnce bounds how many cases are asked about at the same time.
const examinedAtOnce = 8

// examineAll asks about the roots of cases. It reports whether the failure at one
// may be an old one, since nothing has happened to its object for long.
func (s *snapshot) examineAll(ctx context.Context, cases []Case) (unconfirmed bool) {
	var asking sync.WaitGroup
	old := make([]bool, len(cases))
	slots := make(chan struct{}, examinedAtOnce)
	for i := range cases {
		asking.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			old[i] = s.examine(ctx, &cases[i])
		})
	}
	asking.Wait()
	return slices.Contains(old, true)
}

// root is what cases are told apart by.
type root struct {
	object controllers.Target
	code   string
}

// caseIndex is the place of the case of each root.
type caseIndex map[root]int

// add puts an object's chain to the case of its root.
func (x caseIndex) add(v *Verdict, t controllers.Target, chain []Finding) {
	last := chain[len(chain)-1]
	i, known := x[root{last.Object, last.Code}]
	if !known {
		i = len(v.Cases)
		x[root{last.Object, last.Code}] = i
		v.Cases = append(v.Cases, Case{Object: last.Object, Root: last, Chain: []Finding{last}})
	}
	if t != last.Object && t != (controllers.Target{}) && !slices.Contains(last.Cycle, t) {
		v.Cases[i].Blocks = append(v.Cases[i].Blocks, t)
	}
}

// Object looks at one object of Flux. That it is not there is an error of the
// API (IsNotFound).
func (d Doctor) Object(ctx context.Context, k controllers.Kind, namespace, name string) (Verdict, error) {
	t := controllers.Target{Kind: k.Kind, Namespace: namespace, Name: name}
	s, err := d.inspect(ctx, []controllers.Target{t}, nil, apierrors.IsForbidden)
	if err != nil {
		return Verdict{}, err
	}
	if err := s.notRead(k, t); err != nil {
		return Verdict{}, err
	}
	v := Verdict{Looked: 1}
	if s.consult(ctx, &v, t) {
		s.verify(ctx, &v, t)
	}
	return s.conclude(v), nil
}

// notRead is why an object that was asked for could not be read, nil where it was.
func (s *snapshot) notRead(k controllers.Kind, t controllers.Target) error {
	switch {
	case s.objects[t] != nil:
		return nil
	case s.unread[t] != nil:
		return s.unread[t]
	}
	return apierrors.NewNotFound(schema.GroupResource{Group: k.Group, Resource: k.Resource}, t.Name)
}

// open are the codes of roots that leave open what is behind them, silent those
// of objects whose controller may not work.
var (
	open   = []string{"", "unreconciled", "progressing", "waiting", "not-ready"}
	silent = []string{"unreconciled", "behind", "progressing"}
)

// unknown is what could not be read and could change the verdict on an object:
// what it waits for, unless its cause is certain; the controllers, where it says
// nothing, or where there are none at all.
func (s *snapshot) unknown(cases []Case) []string {
	has := func(codes []string) bool {
		return slices.ContainsFunc(cases, func(c Case) bool { return slices.Contains(codes, c.Root.Code) })
	}
	var lines []string
	if s.blind != "" && (s.blind == s.vacant() || has(silent)) {
		lines = append(lines, s.blind)
	}
	if len(cases) == 0 || has(open) {
		lines = append(lines, s.gaps()...)
	}
	return lines
}

// consult adds the case of an object, and those of what keeps newer revisions
// from coming to it. It reports whether the object says that it is ready.
func (s *snapshot) consult(ctx context.Context, v *Verdict, t controllers.Target) bool {
	own := len(v.Cases)
	healthy := s.found(v, t)
	if doubtful(v.Cases[own:]) && s.newlyLeaderless(ctx, v) {
		v.Cases = v.Cases[:own]
		healthy = s.found(v, t)
	}
	unconfirmed, unread := s.detail(ctx, v.Cases[own:])
	if unconfirmed && s.newlyLeaderless(ctx, v) {
		v.Cases = v.Cases[:own]
		healthy = s.found(v, t)
		_, unread = s.detail(ctx, v.Cases[own:])
	}
	v.Unknown = append(v.Unknown, unread...)
	v.separate(own, s.Now)
	v.Facts = s.factsOf(t)
	return healthy
}

// found adds the cases of an object as far as they are known without further
// requests, and reports whether the object says that it is ready.
func (s *snapshot) found(v *Verdict, t controllers.Target) bool {
	chain := s.chain(t)
	if len(chain) > 0 {
		v.Cases = append(v.Cases, caseOf(t, chain))
	}
	s.stale(v, t)
	return len(chain) == 0
}

// detail asks about the roots of cases, and meanwhile what else they block. It
// reports whether one of the failures may be old, and what could not be read.
func (s *snapshot) detail(ctx context.Context, cases []Case) (unconfirmed bool, unread []string) {
	var blocked [][]controllers.Target
	var reading sync.WaitGroup
	plain := slices.Clone(cases) // examine changes them
	reading.Go(func() { blocked, unread = s.blocks(ctx, plain) })
	unconfirmed = s.examineAll(ctx, cases)
	reading.Wait()
	for i := range blocked {
		cases[i].Blocks = blocked[i]
	}
	return unconfirmed, unread
}

// stale adds the cases of what keeps newer revisions from coming to an object.
func (s *snapshot) stale(v *Verdict, t controllers.Target) {
	for _, e := range s.graph.From(s.vertex(t)) {
		if e.Relation != "source" && e.Relation != "image" && e.Relation != "provider" {
			continue
		}
		up := target(e.To)
		chain := s.chain(up)
		if len(chain) == 0 {
			continue
		}
		root := chain[len(chain)-1]
		if v.caseOf(root) >= 0 {
			continue
		}
		first := Finding{Object: t, Code: "stale", Message: up.String() + " cannot fetch new revisions"}
		if e.Relation == "provider" {
			first.Message = "its notifications are sent through " + up.String()
		}
		v.Cases = append(v.Cases, caseOf(t, append([]Finding{first}, chain...)))
	}
}

func caseOf(t controllers.Target, chain []Finding) Case {
	return Case{Object: t, Root: chain[len(chain)-1], Chain: chain}
}
