package assert

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/internal/kube/expression"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diagnose"
	"github.com/fluxkit/flux/pkg/testrun/fault"
)

// Runner runs tests in a sandbox.
type Runner struct {
	Client *kube.Client
	// Home is the namespace of the controllers.
	Home       string
	Repository Repository
	Evaluator  expression.Evaluator
	Faults     fault.Injector
	// Permission is the value of policy.PushAnnotation that exempts an automation from suspension in the sandbox.
	Permission string
	// Sink receives the notifications.
	Sink *Sink
	// Settle waits until all Flux objects have been reconciled or are stuck, and Failed returns the objects that are then not
	// ready. Failed may be nil.
	Settle func(context.Context) error
	Failed func() []diagnose.Failed
	// Now is the clock.
	Now func() time.Time
	// Progress is called with each step.
	Progress func(step string)

	hub   *hub
	stop  context.CancelFunc
	tests []Test
	// began is the moment from which the first steps take events into account.
	began int
	// ended is the moment before the last step's faults end.
	ended int
	// described holds the root causes that results already contain.
	described map[string]bool
}

// Start watches the objects of the tests' assertions until Close. Earlier events and notifications are not observed.
func (r *Runner) Start(ctx context.Context, tests []Test) {
	ctx, r.stop = context.WithCancel(ctx)
	r.hub, r.tests, r.described = newHub(r.Client, r.Now), tests, map[string]bool{}
	r.Sink.connect(r.hub)
	r.hub.watchEvents(ctx)
	r.permit(ctx)
	for _, t := range tests {
		for _, s := range t.Steps {
			for _, e := range s.Expect {
				for _, ref := range e.Refs() {
					r.hub.object(ctx, ref)
				}
			}
		}
	}
}

// Begin makes the first steps of tests ignore earlier events, for example from before the push of
// an upgrade's head. By default, they take all events since Start into account.
func (r *Runner) Begin(ctx context.Context) {
	r.hub.refresh(ctx)
	r.began = r.hub.mark()
}

// Close stops the watches.
func (r *Runner) Close() {
	r.stop()
	r.hub.wait.Wait()
}

// Run runs the tests one after the other. It returns an error only if ctx ends.
func (r *Runner) Run(ctx context.Context) ([]Result, error) {
	var results []Result
	for _, t := range r.tests {
		results = append(results, r.test(ctx, t)...)
		if ctx.Err() != nil {
			return results, context.Cause(ctx)
		}
	}
	return results, nil
}

// test runs the steps of a test. The results of the steps after a failed step are undetermined.
func (r *Runner) test(ctx context.Context, t Test) []Result {
	var results []Result
	failed, from := "", r.began
	for _, s := range t.Steps {
		if failed != "" {
			results = append(results, Skip([]Test{{Name: t.Name, Steps: []Step{s}}}, fmt.Sprintf("the step %q has failed", failed))...)
			continue
		}
		if len(results) == 0 && s.acts() {
			from = r.hub.mark()
		}
		r.Progress("test " + t.Name + ": " + s.Name)
		of := r.step(ctx, t, s, from)
		for _, one := range of {
			if one.Outcome != Passed {
				failed = s.Name
			}
		}
		results, from = append(results, of...), r.ended
	}
	return results
}

// check is an assertion of a step that is being evaluated.
type check struct {
	*Expectation
	// from is the moment from which the step takes events into account.
	from int
	// held reports whether a state assertion was true before the step.
	held  bool
	drift *drift
	// last is the last evaluation, and at its time.
	last evaluation
	at   time.Time
}

// drift is a change that Flux must correct.
type drift struct{ before, changed controllers.Object }

// result returns the result of an assertion.
func (e *Expectation) result(t Test, s Step, j evaluation) Result {
	result := Result{Test: t.Name, Step: s.Name, File: e.File, Line: e.Line, Outcome: Passed, Expected: e.String()}
	switch {
	case j.holds:
	case j.unknown != "":
		result.Outcome, result.Actual = Undetermined, j.unknown
	default:
		result.Outcome, result.Actual, result.Since = Failed, j.actual, j.since
	}
	return result
}

// errStepTimeout is the cancellation cause of a step that times out.
var errStepTimeout = errors.New("the step timed out")

