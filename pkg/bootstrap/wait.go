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
	w := r.waiter("GitRepository", r.found.source)
	w.atRevision = func(o controllers.Object) bool {
		return !r.secretChanged && controllers.Path{"status.artifact.revision"}.String(o) == r.headRevision()
	}
	w.hint = r.sourceHint
	o, err := w.wait(ctx)
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
	w := r.waiter("Kustomization", r.found.sync)
	w.atRevision = func(o controllers.Object) bool {
		return controllers.Path{"status.lastAppliedRevision"}.String(o) == r.revision
	}
	w.hint = r.syncHint
	_, err := w.wait(ctx)
	return err
}

func (r *run) syncHint(controllers.Condition) string {
	return "fix it in the repository, commit and push, then run the command again"
}

// waiter waits until an object is reconciled.
type waiter struct {
	run  *run
	kind controllers.Kind
	// before is the object before this run, nil if it did not exist.
	before controllers.Object
	// atRevision reports whether the object has the revision of this run.
	atRevision func(controllers.Object) bool
	hint       func(controllers.Condition) string
	// token is the value of the requested reconciliation, "" if none was requested.
	token string
	// reported is the last progress message that was reported.
	reported string
}

func (r *run) waiter(kindName string, before controllers.Object) *waiter {
	return &waiter{run: r, kind: kind(kindName), before: before}
}

// temporaryReasons are the reasons of a Ready condition that resolve without a
// change by the user.
var temporaryReasons = []string{"ArtifactFailed", "DependencyNotReady", "Progressing", "ProgressingWithRetry", "NewGeneration"}

func (w *waiter) wait(ctx context.Context) (controllers.Object, error) {
	r, res := w.run, kube.Of(w.kind)
	r.progress.Waiting("waiting for %s %q to be reconciled", w.kind.Kind, r.namespace()+"/"+r.namespace())
	last, version, err := w.request(ctx, res)
	if err != nil {
		return nil, err
	}
	if last == nil || !w.done(last) {
		err = r.client.Follow(ctx, res, kube.Selection{Namespace: r.namespace(), Name: r.namespace()}, version, func(e kube.Event) (bool, error) {
			if e.Deleted {
				return false, fmt.Errorf("%s %q was deleted during the wait", w.kind.Kind, r.namespace())
			}
			last = e.Object
			w.report(last)
			return w.done(last), w.failed(last)
		})
	}
	if err != nil {
		return nil, w.timeout(ctx, last, err)
	}
	r.progress.Success("%s reconciled successfully", w.kind.Kind)
	return last, nil
}

// request requests a reconciliation of an object that existed before, since its
// controller would wait for the interval.
func (w *waiter) request(ctx context.Context, res kube.Resource) (controllers.Object, string, error) {
	r := w.run
	if w.before == nil {
		return nil, "", nil
	}
	o, err := r.client.Get(ctx, res, r.namespace(), r.namespace())
	if err != nil {
		return nil, "", fmt.Errorf("reading %s %q: %w", w.kind.Kind, r.namespace(), err)
	}
	resume := fmt.Sprintf("flux resume %s %s -n %s", w.kind.Noun(), r.namespace(), r.namespace())
	switch suspended := w.kind.Suspension.Is(o); {
	case w.done(o) && suspended:
		r.progress.Warning("%s %s/%s is suspended: the cluster does not sync from the repository until %s", w.kind.Kind, r.namespace(), r.namespace(), resume)
	case w.done(o):
	case suspended:
		return nil, "", failure("run '"+resume+"'", "%s %s/%s is suspended", w.kind.Kind, r.namespace(), r.namespace())
	default:
		w.token = r.token
		if o, err = r.client.Annotate(ctx, res, r.namespace(), r.namespace(), map[string]any{requestAnnotation: r.token}); err != nil {
			return nil, "", fmt.Errorf("requesting a reconciliation of %s %q: %w", w.kind.Kind, r.namespace(), err)
		}
	}
	return o, controllers.Path{"metadata.resourceVersion"}.String(o), nil
}

// report reports the message of the Reconciling condition when it changes.
func (w *waiter) report(o controllers.Object) {
	c, ok := controllers.FindCondition(o, "Reconciling")
	if !ok || c.Status != "True" || c.Message == "" || c.Message == w.reported || !current(o, c) {
		return
	}
	w.reported = c.Message
	w.run.progress.Waiting("%s: %s", w.kind.Kind, redact.Text(c.Message))
}

// answered reports whether the status is the result of this run: the object was
// created in it, or has handled its request.
func (w *waiter) answered(o controllers.Object) bool {
	return w.before == nil || w.token != "" && controllers.Path{"status.lastHandledReconcileAt"}.String(o) == w.token
}

func (w *waiter) done(o controllers.Object) bool {
	return isReady(o) && (w.atRevision(o) || w.answered(o))
}

// failed returns the error of an object that failed, nil while it may become
// ready.
func (w *waiter) failed(o controllers.Object) error {
	c, ok := controllers.FindCondition(o, "Ready")
	if message, stalled := controllers.Stalled(o); stalled && w.answered(o) {
		return w.failure(o, controllers.Condition{Reason: "Stalled", Message: message})
	}
	if !ok || c.Status != "False" || slices.Contains(temporaryReasons, c.Reason) || !current(o, c) {
		return nil
	}
	if !w.answered(o) {
		return nil
	}
	return w.failure(o, c)
}

func (w *waiter) failure(o controllers.Object, c controllers.Condition) error {
	return &Error{&UnreadyError{
		Kind: w.kind.Kind, Namespace: w.run.namespace(), Name: w.run.namespace(), Object: o,
		Message: fmt.Sprintf("is not ready: %s: %s", c.Reason, safeMessage(c)),
	}, w.hint(c)}
}

// timeout returns the error for the end of the wait, with the last message of
// the object.
func (w *waiter) timeout(ctx context.Context, last controllers.Object, err error) error {
	if !errors.Is(err, context.DeadlineExceeded) || ctx.Err() == nil {
		return err
	}
	c := controllers.Condition{Reason: "Unknown", Message: "no status reported by its controller"}
	if found, ok := controllers.FindCondition(last, "Ready"); ok {
		c = found
	}
	return &Error{&UnreadyError{
		Kind: w.kind.Kind, Namespace: w.run.namespace(), Name: w.run.namespace(), Object: last,
		Message: fmt.Sprintf("was not reconciled: %s: %s: %s", context.Cause(ctx), c.Reason, safeMessage(c)), Err: err,
	}, w.hint(c)}
}

// safeMessage returns the message of a condition without secrets and temporary
// folders.
func safeMessage(c controllers.Condition) string {
	return redact.Text(diagnose.WithoutFolders(c.Message))
}

// isReady reports whether an object is ready at its current generation.
func isReady(o controllers.Object) bool {
	c, ok := controllers.FindCondition(o, "Ready")
	return ok && c.Status == "True" && controllers.Observed(o) && current(o, c)
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
