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

// requestAnnotation asks a controller to reconcile an object now.
const requestAnnotation = "reconcile.fluxcd.io/requestedAt"

func (r *run) rollout() *diagnose.Rollout {
	return &diagnose.Rollout{
		Client: r.client, Namespace: r.namespace(),
		Names:   slices.Sorted(slices.Values(r.plan.Components.Components)),
		Trouble: func(t diagnose.Trouble) { r.say.Warning("%s: %s", t.Name, redact.Text(t.Message)) },
	}
}

// awaitComponents waits until the controllers run: what they are asked before
// would only be answered then, and a controller that does not come up is told
// as that and not as a source that stays silent.
func (r *run) awaitComponents(ctx context.Context) error {
	r.say.Waiting("waiting for the controllers to be ready")
	if err := r.rollout().Wait(ctx); err != nil {
		return r.late(ctx, err)
	}
	return nil
}

func (r *run) confirmComponents(ctx context.Context) error {
	r.say.Action("confirming components are healthy")
	rollout := r.rollout()
	rollout.Ready = func(name string) { r.say.Success("%s: deployment ready", name) }
	if err := rollout.Wait(ctx); err != nil {
		return r.late(ctx, err)
	}
	r.say.Success("all components are healthy")
	return nil
}

// late adds to the end of a wait what ended it.
func (r *run) late(ctx context.Context, err error) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return failure("give it more time with --timeout, or mend the cause and run the command again: it goes on where it stopped",
			"%s: %w", context.Cause(ctx), err)
	}
	return err
}

func (r *run) awaitSource(ctx context.Context) error {
	w := r.waiter("GitRepository", r.found.source)
	w.at = func(o controllers.Object) bool {
		return !r.secretChanged && controllers.Path{"status.artifact.revision"}.String(o) == r.newest()
	}
	w.hint = r.sourceHint
	o, err := w.wait(ctx)
	if err != nil {
		return err
	}
	r.revision = controllers.Path{"status.artifact.revision"}.String(o)
	return nil
}

// sourceHint is the way out that only this run knows: the key that it has made,
// and its own flags.
func (r *run) sourceHint(c controllers.Condition) string {
	message := strings.ToLower(c.Message)
	switch {
	case strings.Contains(message, "x509"), strings.Contains(message, "certificate"):
		return "name the authority of the server's certificate with --ca-file, and run the command again"
	case r.plan.bySSH() && strings.Contains(message, "unable to authenticate"):
		return fmt.Sprintf("give the key in Secret %s/%s read access to the repository, then run the command again: %s",
			r.namespace(), r.plan.Sync.SecretName, strings.TrimSpace(string(r.key.pair.Public)))
	default:
		return "mend the cause and run the command again: it goes on where it stopped"
	}
}

func (r *run) awaitSync(ctx context.Context) error {
	w := r.waiter("Kustomization", r.found.sync)
	w.at = func(o controllers.Object) bool {
		return controllers.Path{"status.lastAppliedRevision"}.String(o) == r.revision
	}
	w.hint = r.syncHint
	_, err := w.wait(ctx)
	return err
}

func (r *run) syncHint(controllers.Condition) string {
	return "mend it in the repository, push, and run the command again"
}

// waiter waits until one object is reconciled.
type waiter struct {
	run  *run
	kind controllers.Kind
	// before is the object as it was before this run, nil where it is new.
	before controllers.Object
	// at tells whether the object has come to what this run has pushed.
	at   func(controllers.Object) bool
	hint func(controllers.Condition) string
	// asked is the request for a reconciliation, "" where none was needed.
	asked string
	// told is what was last shown of its progress.
	told string
}

func (r *run) waiter(kindName string, before controllers.Object) *waiter {
	return &waiter{run: r, kind: kind(kindName), before: before}
}

// passing are reasons for not being ready that end by themselves: what is
// waited for has not come yet.
var passing = []string{"ArtifactFailed", "DependencyNotReady", "Progressing", "ProgressingWithRetry", "NewGeneration"}

func (w *waiter) wait(ctx context.Context) (controllers.Object, error) {
	r, res := w.run, kube.Of(w.kind)
	r.say.Waiting("waiting for %s %q to be reconciled", w.kind.Kind, r.namespace()+"/"+r.namespace())
	last, version, err := w.ask(ctx, res)
	if err != nil {
		return nil, err
	}
	if last == nil || !w.done(last) {
		err = r.client.Follow(ctx, res, kube.Selection{Namespace: r.namespace(), Name: r.namespace()}, version, func(e kube.Event) (bool, error) {
			if e.Deleted {
				return false, fmt.Errorf("%s %s was deleted while it was waited for", w.kind.Kind, r.namespace())
			}
			last = e.Object
			w.tell(last)
			return w.done(last), w.failed(last)
		})
	}
	if err != nil {
		return nil, w.explain(ctx, last, err)
	}
	r.say.Success("%s reconciled successfully", w.kind.Kind)
	return last, nil
}

