package diagnose

import (
	"context"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/fluxkit/flux/pkg/controllers"
)

// quiet are the codes of roots that do not name a failure of their own: their
// controller may do nothing although its Deployment is available.
var quiet = []string{"unreconciled", "behind", "progressing", "waiting", "deleting"}

// doubtful reports whether the controllers of an object may do nothing: it is
// ready, which it may have been before, or its root says nothing.
func doubtful(cases []Case) bool {
	return len(cases) == 0 || slices.ContainsFunc(cases, func(c Case) bool { return slices.Contains(quiet, c.Root.Code) })
}

// readLeaders adds the controllers without a leader to those that do not work.
// Where the leases may not be read, nobody knows of these.
func (s *snapshot) readLeaders(ctx context.Context, bearable func(error) bool) error {
	s.leadersAsked = true
	if err := s.leaders(ctx, s.down); err != nil && !bearable(err) {
		return err
	}
	return nil
}

// newlyLeaderless asks, once, which controllers have no leader, and reports
// whether one was found: what was judged before is judged again then.
func (s *snapshot) newlyLeaderless(ctx context.Context, v *Verdict) bool {
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
	s.judged = map[controllers.Target]judgement{}
	return true
}

// confirms reports whether an event of an object shows that its controller
// works on it.
func confirms(now time.Time, e Event) bool { return now.Sub(e.At) <= eventEvidence }
