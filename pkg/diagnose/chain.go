package diagnose

import (
	"slices"
	"strings"

	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/pkg/controllers"
)

// upstream are the reasons with which controllers report that an object waits
// for another.
var upstream = []string{
	"ArtifactFailed", "DependencyNotReady", "SourceNotReady", "SourceNotFound", "SourceUnavailable", "GitRepositoryNotAvailable", "NoSourceArtifact",
	"HelmChartNotReady", "Progressing", "ProgressingWithRetry", "",
}

// chain returns the findings from an object to its root cause, or nil if the object is healthy.
func (s *judge) chain(t controllers.ID) []Finding {
	var chain []Finding
	at := map[controllers.ID]int{}
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
	var members []controllers.ID
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
			hint.Command("flux deps "+strings.ToLower(t.Kind)+" %s -n %s", t.Name, t.Namespace),
		},
	}
}

// blame replaces the finding of a waiting object with the failure in its own message if none of its
// dependencies has a problem.
func (s *judge) blame(f *Finding) {
	o, there := s.objects[f.Object]
	if !there || f.Code != "waiting" {
		return
	}
	if found, ok := recognize(s.subject(kindOf(f.Object), o)); ok {
		*f = found.Finding
	}
}

// holdUp returns the object that an object waits for. Sources precede dependencies, and the first
// object with a problem is returned. A ready source may block an object that reports that it waits:
// the source is suspended at an earlier revision, or its artifact is unavailable because its
// controller is down.
func (s *judge) holdUp(t controllers.ID, says bool) (controllers.ID, bool) {
	for _, relation := range []string{"source", "image", "dependency", "provider"} {
		for _, e := range s.graph.From(t) {
			if e.Relation != relation {
				continue
			}
			up := e.To
			if o, there := s.objects[up]; there && !says && kindOf(up).IsReady(o) {
				continue
			}
			if f, _ := s.local(up); f != nil {
				return up, true
			}
		}
	}
	return controllers.ID{}, false
}