// step runs a step and evaluates its assertions until they hold, the controllers are settled, or time
// is up.
func (r *Runner) step(ctx context.Context, t Test, s Step, from int) []Result {
	started := r.Now()
	ctx, cancel := context.WithTimeoutCause(ctx, s.Timeout, errStepTimeout)
	defer cancel()
	checks := make([]*check, len(s.Expect))
	for i := range s.Expect {
		checks[i] = &check{Expectation: &s.Expect[i], from: from}
		checks[i].held = checks[i].isState() && observer{r}.evaluate(ctx, checks[i]).holds
	}
	var results []Result
	end, err := r.act(ctx, s, checks)
	if err != nil {
		failed := Result{Test: t.Name, Step: s.Name, File: s.File, Line: s.Line, Outcome: Failed, Expected: "the actions of the step succeed", Actual: err.Error(), Seconds: seconds(r.Now().Sub(started))}
		results = append(results, failed)
		for _, c := range checks {
			c.last = evaluation{unknown: "the actions of the step have failed"}
		}
	} else if !r.watch(ctx, checks, fault.Lasting(s.Faults)) && len(checks) == 0 {
		results = append(results, Result{
			Test: t.Name, Step: s.Name, File: s.File, Line: s.Line, Outcome: Undetermined, Expected: "the controllers finish within the timeout",
			Actual: "they have not", Seconds: seconds(r.Now().Sub(started)),
		})
	}
	observer{r}.addCauses(ctx, checks)
	if err := r.end(ctx, end); err != nil {
		results = append(results, Result{
			Test: t.Name, Step: s.Name, File: s.File, Line: s.Line, Outcome: Undetermined, Expected: "all faults of the step are removed", Actual: err.Error(), Seconds: seconds(r.Now().Sub(started)),
		})
	}
	for _, c := range checks {
		result := c.result(t, s, c.last)
		result.Seconds = seconds(c.at.Sub(started))
		results = append(results, result)
	}
	return results
}

// endTime bounds the time for ending faults, which is independent of the step's timeout.
const endTime = time.Minute

// end ends the faults of a step.
func (r *Runner) end(ctx context.Context, end fault.End) error {
	r.ended = r.hub.mark()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTime)
	defer cancel()
	return end(ctx)
}

// settle waits until the controllers are settled. It first waits for faults with a duration to end.
func (r *Runner) settle(ctx context.Context, lasting time.Duration) error {
	timer := time.NewTimer(lasting)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
	}
	return r.Settle(ctx)
}

// watch evaluates assertions after each change. It reports whether the controllers are settled.
func (r *Runner) watch(ctx context.Context, checks []*check, lasting time.Duration) (settled bool) {
	settling, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- r.settle(settling, lasting) }()
	done := false
	defer func() {
		cancel()
		if !done {
			<-ended //nolint:errcheck // it was canceled
		}
	}()
	pending := checks
	for {
		if pending = r.evaluateAll(ctx, pending, settled); len(pending) == 0 && (len(checks) > 0 || settled) {
			return settled
		}
		select {
		case <-ctx.Done():
			for _, c := range pending {
				c.expire(ctx, settled)
			}
			return settled
		case err := <-ended:
			done = true
			if settled = err == nil; settled {
				r.hub.refresh(ctx)
				break
			}
			for _, c := range pending {
				c.last = evaluation{unknown: "waiting for the controllers: " + err.Error()}
			}
			if ctx.Err() == nil {
				return settled
			}
		case <-r.hub.changed:
		}
	}
}

// expire records the result of an assertion that is undecided at the end of the step.
func (c *check) expire(ctx context.Context, settled bool) {
	j := &c.last
	switch {
	case !errors.Is(context.Cause(ctx), errStepTimeout):
		*j = evaluation{unknown: context.Cause(ctx).Error()}
	case j.holds:
		// The assertion was true before the step, so the effect of the step is unknown.
		*j = evaluation{unknown: "the assertion was already true before the step, and the controllers have not finished within the timeout"}
	case j.unknown == "" && !settled && !c.isLate():
		j.actual += " (when the step timed out)"
	}
}

// evaluateAll evaluates assertions and returns the undecided ones.
func (r *Runner) evaluateAll(ctx context.Context, checks []*check, settled bool) []*check {
	var pending []*check
	for _, c := range checks {
		j := observer{r}.evaluate(ctx, c)
		if ctx.Err() != nil {
			pending = append(pending, c)
			continue
		}
		c.last, c.at = j, r.Now()
		switch {
		case j.holds && (settled || !c.held):
		case settled && !c.isLate():
		default:
			pending = append(pending, c)
		}
	}
	return pending
}
