package diagnose

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diagnose/observe"
)

// Failed is a Flux object for which a command has failed.
type Failed struct {
	ID controllers.ID
	// Last is the object as the command last received it, or nil. It explains the failure even if the controller has started
	// another attempt.
	Last controllers.Object
}

// failedExamined is the maximum number of root causes of failures to examine in detail.
const failedExamined = 10

// Failed diagnoses why commands have failed. Objects with the same root cause share one Cause, and an object without a failure
// has none. The result supplements an error that was already reported, so Failed returns no error: Unknown describes what could
// not be read before ctx ended.
func (d Diagnoser) Failed(ctx context.Context, failed []Failed) Result {
	if len(failed) == 0 {
		return Result{}
	}
	var targets []controllers.ID
	var known []controllers.Object
	for _, f := range failed {
		targets = append(targets, f.ID)
		if f.Last != nil {
			o := maps.Clone(f.Last) // the response to a patch may have no kind
			o["apiVersion"], o["kind"] = observe.KindOf(f.ID).APIVersion(), f.ID.Kind
			known = append(known, o)
		}
	}
	r := Result{Checked: len(failed), Problems: len(failed)}
	s, err := d.inspect(ctx, targets, known, func(err error) bool { return !errors.Is(err, context.Canceled) })
	if err != nil {
		r.Unknown = []string{observe.Unread("the Flux resources", err)}
		return r
	}
	evaluate := func() {
		r.Causes = nil
		for _, t := range targets {
			s.evaluation.addFailed(&r, t)
		}
	}
	evaluate()
	unexplained := slices.ContainsFunc(targets, func(t controllers.ID) bool {
		_, ok := r.Of(t)
		return !ok
	})
	if (unexplained || mayBeInactive(r.Causes)) && s.findLeaderless(ctx, &r) {
		evaluate()
	}
	r.RootCauses, r.Unknown = len(r.Causes), append(r.Unknown, s.evaluation.unknownOfFailed(r, targets)...)
	s.examineAll(ctx, r.Causes[:min(len(r.Causes), failedExamined)])
	if errors.Is(ctx.Err(), context.DeadlineExceeded) && len(r.Unknown) == 0 {
		r.Unknown = []string{"timed out reading events, pods and logs"}
	}
	return r
}
