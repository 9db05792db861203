package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/internal/kube/objref"
	"github.com/fluxkit/flux/internal/secrets/redact"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diagnose/failure"
	"github.com/fluxkit/flux/pkg/diagnose/rollout"
	"github.com/fluxkit/flux/pkg/reconcile"
)

// waiter returns the waiter for the component Deployments.
func (i *installation) waiter() *rollout.Waiter {
	return &rollout.Waiter{
		Client: i.cluster.client, Namespace: i.plan.namespace(),
		Names:   slices.Sorted(slices.Values(i.plan.Components.Components)),
		Problem: i.warn,
	}
}

// warn reports each controller problem once, even if both waits for the
// controllers encounter it.
func (i *installation) warn(p rollout.Problem) {
	i.warnings.Lock()
	defer i.warnings.Unlock()
	if text := p.Name + ": " + redact.Text(p.Message); !slices.Contains(i.warned, text) {
		i.warned = append(i.warned, text)
		i.progress.Warning("%s", text)
	}
}

// waitForComponents waits until the controllers run. It reports a controller that
// does not start, which would otherwise appear as a source without a status.
func (i *installation) waitForComponents(ctx context.Context) error {
	i.progress.Waiting("waiting for the controllers to be ready")
	if err := i.waiter().Wait(ctx); err != nil {
		return withTimeout(ctx, err)
	}
	return nil
}

func (i *installation) confirmComponents(ctx context.Context) error {
	i.progress.Action("confirming components are healthy")
	waiter := i.waiter()
	waiter.Ready = func(name string) { i.progress.Success("%s: deployment ready", name) }
	if err := waiter.Wait(ctx); err != nil {
		return withTimeout(ctx, err)
	}
	i.progress.Success("all components are healthy")
	return nil
}

// withTimeout adds the cause of a timeout to the error of a wait.
func withTimeout(ctx context.Context, err error) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return hint.Errorf("increase --timeout, or fix the cause; run bootstrap again to resume",
			"%s: %w", context.Cause(ctx), err)
	}
	return err
}

func (i *installation) waitForSource(ctx context.Context) error {
	w := &wait{in: i, kind: kind("GitRepository"), before: i.cluster.source, revision: i.commits.repository.headRevision(), requested: i.access.changed, remedy: i.sourceHint}
	o, err := w.do(ctx)
	if err != nil {
		return err
	}
	i.revision = controllers.Path{"status.artifact.revision"}.String(o)
	return nil
}

// sourceHint returns the remedy for a GitRepository that is not ready, with the
// public key and the flags of this run.
func (i *installation) sourceHint(c controllers.Condition) string {
	message := strings.ToLower(c.Message)
	switch {
	case strings.Contains(message, "x509"), strings.Contains(message, "certificate"):
		return "set --ca-file to the CA certificate of the server, and run the command again"
	case i.plan.bySSH() && strings.Contains(message, "unable to authenticate"):
		return fmt.Sprintf("grant the key in Secret %s/%s read access to the repository, then run the command again: %s",
			i.plan.namespace(), i.plan.Sync.SecretName, strings.TrimSpace(string(i.access.key.pair.Public)))
	default:
		return "fix the cause and run bootstrap again to resume"
	}
}

func (i *installation) waitForSync(ctx context.Context) error {
	w := &wait{in: i, kind: kind("Kustomization"), before: i.cluster.sync, revision: i.revision, remedy: syncHint}
	_, err := w.do(ctx)
	return err
}

func syncHint(controllers.Condition) string {
	return "fix it in the repository, commit and push, then run the command again"
}

// wait waits for an object to be ready at the revision of this run.
type wait struct {
	in   *installation
	kind controllers.Kind
	// before is the object before this run, nil if it did not exist.
	before   controllers.Object
	revision string
	// requested is set to wait for the requested reconciliation even if the object is already ready at
	// the revision.
	requested bool
	remedy    func(controllers.Condition) string
	// reported holds the progress messages that were already reported.
	reported map[string]bool
}

// temporaryReasons lists the Ready condition reasons that resolve without user action.
var temporaryReasons = []string{"ArtifactFailed", "DependencyNotReady", "Progressing", "ProgressingWithRetry", "NewGeneration"}

