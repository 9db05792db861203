package diagnose

import (
	"context"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/fluxkit/flux/internal/kube/event"
	"github.com/fluxkit/flux/pkg/controllers"
)

// quiet lists the codes of roots without a failure of their own. Their controller may be inactive
// although its Deployment is available.
var quiet = []string{"unreconciled", "behind", "progressing", "waiting", "deleting"}

// doubtful reports whether the controllers of an object may be inactive: it is
// ready, possibly from before, or its root has no definite failure.
func doubtful(cases []Case) bool {
	return len(cases) == 0 || slices.ContainsFunc(cases, func(c Case) bool { return slices.Contains(quiet, c.Root.Code) })
}

// readLeaders adds the controllers without a leader to the failed controllers.
// A forbidden list of leases is ignored.
func (s *installation) readLeaders(ctx context.Context, bearable func(error) bool) error {
	s.leadersAsked = true
	if err := s.leaders(ctx); err != nil && !bearable(err) {
		return err
	}
	return nil
}

// dropUnused drops the findings for missing controllers whose kinds have no
// objects.
func (s *installation) dropUnused(targets []controllers.ID) {
	used := map[string]bool{}
	for _, t := range targets {
		used[kindOf(t).Controller] = true
	}
	for name, f := range s.down {
		if f.Code != "controller-missing" {
			continue
		}
		s.uninstalled = append(s.uninstalled, name)
		if !used[name] {
			delete(s.down, name) // it is not installed and not needed
		}
	}
}

// newlyLeaderless reads the leases once and reports whether it found a
// controller without a leader. Findings are then computed again.
func (s *diagnosis) newlyLeaderless(ctx context.Context, v *Verdict) bool {
	if s.leadersAsked || s.blind != "" {
		return false
	}
	before := len(s.down)
	if err := s.readLeaders(ctx, apierrors.IsForbidden); err != nil {
		v.Unknown = append(v.Unknown, unseen(err)+": the leases of the controllers")
	}
	if len(s.down) == before {
		return false
	}
	s.judged = map[controllers.ID]judgment{}
	return true
}

// confirms reports whether an event shows that the controller of the object is
// active.
func confirms(now time.Time, e event.Event) bool { return now.Sub(e.At) <= eventEvidence }
