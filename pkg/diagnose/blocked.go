package diagnose

import (
	"context"
	"slices"
	"sync"

	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diagnose/observe"
	"github.com/fluxkit/flux/pkg/tree"
)

// detail examines root causes and, concurrently, finds the objects that they block. It reports whether a failure may be
// outdated, and what could not be read.
func (s *diagnosis) detail(ctx context.Context, causes []Cause) (unconfirmed bool, unread []string) {
	of := slices.Clone(s.needing)
	for _, c := range causes {
		t := c.Root().Object
		if _, ofFlux := t.Flux(); ofFlux && !slices.Contains(of, t) {
			of = append(of, t)
		}
	}
	var owners []controllers.ID
	for _, t := range of {
		if owner, applied := controllers.Manager(s.snapshot.Objects[t]); applied && !slices.Contains(owners, owner) {
			owners = append(owners, owner)
		}
	}
	var reading sync.WaitGroup
	var err error
	s.dependents = nil
	if len(of) > 0 {
		reading.Go(func() { s.dependents, err = s.cluster.Dependents(ctx, of, owners, s.installation.uninstalled) })
	}
	unconfirmed = s.examineAll(ctx, causes)
	reading.Wait()
	switch {
	case err != nil:
		return unconfirmed, []string{observe.Unread("dependents", err)}
	case s.dependents == nil:
		return unconfirmed, nil
	}
	g := s.dependents.Graph(s.snapshot)
	for i := range causes {
		causes[i].Blocks = blockedBy(g, causes[i])
	}
	return unconfirmed, s.dependents.Gaps()
}

// blockedBy returns the objects that a root cause blocks, without its own object and the members of a cycle.
func blockedBy(g *tree.Graph, c Cause) []controllers.ID {
	root := c.Root()
	return slices.DeleteFunc(g.Blocks(root.Object), func(o controllers.ID) bool { return o == c.Object || slices.Contains(root.Cycle, o) })
}
