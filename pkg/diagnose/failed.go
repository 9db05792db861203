package diagnose

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/fluxkit/flux/pkg/controllers"
)

// Failed is a Flux object for which a command has failed.
type Failed struct {
	controllers.ID
	// Last is the object as the command last received it, or nil. It explains
	// the failure even if the controller has started again.
	Last controllers.Object
}

// examined is the maximum number of root causes to examine in detail.
const examined = 10

// Failed diagnoses why commands have failed. Objects with the same root cause are one case, and an
// object without a failure is in no case. The verdict supplements an error that was already
// reported, so Failed returns no error: Unknown describes what could not be read before ctx ended.
func (d Doctor) Failed(ctx context.Context, failed []Failed) Verdict {
	if len(failed) == 0 {
		return Verdict{}
	}
	var known []controllers.Object
	for _, f := range failed {
		if f.Last != nil {
			o := maps.Clone(f.Last) // the response to a patch may have no kind
			k, _ := f.ID.Flux()
			o["apiVersion"], o["kind"] = k.APIVersion(), k.Kind
			known = append(known, o)
		}
	}
	v := Verdict{Looked: len(failed), Problems: len(failed)}
	var targets []controllers.ID
	for _, f := range failed {
		targets = append(targets, f.ID)
	}
	s, err := d.inspect(ctx, targets, known, func(err error) bool { return !errors.Is(err, context.Canceled) })
	if err != nil {
		v.Unknown = []string{unseen(err) + ": the Flux resources"}
		return v
	}
	judge := func() {
		v.Cases = nil
		for _, t := range targets {
			s.failure(&v, t)
		}
	}
	judge()
	unexplained := slices.ContainsFunc(targets, func(t controllers.ID) bool {
		_, ok := v.Of(t)
		return !ok
	})
	if (unexplained || doubtful(v.Cases)) && s.newlyLeaderless(ctx, &v) {
		judge()
	}
	v.RootCauses, v.Unknown = len(v.Cases), append(v.Unknown, s.relevant(v, targets)...)
	s.examiner.examineAll(ctx, v.Cases[:min(len(v.Cases), examined)])
	if errors.Is(ctx.Err(), context.DeadlineExceeded) && len(v.Unknown) == 0 {
		v.Unknown = []string{"timed out reading: events, pods and logs"}
	}
	return v
}

// relevant describes what could not be read and could change the verdict on
// failed objects. The controllers matter if an object reports no failure, and
// forbidden objects if a cause is open: tenants may read little.
func (s *judge) relevant(v Verdict, failed []controllers.ID) []string {
	silent, unclear := false, false
	for _, t := range failed {
		c, _ := v.Of(t)
		silent = silent || c.Root.Code == "" || c.Root.Code == "unreconciled"
		unclear = unclear || slices.Contains(open, c.Root.Code)
	}
	var lines []string
	if s.blind != "" && (silent || unclear && s.blind != s.vacant()) {
		lines = append(lines, s.blind)
	}
	if unclear {
		lines = append(lines, s.gaps()...)
	}
	return lines
}

// failure adds the case of a failed object. Sources that cannot fetch new
// revisions count only if the object itself has no failure.
func (s *judge) failure(v *Verdict, t controllers.ID) {
	chain := s.chain(t)
	if now := s.now[t]; now != nil && len(chain) > 0 && kindOf(t).IsReady(now) && !kindOf(t).IsReady(s.objects[t]) {
		chain = []Finding{{Object: t, Code: "recovered", Message: "it has become ready since"}}
	}
	if len(chain) == 0 {
		own := len(v.Cases)
		s.stale(v, t)
		if len(v.Cases) == own {
			s.shared(v, t)
		}
		return
	}
	if i := v.caseOf(chain[len(chain)-1]); i >= 0 {
		v.Cases[i].Also = append(v.Cases[i].Also, t)
		return
	}
	v.Cases = append(v.Cases, caseOf(t, chain))
}

// shared adds an object to the existing case of its sources.
func (s *judge) shared(v *Verdict, t controllers.ID) {
	for _, e := range s.graph.From(t) {
		chain := s.chain(e.To)
		if e.Relation != "source" && e.Relation != "image" || len(chain) == 0 {
			continue
		}
		if i := v.caseOf(chain[len(chain)-1]); i >= 0 {
			v.Cases[i].Also = append(v.Cases[i].Also, t)
			return
		}
	}
}