// ask has an object that was there before reconciled at once, since its
// controller would look only when the interval is over.
func (w *waiter) ask(ctx context.Context, res kube.Resource) (controllers.Object, string, error) {
	r := w.run
	if w.before == nil {
		return nil, "", nil
	}
	o, err := r.client.Get(ctx, res, r.namespace(), r.namespace())
	if err != nil {
		return nil, "", fmt.Errorf("looking at %s %s: %w", w.kind.Kind, r.namespace(), err)
	}
	resume := fmt.Sprintf("flux resume %s %s -n %s", w.kind.Noun(), r.namespace(), r.namespace())
	switch suspended := w.kind.Suspension.Is(o); {
	case w.done(o) && suspended:
		r.say.Warning("%s %s/%s is suspended: the cluster follows the repository again after %s", w.kind.Kind, r.namespace(), r.namespace(), resume)
	case w.done(o):
	case suspended:
		return nil, "", failure(resume, "%s %s/%s is suspended", w.kind.Kind, r.namespace(), r.namespace())
	default:
		w.asked = r.token
		if o, err = r.client.Annotate(ctx, res, r.namespace(), r.namespace(), map[string]any{requestAnnotation: r.token}); err != nil {
			return nil, "", fmt.Errorf("asking for a reconciliation of %s %s: %w", w.kind.Kind, r.namespace(), err)
		}
	}
	return o, controllers.Path{"metadata.resourceVersion"}.String(o), nil
}

// tell shows what the controller reports on the way, each thing once.
func (w *waiter) tell(o controllers.Object) {
	c, ok := controllers.FindCondition(o, "Reconciling")
	if !ok || c.Status != "True" || c.Message == "" || c.Message == w.told || !current(o, c) {
		return
	}
	w.told = c.Message
	w.run.say.Waiting("%s: %s", w.kind.Kind, redact.Text(c.Message))
}

// answered tells whether the status is about this run: of an object that was
// made or asked for in it.
func (w *waiter) answered(o controllers.Object) bool {
	return w.before == nil || w.asked != "" && controllers.Path{"status.lastHandledReconcileAt"}.String(o) == w.asked
}

func (w *waiter) done(o controllers.Object) bool {
	return isReady(o) && (w.at(o) || w.answered(o))
}

// failed returns why an object does not become ready, nil while it may.
func (w *waiter) failed(o controllers.Object) error {
	c, ok := controllers.FindCondition(o, "Ready")
	if message, stalled := controllers.Stalled(o); stalled && w.answered(o) {
		return w.failure(o, controllers.Condition{Reason: "Stalled", Message: message})
	}
	if !ok || c.Status != "False" || slices.Contains(passing, c.Reason) || !current(o, c) {
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
		Message: fmt.Sprintf("is not ready: %s: %s", c.Reason, spoken(c)),
	}, w.hint(c)}
}

// explain says what was waited for when the time is over.
func (w *waiter) explain(ctx context.Context, last controllers.Object, err error) error {
	if !errors.Is(err, context.DeadlineExceeded) || ctx.Err() == nil {
		return err
	}
	c := controllers.Condition{Reason: "Unknown", Message: "its controller has not reported anything"}
	if found, ok := controllers.FindCondition(last, "Ready"); ok {
		c = found
	}
	return &Error{&UnreadyError{
		Kind: w.kind.Kind, Namespace: w.run.namespace(), Name: w.run.namespace(), Object: last,
		Message: fmt.Sprintf("was not reconciled: %s: %s: %s", context.Cause(ctx), c.Reason, spoken(c)), Err: err,
	}, w.hint(c)}
}

// spoken is what a condition says, in so far as others may read it.
func spoken(c controllers.Condition) string { return redact.Text(diagnose.WithoutFolders(c.Message)) }

// isReady tells whether an object's status says that it is ready in its
// present form; nil is not.
func isReady(o controllers.Object) bool {
	c, ok := controllers.FindCondition(o, "Ready")
	return ok && c.Status == "True" && controllers.Observed(o) && current(o, c)
}

// current tells whether a condition is about the object's present spec.
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
