package diff

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/controllers"
)

// sight is an object seen from both sides: as it is, nil where there is none,
// and as the server would make it, nil where it refuses to.
type sight struct {
	before, after controllers.Object
	refused       error
}

// applied tells what the controller does with an object of the build. Errors
// that only concern the object are its change.
func (c *comparison) applied(ctx context.Context, o item) (Change, error) {
	ref := o.ref()
	if reason := c.excluded(o.Object); reason != "" {
		return Change{Object: ref, Action: Skipped, Reason: reason}, nil
	}
	if c.ignores(ref, o.Object) {
		return Change{Object: ref, Action: Skipped, Reason: "an ignore rule is about all of it"}, nil
	}
	r, served := c.kinds.of(ref.kind())
	if !served {
		return c.unserved(ctx, ref, o)
	}
	if r.ClusterScoped {
		o.SetNamespace("")
		ref.Namespace = ""
	} else if ref.Namespace == "" {
		return Change{Object: ref, Action: Failed, Reason: "namespace not specified"}, nil
	}
	if c.brings(ref.Namespace) {
		return c.intoNewNamespace(ctx, r, ref, o)
	}
	if o.encrypted() {
		return c.unreadable(ctx, r, ref, o)
	}
	s, err := c.look(ctx, r, ref, o)
	if err != nil {
		return Change{}, err
	}
	return c.judge(ctx, r, ref, o, s)
}

// look asks the server for the object as it is and as it would be.
func (c *comparison) look(ctx context.Context, r kube.Resource, ref Ref, o item) (sight, error) {
	var s sight
	at := scopeOf(r, ref)
	_, listed := c.live.lists[at]
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		s.after, s.refused = c.actor.client.DryRunAs(gctx, r, o.Object, c.by.Applier)
		if c.actor.denied(s.refused) {
			return nil
		}
		return broken(s.refused)
	})
	g.Go(func() (err error) {
		if listed {
			s.before, err = c.live.listed(at, ref.Name)
		} else {
			s.before, err = c.live.get(gctx, at, ref.Name)
		}
		return err
	})
	if err := g.Wait(); err != nil {
		return s, fmt.Errorf("comparing %s: %w", ref, err)
	}
	// What the Kustomization does not own yet is in no list, and what has
	// changed since the list is not what the dry run has seen.
	if listed && s.refused == nil && version(s.before) != version(s.after) || listed && s.refused != nil && s.before == nil {
		var err error
		if s.before, err = c.live.get(ctx, at, ref.Name); err != nil {
			return s, fmt.Errorf("comparing %s: %w", ref, err)
		}
	}
	return s, nil
}

func version(o controllers.Object) string {
	return controllers.Path{"metadata.resourceVersion"}.String(o)
}

// broken returns errors that are no answer about the object: no connection,
// no time, no permission to ask, a server in trouble.
func broken(err error) error {
	var status apierrors.APIStatus
	if apierrors.IsForbidden(err) && strings.Contains(err.Error(), " cannot patch resource ") {
		return err // that who asks may not do it says nothing about the controller
	}
	if err == nil || errors.As(err, &status) && !apierrors.IsUnauthorized(err) && !apierrors.IsTooManyRequests(err) &&
		!apierrors.IsServerTimeout(err) && !apierrors.IsServiceUnavailable(err) {
		return nil
	}
	return err
}

