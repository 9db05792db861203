package diagnose

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diagnose/observe"
	"github.com/fluxkit/flux/pkg/diagnose/rollout"
)

const (
	// lostLease is the age of a lease, as a multiple of the lease duration, after which it has no holder.
	lostLease = 3
	// electionTime is the maximum time from the start of a container until it is the leader: a lease that a killed leader has not
	// released must expire first.
	electionTime = time.Minute
	// leaseDuration is the lease duration of the Flux controllers. When a leader stops, it releases its lease: it removes its
	// name and sets the duration to one second.
	leaseDuration = 35 * time.Second
)

// inactive lists the codes of root causes that do not report a failure. Their controller may be inactive although its Deployment
// is available.
var inactive = []string{"unreconciled", "behind", "progressing", "waiting", "deleting"}

// mayBeInactive reports whether the controllers of an object may be inactive: the object is ready, but its status may be
// outdated, or its root cause is not a definite failure.
func mayBeInactive(causes []Cause) bool {
	return len(causes) == 0 || slices.ContainsFunc(causes, func(c Cause) bool { return slices.Contains(inactive, c.Root().Code) })
}

// findLeaderless reads the leases once and reports whether it found a controller without a leader. The caller must then evaluate
// the objects again.
func (s *diagnosis) findLeaderless(ctx context.Context, r *Result) bool {
	in := s.installation
	if in.leasesRead || in.unread != "" {
		return false
	}
	before := len(in.down)
	if err := in.readLeases(ctx, apierrors.IsForbidden); err != nil {
		r.Unknown = append(r.Unknown, observe.Unread("the leases of the controllers", err))
	}
	if len(in.down) == before {
		return false
	}
	clear(s.evaluation.known)
	return true
}

// readLeases adds the controllers that run without a leader to the failed controllers. It ignores tolerated errors.
func (in *installation) readLeases(ctx context.Context, tolerated func(error) bool) error {
	in.leasesRead = true
	_, err := in.cluster.List(ctx, "coordination.k8s.io/v1", "Lease", in.cluster.Home, func(o controllers.Object) error {
		in.readLease(ctx, o)
		return nil
	})
	if err == nil || apierrors.IsNotFound(err) || tolerated(err) {
		return nil
	}
	return fmt.Errorf("listing the leases in namespace %q: %w", in.cluster.Home, err)
}

// leaseOf returns the name of a controller's lease. With a label selector, it ends with the first bytes of the selector's SHA-256
// checksum; an old lease without them may remain.
func leaseOf(controller string, s scope) string {
	name := controller + "-leader-election"
	if s.labels == "" {
		return name
	}
	sum := sha256.Sum256([]byte(s.labels))
	return fmt.Sprintf("%s-%x", name, sum[:4])
}

func (in *installation) readLease(ctx context.Context, o controllers.Object) {
	name := in.leases[controllers.Name(o)]
	if name == "" || in.down[name].Code != "" {
		return
	}
	text := func(field string) string { return controllers.Path{"spec." + field}.String(o) }
	renewed, err := time.Parse(time.RFC3339Nano, text("renewTime"))
	duration, _ := time.ParseDuration(text("leaseDurationSeconds") + "s")
	last := fmt.Sprintf("the last leader, %s, renewed", text("holderIdentity"))
	if text("holderIdentity") == "" {
		duration, last = leaseDuration, "the last leader released"
	}
	if err != nil || duration == 0 || in.now.Sub(renewed) < lostLease*duration {
		return
	}
	pods, _ := in.cluster.Pods(ctx, in.cluster.Home)
	if started := rollout.LastStart(rollout.DeploymentID(in.cluster.Home, name), pods); in.now.Sub(started).Abs() < electionTime {
		in.fail(name, "controller-starting", "the "+name+" is starting, and no pod is the leader yet")
		f := in.down[name]
		f.Since = started
		in.down[name] = f
		return
	}
	in.fail(name, "controller-leaderless",
		fmt.Sprintf("no pod of the %s is the leader: %s the lease at %s", name, last, renewed.UTC().Format(time.RFC3339)),
		hint.Command("kubectl -n %s rollout restart deployment %s", in.cluster.Home, name))
}
