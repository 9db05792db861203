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

// Doctor diagnoses Flux objects. It reads their conditions, follows their
// references to the root cause, and reads pods, events and logs for details. It
// is read-only.
type Doctor struct {
	Client *kube.Client
	// Home is the namespace of the controllers.
	Home string
	Now  time.Time
	// Kustomizer runs kustomize, see build.Options.
	Kustomizer build.Kustomizer
	// Recording is true if the cluster is a recording, which has an index of some artifacts instead of
	// their files.
	Recording bool
}

// newRevisionGrace is the time that a controller has to start reconciling a new
// revision before the delay is reported.
const newRevisionGrace = time.Minute

// Scope is the scope of Everything and the number of root causes.
type Scope struct {
	// Namespace is "" for all namespaces.
	Namespace string
	// Fallback is the namespace to read if objects may not be listed in all
	// namespaces, or "".
	Fallback string
	// Cases is the maximum number of root causes to examine and return, sorted
	// by the number of blocked objects. 0 means no limit.
	Cases int
}

// Everything diagnoses all Flux objects in a scope and the controllers. Objects
// with the same root cause are one case.
func (d Doctor) Everything(ctx context.Context, scope Scope) (Verdict, error) {
	s, err := d.survey(ctx, scope.Namespace, scope.Fallback, apierrors.IsForbidden)
	if err != nil {
		return Verdict{}, err
	}
	v := Verdict{}
	known := caseIndex{}
	if scope.Namespace == "" || scope.Namespace == d.Home {
		for _, name := range sortedKeys(s.down) {
			known.add(&v, controllers.ID{}, []Finding{s.down[name]})
			v.Problems++
		}
	}
	for _, t := range s.targets() {
		if scope.Namespace == "" || t.Namespace == scope.Namespace {
			v.Looked++
		}
	}
	for _, vertex := range s.graph.Vertices {
		t := vertex.Object
		o, there := s.objects[t]
		if !there || scope.Namespace != "" && t.Namespace != scope.Namespace {
			continue
		}
		if kindOf(t).Suspension.Is(o) {
			continue
		}
		if chain := s.chain(t); len(chain) > 0 {
			known.add(&v, t, chain)
			v.Problems++
		}
	}
	v.limit(scope.Cases, s.Now)
	v.Unknown = s.everythingUnknown(scope)
	s.examiner.examineAll(ctx, v.Cases)
	s.deliveries.undeliveredEverywhere(ctx, &v, scope.Namespace)
	v.separate(0, s.Now)
	return v, nil
}

// limit sorts the cases by the number of blocked objects. It keeps the first n
// problems and the first n cases of young progress, so that neither displaces
// the other. 0 keeps all.
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

// everythingUnknown describes what could not be read in a scope. The
// controllers count for the cluster and for their own namespace.
func (s *judge) everythingUnknown(scope Scope) []string {
	var lines []string
	if s.blind != "" && (scope.Namespace == "" || s.blind == s.vacant() || scope.Namespace == s.Home) {
		lines = append(lines, s.blind)
	}
	return append(lines, s.gaps()...)
}

// examinedAtOnce is the maximum number of cases to examine in parallel.
const examinedAtOnce = 8

// examineAll examines the roots of cases. It reports whether a failure may be
// outdated because its object has no recent events.
func (s *examiner) examineAll(ctx context.Context, cases []Case) (unconfirmed bool) {
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

// root identifies the root cause of a case.
type root struct {
	object controllers.ID
	code   string
}

// caseIndex maps a root to the index of its case.
type caseIndex map[root]int

// add adds the chain of an object to the case of its root.
func (x caseIndex) add(v *Verdict, t controllers.ID, chain []Finding) {
	last := chain[len(chain)-1]
	i, known := x[root{last.Object, last.Code}]
	if !known {
		i = len(v.Cases)
		x[root{last.Object, last.Code}] = i
		v.Cases = append(v.Cases, Case{Object: last.Object, Root: last, Chain: []Finding{last}})
	}
	if t != last.Object && t != (controllers.ID{}) && !slices.Contains(last.Cycle, t) {
		v.Cases[i].Blocks = append(v.Cases[i].Blocks, t)
	}
}

// Object diagnoses one Flux object. It returns a NotFound error if the object
// does not exist.
func (d Doctor) Object(ctx context.Context, k controllers.Kind, namespace, name string) (Verdict, error) {
	t := k.ID(namespace, name)
	s, err := d.inspect(ctx, []controllers.ID{t}, nil, apierrors.IsForbidden)
	if err != nil {
		return Verdict{}, err
	}
	if err := s.notRead(k, t); err != nil {
		return Verdict{}, err
	}
	v := Verdict{Looked: 1}
	if s.consult(ctx, &v, t) {
		if s.deliveries.delivers(t) && !kindOf(t).Suspension.Is(s.objects[t]) {
			s.deliveries.undelivered(ctx, &v, t)
		}
		s.verifier.verify(ctx, &v, t)
	}
	return s.conclude(v), nil
}

// notRead returns the error for a requested object that could not be read.
func (s *judge) notRead(k controllers.Kind, t controllers.ID) error {
	switch {
	case s.objects[t] != nil:
		return nil
	case s.unread[t] != nil:
		return s.unread[t]
	}
	return apierrors.NewNotFound(schema.GroupResource{Group: k.Group, Resource: k.Resource}, t.Name)
}

// open are the codes of roots that do not name a definite cause. silent are the
// codes of objects whose controller may not be working.
var (
	open   = []string{"", "unreconciled", "progressing", "waiting", "not-ready"}
	silent = []string{"unreconciled", "behind", "progressing"}
)

// unknown describes what could not be read and could change the verdict on an
// object: its dependencies, unless the cause is certain, and the controllers,
// if the object reports no failure or if no controller was found.
func (s *judge) unknown(cases []Case) []string {
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

// consult adds the cases of an object and of its sources that cannot fetch new
// revisions. It reports whether the object is ready.
func (s *diagnosis) consult(ctx context.Context, v *Verdict, t controllers.ID) bool {
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

// found adds the cases that need no further requests, and reports whether the
// object is ready.
func (s *judge) found(v *Verdict, t controllers.ID) bool {
	chain := s.chain(t)
	if len(chain) > 0 {
		v.Cases = append(v.Cases, caseOf(t, chain))
	}
	s.stale(v, t)
	return len(chain) == 0
}

// detail examines the roots of cases and, at the same time, finds the objects
// that they block. It reports whether a failure may be outdated, and what could
// not be read.
func (s *diagnosis) detail(ctx context.Context, cases []Case) (unconfirmed bool, unread []string) {
	var blocked [][]controllers.ID
	var reading sync.WaitGroup
	plain := slices.Clone(cases) // examine changes them
	reading.Go(func() { blocked, unread = s.blocks(ctx, plain) })
	unconfirmed = s.examiner.examineAll(ctx, cases)
	reading.Wait()
	for i := range blocked {
		cases[i].Blocks = blocked[i]
	}
	return unconfirmed, unread
}

// stale adds the cases of sources that cannot fetch new revisions for an
// object.
func (s *judge) stale(v *Verdict, t controllers.ID) {
	for _, e := range s.graph.From(t) {
		if e.Relation != "source" && e.Relation != "image" && e.Relation != "provider" {
			continue
		}
		up := e.To
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

func caseOf(t controllers.ID, chain []Finding) Case {
	return Case{Object: t, Root: chain[len(chain)-1], Chain: chain}
}
