package diagnose

import (
	"maps"
	"slices"

	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diagnose/observe"
	"github.com/fluxkit/flux/pkg/diagnose/rules"
)

// everything returns the root causes of all objects in a scope, and of the controllers.
func (e *evaluation) everything(scope Scope) Result {
	r := Result{}
	known := causeIndex{}
	if scope.contains(e.home) && !scope.narrow() {
		for _, name := range slices.Sorted(maps.Keys(e.installation.down)) {
			known.add(&r, controllers.ID{}, []rules.Finding{e.installation.down[name]})
		}
		for _, name := range slices.Sorted(maps.Keys(e.installation.crashes)) {
			if c := e.installation.crashes[name]; c.updating {
				known.add(&r, controllers.ID{}, []rules.Finding{c.finding})
			}
		}
	}
	for _, t := range e.snapshot.IDs() {
		if scope.selects(t, e.snapshot.Objects[t]) {
			r.Checked++
		}
	}
	for _, vertex := range e.snapshot.Graph.Vertices {
		t := vertex.Object
		o, there := e.snapshot.Objects[t]
		if there && scope.selects(t, o) && !observe.KindOf(t).Suspension.Is(o) {
			known.add(&r, t, e.chain(t))
		}
	}
	return r
}

// root identifies a root cause.
type root struct {
	object controllers.ID
	code   string
}

// causeIndex maps a root to the index of its cause.
type causeIndex map[root]int

// add adds the chain of an object to the cause with its root.
func (x causeIndex) add(r *Result, t controllers.ID, chain []rules.Finding) {
	if len(chain) == 0 {
		return
	}
	r.Problems++
	last := chain[len(chain)-1]
	at := root{last.Object, last.Code}
	i, known := x[at]
	if !known {
		i = len(r.Causes)
		x[at] = i
		r.Causes = append(r.Causes, single(last))
	}
	if t != last.Object && t != (controllers.ID{}) && !slices.Contains(last.Cycle, t) {
		r.Causes[i].Blocks = append(r.Causes[i].Blocks, t)
	}
}

// add adds the root causes of an object that are known without further requests, and reports whether the object is ready.
func (e *evaluation) add(r *Result, t controllers.ID) (ready bool) {
	chain := e.chain(t)
	if len(chain) > 0 {
		r.Causes = append(r.Causes, causeOf(t, chain...))
	}
	e.addStale(r, t)
	return len(chain) == 0
}

// addStale adds the root causes of sources that cannot fetch new revisions for an object.
func (e *evaluation) addStale(r *Result, t controllers.ID) {
	for _, edge := range e.snapshot.Graph.From(t) {
		if edge.Relation != "source" && edge.Relation != "image" && edge.Relation != "provider" {
			continue
		}
		chain := e.chain(edge.To)
		if len(chain) == 0 || r.with(chain[len(chain)-1]) != nil {
			continue
		}
		first := rules.Finding{Object: t, Code: "stale", Message: edge.To.String() + " cannot fetch new revisions"}
		if edge.Relation == "provider" {
			first.Message = "its notifications are sent through " + edge.To.String()
		}
		r.Causes = append(r.Causes, causeOf(t, append([]rules.Finding{first}, chain...)...))
	}
}

// addFailed adds the root cause of an object for which a command has failed. Sources that cannot fetch new revisions count only
// if the object itself has no failure.
func (e *evaluation) addFailed(r *Result, t controllers.ID) {
	chain := e.chain(t)
	if now, k := e.snapshot.Current[t], observe.KindOf(t); now != nil && len(chain) > 0 && k.IsReady(now) && !k.IsReady(e.snapshot.Objects[t]) {
		chain = []rules.Finding{{Object: t, Code: "recovered", Message: "it is ready now"}}
	}
	if len(chain) == 0 {
		own := len(r.Causes)
		e.addStale(r, t)
		if len(r.Causes) == own {
			e.shareStale(r, t)
		}
		return
	}
	if c := r.with(chain[len(chain)-1]); c != nil {
		c.Also = append(c.Also, t)
		return
	}
	r.Causes = append(r.Causes, causeOf(t, chain...))
}

// shareStale adds an object to the existing cause of its sources.
func (e *evaluation) shareStale(r *Result, t controllers.ID) {
	for _, edge := range e.snapshot.Graph.From(t) {
		chain := e.chain(edge.To)
		if edge.Relation != "source" && edge.Relation != "image" || len(chain) == 0 {
			continue
		}
		if c := r.with(chain[len(chain)-1]); c != nil {
			c.Also = append(c.Also, t)
			return
		}
	}
}
