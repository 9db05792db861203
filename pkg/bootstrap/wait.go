package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/internal/redact"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diagnose"
	"github.com/fluxkit/flux/pkg/reconcile"
)

// requestAnnotation requests a reconciliation of an object.
const requestAnnotation = "reconcile.fluxcd.io/requestedAt"

func (r *run) rollout() *diagnose.Rollout {
	return &diagnose.Rollout{
		Client: r.client, Namespace: r.namespace(),
		Names:   slices.Sorted(slices.Values(r.plan.Components.Components)),
		Trouble: func(t diagnose.Trouble) { r.progress.Warning("%s: %s", t.Name, redact.Text(t.Message)) },
	}
}

// waitForComponents waits until the controllers run. A controller that does not
// start is reported here, and not as a source without a status.
func (r *run) waitForComponents(ctx context.Context) error {
	r.progress.Waiting("waiting for the controllers to be ready")
	if err := r.rollout().Wait(ctx); err != nil {
		return r.withTimeout(ctx, err)
	}
	return nil
}

func (r *run) confirmComponents(ctx context.Context) error {
	r.progress.Action("confirming components are healthy")
	rollout := r.rollout()
	rollout.Ready = func(name string) { r.progress.Success("%s: deployment ready", name) }
	if err := rollout.Wait(ctx); err != nil {
		return r.withTimeout(ctx, err)
	}
	r.progress.Success("all components are healthy")
	return nil
}

// withTimeout adds the cause of a timeout to the error of a wait.
func (r *run) withTimeout(ctx context.Context, err error) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return failure("increase --timeout, or fix the cause; run bootstrap again to resume",
			"%s: %w", context.Cause(ctx), err)
	}
	return err
}

func (r *run) waitForSource(ctx context.Context) error {
	w := &wait{run: r, kind: kind("GitRepository"), before: r.found.source, revision: r.headRevision(), requested: r.secretChanged, hint: r.sourceHint}
	o, err := w.do(ctx)
	if err != nil {
		return err
	}
	r.revision = controllers.Path{"status.artifact.revision"}.String(o)
	return nil
}

// sourceHint returns the remedy for a GitRepository that is not ready, with the
// public key and the flags of this run.
func (r *run) sourceHint(c controllers.Condition) string {
	message := strings.ToLower(c.Message)
	switch {
	case strings.Contains(message, "x509"), strings.Contains(message, "certificate"):
		return "set --ca-file to the CA certificate of the server, and run the command again"
	case r.plan.bySSH() && strings.Contains(message, "unable to authenticate"):
		return fmt.Sprintf("grant the key in Secret %s/%s read access to the repository, then run the command again: %s",
			r.namespace(), r.plan.Sync.SecretName, strings.TrimSpace(string(r.key.pair.Public)))
	default:
		return "fix the cause and run bootstrap again; it resumes"
	}
}

func (r *run) waitForSync(ctx context.Context) error {
	w := &wait{run: r, kind: kind("Kustomization"), before: r.found.sync, revision: r.revision, hint: r.syncHint}
	_, err := w.do(ctx)
	return err
}

func (r *run) syncHint(controllers.Condition) string {
	return "fix it in the repository, commit and push, then run the command again"
}

// wait is the wait for an object to be ready at the revision of this run.
type wait struct {
	run  *run
	kind controllers.Kind
	// before is the object before this run, nil if it did not exist.
	before   controllers.Object
	revision string
	// requested requires the result of a requested reconciliation, even if the
	// object is ready at the revision.
	requested bool
	hint      func(controllers.Condition) string
	// reported is the last progress message that was reported.
	reported string
}

// temporaryReasons are the reasons of a Ready condition that resolve without a
// change by the user.
var temporaryReasons = []string{"ArtifactFailed", "DependencyNotReady", "Progressing", "ProgressingWithRetry", "NewGeneration"}

func (w *wait) do(ctx context.Context) (controllers.Object, error) {
	r := w.run
	r.progress.Waiting("waiting for %s %q to be reconciled", w.kind.Kind, r.namespace()+"/"+r.namespace())
	goal := reconcile.Goal{State: reconcile.Ready, Attempt: true, Revision: w.revision, RevisionSuffices: true, Temporary: temporaryReasons, Earlier: r.earlier(w.revision)}
	if w.requested {
		goal.Revision = ""
	}
	subject := reconcile.Subject{Kind: w.kind, Namespace: r.namespace(), Name: r.namespace()}
	if w.before != nil {
		o, done, err := w.request(ctx)
		if err != nil {
			return nil, err
		}
		if done {
			r.progress.Success("%s reconciled successfully", w.kind.Kind)
			return o, nil
		}
		subject.Object, goal.Token = o, r.token
	}
	engine := reconcile.Waiter{Watches: reconcile.NewWatches(r.client), Progress: func(p reconcile.Progress) { w.report(p.Object) }}
	result := engine.Await(ctx, goal, subject, nil)
	if err := w.failure(ctx, result); err != nil {
		return nil, err
	}
	r.progress.Success("%s reconciled successfully", w.kind.Kind)
	return result.Last, nil
}

