package diagnose

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"

	"github.com/fluxkit/flux/pkg/controllers"
)

// Failed is an object of Flux with which a command has not come to a good end.
type Failed struct {
	controllers.Target
	// Last is the object as the command has seen it last, nil where it has not:
	// it explains what has failed even where its controller has begun anew.
	Last controllers.Object
}

// examined bounds how many roots are asked about in detail.
const examined = 10

// Failed finds out why commands have failed. What has one root is one case; an
// object that nothing speaks against is in none. It is an addition to an answer
// that is there already, so that nothing is an error: what cannot be had before
// ctx ends is Unknown.
func (d Doctor) Failed(ctx context.Context, failed []Failed) Verdict {
	if len(failed) == 0 {
		return Verdict{}
	}
	var known []controllers.Object
	for _, f := range failed {
		if f.Last != nil {
			o := maps.Clone(f.Last) // what a patch or a watch brings need not name its kind
			k, _ := controllers.FindKind(f.Kind)
			o["apiVersion"], o["kind"] = k.APIVersion(), k.Kind
			known = append(known, o)
		}
	}
	v := Verdict{Looked: len(failed)}
	s, err := d.look(ctx, failed[0].Namespace, known, func(err error) bool { return !errors.Is(err, context.Canceled) })
	if err != nil {
		v.Unknown = []string{unseen(err) + ": any kind of Flux"}
		return v
	}
	for _, f := range failed {
		s.failure(&v, key(f.Target))
	}
	v.Unknown = s.relevant(v, failed)
	var asking sync.WaitGroup
	for i := range v.Cases[:min(len(v.Cases), examined)] {
		asking.Go(func() { s.examine(ctx, &v.Cases[i]) })
	}
	asking.Wait()
	if errors.Is(ctx.Err(), context.DeadlineExceeded) && len(v.Unknown) == 0 {
		v.Unknown = []string{"no answer in time about: events, pods and logs"}
	}
	return v
}

// open are the codes of roots that leave open what is behind them.
var open = []string{"", "unreconciled", "progressing", "waiting", "not-ready"}

// relevant is what is unknown that could change the verdict. Where the
// controllers are is of interest only while one is silent; what the user may not
// see, only while something is left open: tenants see little, and know it.
func (s *snapshot) relevant(v Verdict, failed []Failed) []string {
	silent, unclear := false, false
	for _, f := range failed {
		c, _ := v.Of(f.Target)
		silent = silent || c.Root.Code == "" || c.Root.Code == "unreconciled"
		unclear = unclear || slices.Contains(open, c.Root.Code)
	}
	return slices.DeleteFunc(slices.Clone(s.unknown), func(line string) bool {
		return !silent && line == s.vacant() || !unclear && (line == s.closed() || slices.Contains(s.barred(), line))
	})
}

// failure adds the case of an object that failed. What only keeps newer
// revisions from it counts where the object itself has nothing against it.
func (s *snapshot) failure(v *Verdict, t controllers.Target) {
	chain := s.chain(t)
	if now := s.now[t]; now != nil && len(chain) > 0 && fine(s.kindOf(t), now) && !fine(s.kindOf(t), s.objects[t]) {
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
	v.Cases = append(v.Cases, s.caseOf(t, chain))
}

// shared puts an object to the case that already tells why its sources bring
// nothing newer.
func (s *snapshot) shared(v *Verdict, t controllers.Target) {
	for _, e := range s.graph.From(s.vertex(t)) {
		chain := s.chain(target(e.To))
		if e.Relation != "source" && e.Relation != "image" || len(chain) == 0 {
			continue
		}
		if i := v.caseOf(chain[len(chain)-1]); i >= 0 {
			v.Cases[i].Also = append(v.Cases[i].Also, t)
			return
		}
	}
}
