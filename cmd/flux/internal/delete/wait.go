package delete

import (
	"context"
	"errors"
	"fmt"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/clierr"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/report"
	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/internal/kube/objref"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/reconcile"
)

// await waits until the objects are deleted. The API server returned the objects whose finalizers
// delay the deletion; the others are already deleted.
func (d *deletion) await(ctx context.Context, targets []objref.Target) error {
	d.printWaiting(targets)
	var subjects []objref.Target
	for _, t := range targets {
		if t.Object == nil {
			d.act.App.UI.Success("%s deleted", report.Label(t, d.act.Many()))
		} else {
			subjects = append(subjects, t)
		}
	}
	progress := report.NewProgress(d.act.App.UI, d.act.App.Now, len(subjects), reconcile.Deleted)
	watches := reconcile.NewWatches(d.act.Client)
	watches.ShareMany(subjects)
	engine := reconcile.Waiter{
		Watches: watches, Goal: reconcile.Goal{State: reconcile.Deleted},
		Progress: func(p reconcile.Progress) { progress.Update(p.Subject, p.Object, deletionState(p.Object)) },
		Ended:    func(r reconcile.Result) { progress.Done(r.Subject) },
	}
	results := engine.Run(ctx, subjects)
	progress.Close()
	var failed error
	for _, result := range results {
		failed = errors.Join(failed, d.ended(result))
	}
	return failed
}

func (d *deletion) printWaiting(targets []objref.Target) {
	switch len(targets) {
	case 0:
	case 1:
		d.act.App.UI.Waiting("waiting until %s is deleted", targets[0])
	default:
		d.act.App.UI.Waiting("waiting until %s are deleted", objref.Count(targets))
	}
}

// deletionState describes why an object is not deleted yet.
func deletionState(o controllers.Object) string {
	return "its deletion waits for " + report.Finalizers(o)
}

// ended prints the result for an object, and returns its error.
func (d *deletion) ended(result reconcile.Result) error {
	t, err := result.Subject, result.Err
	switch {
	case err == nil:
		d.act.App.UI.Success("%s deleted", report.Label(t, d.act.Many()))
		if owner, ok := recreator(t.Object); ok {
			d.act.App.UI.Warning("%s applies %s and will recreate it", owner, t)
		}
		return nil
	case errors.Is(err, context.DeadlineExceeded):
		late := hint.Errorf(fmt.Sprintf("check that %s is running: flux check", t.Kind.Controller),
			"%s", report.TimedOut(d.act.App.Global.Timeout, t.Named(), "be deleted", deletionState(result.Last)))
		d.act.Fail(t, late)
		d.act.App.Report(late)
		return clierr.ErrReported
	}
	d.act.Fail(t, err)
	if d.act.User.Err() != nil {
		d.act.App.UI.Warning("%s is not deleted yet: its deletion continues in the cluster, waiting for %s", t.Named(), report.Finalizers(result.Last))
	}
	return err
}
