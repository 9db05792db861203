package rollback

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/internal/kube/objref"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/reconcile"
)

// Step is an object to reconcile, with the state to wait for.
type Step struct {
	objref.Target
	Goal reconcile.Goal
}

// Apply changes the cluster as planned, and requests the reconciliation of the pinned object with the token. It
// returns that object as patched. Objects that were changed after the plan was made fail with an error. If the field
// cannot be set, suspended owners are resumed.
func (p *Plan) Apply(ctx context.Context, token string) (Step, error) {
	step := Step{Target: p.pinned, Goal: p.goal(p.pinned, token)}
	if !p.undo {
		if err := p.suspend(ctx); err != nil {
			return step, err
		}
	}
	change, err := p.change(token)
	if err != nil {
		return step, err
	}
	patched, err := p.patch(ctx, p.pinned, change)
	if err != nil && !p.undo {
		return step, errors.Join(err, p.resume(context.WithoutCancel(ctx)))
	}
	if err != nil {
		return step, err
	}
	step.Object = patched
	return step, p.resumeAfter(ctx)
}

// Request requests the reconciliation of the object with the token, unless Apply has done so.
func (p *Plan) Request(ctx context.Context, token string) (step Step, err error) {
	step = Step{Target: p.object, Goal: p.goal(p.object, token)}
	change := map[string]any{}
	controllers.Annotate(change, map[string]any{controllers.RequestAnnotation: token})
	step.Object, err = p.object.Patch(ctx, p.client, change)
	return step, err
}

// Own reports whether the object has the pinned field itself.
func (p *Plan) Own() bool { return p.Pinned == p.Object }

// goal returns the state to wait for after the request with a token.
func (p *Plan) goal(t objref.Target, token string) reconcile.Goal {
	g := reconcile.Goal{State: reconcile.Ready, Attempt: true, Token: token}
	if p.undo {
		return g
	}
	g.Revision, g.Earlier = p.After, []string{p.CurrentRevision}
	switch {
	case p.selects() == "commit":
		g.Revision = "sha1:" + p.After
	case t.Kind.Release && p.selects() == "digest": // its revision is the version of the chart
		g.Revision = p.chart
		g.Earlier = append(g.Earlier, controllers.Path{"status.lastAttemptedRevision"}.String(t.Object))
	}
	return g
}

// change returns the merge patch of the pinned object.
func (p *Plan) change(token string) (map[string]any, error) {
	annotations := map[string]any{Annotation: nil}
	if p.pinned.Kind.Has(controllers.Reconcile) {
		annotations[controllers.RequestAnnotation] = token
	}
	var value any
	if p.After != "" {
		value = p.After
	}
	field := p.Field
	if !p.undo {
		text, err := json.Marshal(p.record)
		if err != nil {
			return nil, fmt.Errorf("recording the state of %s: %w", p.pinned, err)
		}
		annotations[Annotation] = string(text)
	} else if p.record.Previous == nil {
		field, value = parent(field), nil
	}
	change := nested(field, value)
	controllers.Annotate(change, annotations)
	return change, nil
}

// nested returns a merge patch that sets a field.
func nested(field string, value any) map[string]any {
	name, rest, below := strings.Cut(field, ".")
	if below {
		value = nested(rest, value)
	}
	return map[string]any{name: value}
}

// patchAttempts bounds the attempts of a patch while the controller updates the status of the object.
const patchAttempts = 10

// patch changes an object unless its spec or its rollback was changed after the plan was made.
func (p *Plan) patch(ctx context.Context, t objref.Target, change map[string]any) (controllers.Object, error) {
	controllers.Annotate(change, nil)
	generation := controllers.Path{"metadata.generation"}
	for range patchAttempts {
		change["metadata"].(map[string]any)["resourceVersion"] = controllers.Path{"metadata.resourceVersion"}.String(t.Object)
		patched, err := t.Patch(ctx, p.client, change)
		if !apierrors.IsConflict(err) {
			return patched, err
		}
		planned := t.Object
		if t.Object, err = p.client.GetKind(ctx, t.Kind, t.Namespace, t.Name); err != nil {
			return nil, err
		}
		if generation.String(t.Object) != generation.String(planned) || controllers.Annotation(t.Object, Annotation) != controllers.Annotation(planned, Annotation) {
			break
		}
	}
	return nil, hint.Errorf("run the command again", "%s was changed after the plan was made", t)
}

// suspend suspends the owners that would revert the field.
func (p *Plan) suspend(ctx context.Context) error {
	for i, owner := range p.owners {
		change := owner.Kind.Suspension.Change(true)
		controllers.Annotate(change, map[string]any{controllers.SuspendReasonAnnotation: reason + p.record.Object})
		patched, err := p.patch(ctx, owner, change)
		if err != nil {
			p.owners = p.owners[:i]
			return errors.Join(fmt.Errorf("suspending %s: %w", owner, err), p.resume(context.WithoutCancel(ctx)))
		}
		p.owners[i].Object = patched
	}
	return nil
}

// resumeTime is the timeout for resuming owners after an error.
const resumeTime = 5 * time.Second

// resume resumes the owners that were suspended.
func (p *Plan) resume(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, resumeTime)
	defer cancel()
	var failed error
	for _, owner := range p.owners {
		if _, err := owner.Patch(ctx, p.client, owner.Kind.Suspension.Resumption()); err != nil {
			failed = errors.Join(failed, hint.Errorf(hint.Command("flux resume "+owner.Kind.Noun()+" %s -n %s", owner.Name, owner.Namespace), "%s is still suspended: %w", owner, err))
		}
	}
	return failed
}

// resumeAfter resumes the owners after the field was restored.
func (p *Plan) resumeAfter(ctx context.Context) error {
	if !p.undo {
		return nil
	}
	return p.resume(ctx)
}