// judge turns what was seen into a change.
func (c *comparison) judge(ctx context.Context, r kube.Resource, ref Ref, o item, s sight) (Change, error) {
	if reason := c.excluded(s.before); reason != "" {
		return Change{Object: ref, Action: Skipped, Reason: reason + " on the live object"}, nil
	}
	if reason := c.leaves(o, s.before); reason != "" {
		return Change{Object: ref, Action: Skipped, Reason: reason}, nil
	}
	if reason := c.foreign(ref, o, s.before); reason != "" {
		c.aborted.Store(true)
		return c.finish(Change{Object: ref, Action: Failed, Reason: reason}, o, s.before, overlaid(s.before, o.Object)), nil
	}
	if c.renewed(ref, s.before) {
		return c.anew(ctx, r, ref, o, s)
	}
	if s.before != nil && c.marked(o.Object, "ssa", "IfNotPresent") {
		return Change{Object: ref, Action: Skipped, Reason: group + "/ssa: IfNotPresent, and it is there"}, nil
	}
	if change, ok := c.redefined(ref, o, s); ok {
		return change, nil
	}
	if s.refused != nil {
		return c.refused(ctx, r, ref, o, s)
	}
	if version(s.after) == "" || s.before == nil {
		c.bring(ref, o)
		return c.finish(Change{Object: ref, Action: Created}, o, nil, o.Object), nil
	}
	before, after := s.before, s.after
	c.cleaned(ctx, r, o, before, after)
	c.ignore(ref, before, after)
	c.tolerate(before, after)
	change := c.finish(Change{Object: ref, Action: Changed}, o, before, after)
	if isDefinition(ref) && change.Action == Changed {
		c.redefine(before, after) // it may serve more than now
	}
	return change, nil
}

// refused tells what follows from the server's refusal: an immutable field
// makes the controller fail or, with force, recreate the object.
func (c *comparison) refused(ctx context.Context, r kube.Resource, ref Ref, o item, s sight) (Change, error) {
	change := Change{Object: ref, Action: Failed, Reason: c.said(o, s.refused)}
	if s.before == nil || !immutable(s.refused) {
		return c.finish(change, o, s.before, overlaid(s.before, o.Object)), nil
	}
	invalid, err := c.probe(ctx, r, o, ref.Namespace)
	if err != nil {
		return change, err
	}
	forced := c.force || c.marked(o.Object, "force", "enabled") || c.marked(s.before, "force", "enabled")
	switch {
	case invalid == nil && forced:
		change.Action = Recreated
		if cleansUp(o.Object, s.before) {
			change.Notes = append(change.Notes, "kubectl has changed it: the controller deletes it, fails once, and creates it when it tries again")
		}
		change.Dangers = append(change.Dangers, DangerImmutable)
	case invalid == nil:
		change.Dangers = append(change.Dangers, DangerImmutable)
	case forced:
		change.Reason = "the controller will delete it and then fail to create it: " + c.said(o, invalid)
		change.Dangers = append(change.Dangers, DangerLost)
	}
	return c.finish(change, o, s.before, overlaid(s.before, o.Object)), nil
}

// immutable tells whether the controller takes an error for an immutable
// field: it does so with everything invalid.
func immutable(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsConflict(err) ||
		strings.Contains(err.Error(), "is immutable") || strings.Contains(err.Error(), "immutable field")
}

// said is the server's refusal in its own words, without values that are secret.
func (c *comparison) said(o item, err error) string {
	reason := string(apierrors.ReasonForError(err))
	if apierrors.HasStatusCause(err, metav1.CauseTypeFieldManagerConflict) {
		reason = string(metav1.CauseTypeFieldManagerConflict)
	}
	text := "dry-run failed: "
	if reason != "" {
		text = "dry-run failed (" + reason + "): "
	}
	return hide(o.Unstructured, text+err.Error(), c.Build.SecretValues)
}

// overlaid is a guess at an object that the server does not make: the live one
// with the fields that the build sets. Lists are the build's.
func overlaid(live, desired map[string]any) map[string]any {
	if live == nil {
		return desired
	}
	result := map[string]any{}
	for key, value := range live {
		result[key] = value
	}
	for key, value := range desired {
		below, isMap := value.(map[string]any)
		under, wasMap := result[key].(map[string]any)
		if isMap && wasMap {
			result[key] = overlaid(under, below)
			continue
		}
		if value != nil {
			result[key] = value
		}
	}
	return result
}
