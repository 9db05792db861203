package rollback

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/clierr"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/report"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/requests"
	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/internal/kube/objref"
	"github.com/fluxkit/flux/internal/secrets/redact"
	"github.com/fluxkit/flux/internal/terminal/output"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/reconcile"
	"github.com/fluxkit/flux/pkg/rollback"
)

// The results of the command.
const (
	planned    = "planned"
	requested  = "requested"
	rolledBack = "rolledBack"
	undone     = "undone"
	declined   = "declined"
)

// answer is the JSON and YAML output.
type answer struct {
	*rollback.Plan
	Result string `json:"result"`
	// Revision is the revision of the object after the rollback.
	Revision string `json:"revision,omitempty"`
	Error    string `json:"error,omitempty"`
}

// set records the error of the command.
func (r *answer) set(err error) {
	if err != nil && !errors.Is(err, clierr.ErrReported) {
		r.Error, _ = clierr.Explain(err, nil)
		r.Error = redact.Text(r.Error)
	}
}

// run is one execution of the command.
type run struct {
	*app.App
	*options
	// user is the context of the command without --timeout.
	user   context.Context
	plan   *rollback.Plan
	answer answer
}

// all prints the plan, asks for confirmation, and changes the cluster.
func (r *run) all() error {
	r.print()
	if r.dryRun {
		return nil
	}
	if !r.yes {
		if err := app.Approve(r.user, r.App, r.question()); err != nil {
			r.answer.Result = declined
			return err
		}
	}
	ctx, stop := r.WithTimeout(r.user) // without the time of the prompt
	defer stop()
	return r.change(ctx)
}

func (r *run) question() string {
	if r.undo {
		return fmt.Sprintf("Restore the state of %s before the rollback?", r.plan.Object)
	}
	return fmt.Sprintf("Roll back %s?", r.plan.Object)
}

// print prints the plan.
func (r *run) print() {
	p := r.plan
	if r.undo {
		r.UI.Action("%s: restore the state before the rollback to %s", p.Object, report.ShortRevision(p.Before))
	} else {
		r.UI.Action("%s: %s → %s", p.Object, cmp.Or(report.ShortRevision(p.CurrentRevision), none), report.ShortRevision(p.TargetRevision))
	}
	r.UI.Action("%s: .%s: %s → %s", p.Pinned, p.Field, cmp.Or(p.Before, none), cmp.Or(p.After, none))
	for _, owner := range p.Suspend {
		r.UI.Action("%s will be suspended, because it applies %s with this field and would revert the change", owner, p.Pinned)
	}
	for _, owner := range p.Resume {
		r.UI.Action("%s will be resumed", owner)
	}
	if len(p.Affected) > 0 {
		r.UI.Warning("%s also use the source and change with it: %s", output.Amount(len(p.Affected), "other object"), controllers.JoinNames(p.Affected, ", "))
	}
	for _, note := range p.Notes {
		r.UI.Warning("%s", note)
	}
	for _, text := range p.Unknown {
		r.UI.Warning("not checked: %s", text)
	}
}

// none is the text for an empty value.
const none = "(not set)"

// change applies the plan, and waits for the source and the object.
func (r *run) change(ctx context.Context) error {
	token := r.Now().Format(time.RFC3339Nano)
	step, err := r.plan.Apply(ctx, token)
	if err != nil {
		return err
	}
	r.answer.Result = requested
	for _, owner := range r.plan.Suspend {
		r.UI.Success("%s suspended", owner)
	}
	r.UI.Success("%s: .%s set to %s", r.plan.Pinned, r.plan.Field, cmp.Or(r.plan.After, none))
	for _, owner := range r.plan.Resume {
		r.UI.Success("%s resumed", owner)
	}
	if !r.plan.Own() {
		if r.wait {
			if _, err := r.await(ctx, step); err != nil {
				return r.pinned(err)
			}
		}
		if step, err = r.plan.Request(ctx, token); err != nil {
			return r.pinned(err)
		}
	}
	if !r.wait {
		r.UI.Success("reconciliation of %s requested", r.plan.Object)
		return nil
	}
	last, err := r.await(ctx, step)
	if r.answer.Revision = r.plan.Current(last); err != nil {
		return r.pinned(err)
	}
	r.answer.Result = rolledBack
	if r.undo {
		r.answer.Result = undone
	}
	return nil
}

// pinned reports that the change remains although the object is not ready.
func (r *run) pinned(err error) error {
	if r.undo || r.user.Err() != nil {
		return err
	}
	object := r.plan.Object
	k, _ := object.Flux()
	r.UI.Warning("%s stays pinned; %s", r.plan.Pinned, hint.Command("flux rollback "+k.Noun()+" %s -n %s --undo restores the previous state", object.Name, object.Namespace))
	return err
}

// await waits until an object is ready at the revision, and returns its last state.
func (r *run) await(ctx context.Context, s rollback.Step) (controllers.Object, error) {
	r.UI.Waiting("waiting until %s is %s", s.Named(), shown(s.Goal))
	progress := report.NewProgress(r.UI, r.Now, 1, reconcile.Ready)
	client, err := r.Client()
	if err != nil {
		return nil, err
	}
	engine := reconcile.Waiter{
		Watches: reconcile.NewWatches(client), Goal: s.Goal,
		Progress: func(p reconcile.Progress) {
			progress.Update(p.Subject, p.Object, report.Condition(p.Subject.Kind, p.Object))
		},
		Ended: func(reconcile.Result) {},
	}
	result := engine.Run(ctx, []objref.Target{s.Target})[0]
	progress.Close()
	if err := requests.Unready(r.App, result, s.Named().String()); err != nil {
		var failure *report.UnreadyError
		if errors.As(err, &failure) {
			r.answer.set(err)
			err = report.Fail(r.user, r.App, report.Diagnoser(r.App, client), failure)
		}
		return result.Last, err
	}
	r.UI.Success("%s is ready: %s", s.Named(), result.Done())
	return result.Last, nil
}

// shown returns a goal with a shortened revision.
func shown(g reconcile.Goal) string { return report.ShortRevision(g.String()) }