func (w *wait) do(ctx context.Context) (controllers.Object, error) {
	in, namespace := w.in, w.in.plan.namespace()
	in.progress.Waiting("waiting for %s %q to be reconciled", w.kind.Kind, namespace+"/"+namespace)
	goal := reconcile.Goal{State: reconcile.Ready, Attempt: true, Revision: w.revision, RevisionSuffices: true, Temporary: temporaryReasons, Earlier: in.earlier(w.revision)}
	if w.requested {
		goal.Revision = ""
	}
	subject := objref.Target{Kind: w.kind, Namespace: namespace, Name: namespace}
	if w.before != nil {
		o, done, err := w.request(ctx)
		if err != nil {
			return nil, err
		}
		if done {
			in.progress.Success("%s reconciled successfully", w.kind.Kind)
			return o, nil
		}
		subject.Object, goal.Token = o, in.token
	}
	engine := reconcile.Waiter{Watches: reconcile.NewWatches(in.cluster.client), Progress: func(p reconcile.Progress) { w.report(p.Object) }}
	result := engine.Await(ctx, goal, subject, nil)
	if err := w.failure(ctx, result); err != nil {
		return nil, err
	}
	in.progress.Success("%s reconciled successfully", w.kind.Kind)
	return result.Last, nil
}

// earlier returns the revisions from before this run. A controller that reports
// one of them has read an outdated source, for example from a cache. A revision
// that is unknown was pushed by another client after this run.
func (i *installation) earlier(awaited string) []string {
	revisions := []string{i.commits.before}
	for _, o := range []controllers.Object{i.cluster.source, i.cluster.sync} {
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
	in, namespace, res := w.in, w.in.plan.namespace(), kube.Of(w.kind)
	if o, err = in.cluster.client.Get(ctx, res, namespace, namespace); err != nil {
		return nil, false, fmt.Errorf("reading %s %q: %w", w.kind.Kind, namespace, err)
	}
	done = !w.requested && reconcile.Goal{State: reconcile.Ready, Revision: w.revision}.Reached(w.kind, o)
	switch suspended := w.kind.Suspension.Is(o); {
	case done && suspended:
		in.progress.Warning("%s %s/%s is suspended: the cluster does not sync from the repository until %s", w.kind.Kind, namespace, namespace, w.resume())
		return o, true, nil
	case done:
		return o, true, nil
	case suspended:
		return nil, false, w.suspended()
	}
	if o, err = in.cluster.client.Annotate(ctx, res, namespace, namespace, map[string]any{controllers.RequestAnnotation: in.token}); err != nil {
		return nil, false, fmt.Errorf("requesting a reconciliation of %s %q: %w", w.kind.Kind, namespace, err)
	}
	return o, false, nil
}

// resume returns the command that resumes the object.
func (w *wait) resume() string {
	return fmt.Sprintf("flux resume %s %s -n %s", w.kind.Noun(), w.in.plan.namespace(), w.in.plan.namespace())
}

func (w *wait) suspended() error {
	return hint.Errorf("run '"+w.resume()+"'", "%s %s/%s is suspended", w.kind.Kind, w.in.plan.namespace(), w.in.plan.namespace())
}

// report reports each message of the Reconciling condition once: the controller
// sets the same messages again in every attempt.
func (w *wait) report(o controllers.Object) {
	c, ok := controllers.FindCondition(o, "Reconciling")
	if !ok || c.Status != "True" || c.Message == "" || w.reported[c.Message] || !c.Current(o) {
		return
	}
	if w.reported == nil {
		w.reported = map[string]bool{}
	}
	w.reported[c.Message] = true
	w.in.progress.Waiting("%s: %s", w.kind.Kind, redact.Text(c.Message))
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
		return fmt.Errorf("%s %q was deleted during the wait", w.kind.Kind, w.in.plan.namespace())
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
	return &hint.Error{Err: &UnreadyError{
		Kind: w.kind.Kind, Namespace: w.in.plan.namespace(), Name: w.in.plan.namespace(), Object: o,
		Message: fmt.Sprintf("%s: %s: %s", fact, c.Reason, safeMessage(c)), Err: err,
	}, Hint: w.remedy(c)}
}

// safeMessage returns the message of a condition without secrets and temporary directories.
func safeMessage(c controllers.Condition) string {
	return redact.Text(failure.WithoutTempDirs(c.Message))
}

// isReady reports whether an object of the catalog is ready at its current
// generation.
func isReady(kindName string, o controllers.Object) bool {
	return o != nil && reconcile.Goal{State: reconcile.Ready}.Reached(kind(kindName), o)
}