// earlier returns the revisions from before this run. A controller that reports
// one of them has read an outdated source, for example from a cache. A revision
// that is unknown was pushed by another client after this run.
func (r *run) earlier(awaited string) []string {
	revisions := []string{r.before}
	for _, o := range []controllers.Object{r.found.source, r.found.sync} {
		for _, path := range []controllers.Path{{"status.artifact.revision"}, {"status.lastAppliedRevision"}} {
			revisions = append(revisions, path.String(o))
		}
	}
	return slices.DeleteFunc(revisions, func(revision string) bool { return revision == "" || revision == awaited })
}

// request requests a reconciliation of an object that existed before, since its
// controller would wait for the interval. It requests none if the object is ready
// at the revision.
func (w *wait) request(ctx context.Context) (o controllers.Object, done bool, err error) {
	r, res := w.run, kube.Of(w.kind)
	if o, err = r.client.Get(ctx, res, r.namespace(), r.namespace()); err != nil {
		return nil, false, fmt.Errorf("reading %s %q: %w", w.kind.Kind, r.namespace(), err)
	}
	done = !w.requested && reconcile.Goal{State: reconcile.Ready, Revision: w.revision}.Reached(w.kind, o)
	switch suspended := w.kind.Suspension.Is(o); {
	case done && suspended:
		r.progress.Warning("%s %s/%s is suspended: the cluster does not sync from the repository until %s", w.kind.Kind, r.namespace(), r.namespace(), w.resume())
		return o, true, nil
	case done:
		return o, true, nil
	case suspended:
		return nil, false, w.suspended()
	}
	if o, err = r.client.Annotate(ctx, res, r.namespace(), r.namespace(), map[string]any{requestAnnotation: r.token}); err != nil {
		return nil, false, fmt.Errorf("requesting a reconciliation of %s %q: %w", w.kind.Kind, r.namespace(), err)
	}
	return o, false, nil
}

// resume returns the command that resumes the object.
func (w *wait) resume() string {
	return fmt.Sprintf("flux resume %s %s -n %s", w.kind.Noun(), w.run.namespace(), w.run.namespace())
}

func (w *wait) suspended() error {
	return failure("run '"+w.resume()+"'", "%s %s/%s is suspended", w.kind.Kind, w.run.namespace(), w.run.namespace())
}

// report reports the message of the Reconciling condition when it changes.
func (w *wait) report(o controllers.Object) {
	c, ok := controllers.FindCondition(o, "Reconciling")
	if !ok || c.Status != "True" || c.Message == "" || c.Message == w.reported || !current(o, c) {
		return
	}
	w.reported = c.Message
	w.run.progress.Waiting("%s: %s", w.kind.Kind, redact.Text(c.Message))
}

// failure returns the error of a wait, nil if the object is ready.
func (w *wait) failure(ctx context.Context, result reconcile.Result) error {
	var final *reconcile.FinalError
	condition, _ := controllers.FindCondition(result.Last, "Ready")
	const notReady = "is not ready"
	switch err := result.Err; {
	case err == nil:
		return nil
	case errors.Is(err, reconcile.ErrDeleted):
		return fmt.Errorf("%s %q was deleted during the wait", w.kind.Kind, w.run.namespace())
	case errors.As(err, &final) && final.Suspended:
		return w.suspended()
	case errors.As(err, &final) && final.Source.Name != "":
		return w.unready(result.Last, notReady, controllers.Condition{Reason: "its source " + final.Source.String() + " failed", Message: final.Message}, nil)
	case errors.As(err, &final) && final.Stalled:
		return w.unready(result.Last, notReady, controllers.Condition{Reason: "Stalled", Message: final.Message}, nil)
	case errors.As(err, &final):
		return w.unready(result.Last, notReady, condition, nil)
	case !errors.Is(err, context.DeadlineExceeded) || ctx.Err() == nil:
		return err
	case condition.Status == "True":
		missed := reconcile.Goal{State: reconcile.Ready, Revision: w.revision}.Missed(w.kind, result.Last)
		condition = controllers.Condition{Reason: missed, Message: "the pushed revision is " + w.revision}
	case condition.Reason == "":
		condition = controllers.Condition{Reason: "Unknown", Message: "no status reported by its controller"}
	}
	return w.unready(result.Last, "was not reconciled: "+context.Cause(ctx).Error(), condition, result.Err)
}

// unready returns the error of an object with the reason and the message of a
// condition.
func (w *wait) unready(o controllers.Object, fact string, c controllers.Condition, err error) error {
	return &Error{&UnreadyError{
		Kind: w.kind.Kind, Namespace: w.run.namespace(), Name: w.run.namespace(), Object: o,
		Message: fmt.Sprintf("%s: %s: %s", fact, c.Reason, safeMessage(c)), Err: err,
	}, w.hint(c)}
}

// safeMessage returns the message of a condition without secrets and temporary
// folders.
func safeMessage(c controllers.Condition) string {
	return redact.Text(diagnose.WithoutFolders(c.Message))
}

// isReady reports whether an object of the catalogue is ready at its current
// generation.
func isReady(kindName string, o controllers.Object) bool {
	return o != nil && reconcile.Goal{State: reconcile.Ready}.Reached(kind(kindName), o)
}

// current reports whether a condition has the object's current generation.
func current(o controllers.Object, c controllers.Condition) bool {
	generation, _ := controllers.Path{"metadata.generation"}.Lookup(o)
	switch g := generation.(type) {
	case float64:
		return c.ObservedGeneration == 0 || c.ObservedGeneration >= int64(g)
	case int64:
		return c.ObservedGeneration == 0 || c.ObservedGeneration >= g
	default:
		return true
	}
}
