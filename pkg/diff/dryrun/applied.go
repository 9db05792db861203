package dryrun

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diff"
	"github.com/fluxkit/flux/pkg/diff/policy"
)

// observation holds an object before and after the apply: the live object, or nil if there is none, and
// the result of the dry run, or nil if the server rejected it.
type observation struct {
	before, after controllers.Object
	refused       error
}

// compareApplied returns the change of an object of the build. Errors that concern the object alone are part of its change.
func (c *comparison) compareApplied(ctx context.Context, o item) (diff.Change, error) {
	ref := o.ref()
	if reason := c.excluded(o.Object); reason != "" {
		return diff.Change{Object: ref, Action: diff.Skipped, Reason: reason}, nil
	}
	if c.ignores(ref, o.Object) {
		return diff.Change{Object: ref, Action: diff.Skipped, Reason: "excluded by spec.ignore"}, nil
	}
	r, served := c.resource(ref.GroupVersionKind())
	if !served {
		return c.unserved(ctx, ref, o)
	}
	if r.ClusterScoped {
		o.SetNamespace("")
		ref.Namespace = ""
	} else if ref.Namespace == "" {
		return diff.Change{Object: ref, Action: diff.Failed, Reason: "namespace not specified"}, nil
	}
	if c.createsNamespace(ref.Namespace) {
		return c.intoNewNamespace(ctx, r, ref, o)
	}
	if diff.Sealed(o.built) {
		return c.unreadable(ctx, r, ref, o)
	}
	s, err := c.observe(ctx, r, ref, o)
	if err != nil {
		return diff.Change{}, err
	}
	return c.changeOf(ctx, r, ref, o, s)
}

// observe reads the live object and sends the dry run.
func (c *comparison) observe(ctx context.Context, r kube.Resource, ref controllers.VersionedID, o item) (observation, error) {
	var s observation
	at := scopeOf(r, ref)
	_, listed := c.live.lists[at]
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		s.after, s.refused = kube.DryRun(gctx, c.actor.client, r, o.Object, c.by.Applier)
		if c.actor.denied(s.refused) {
			return nil
		}
		return requestError(s.refused)
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
	// A list does not contain objects that the owner has not labeled yet, and its version of an object
	// may be older than the version that the dry run used.
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

// requestError returns err if it does not concern the object: a failed connection, a timeout, a missing
// permission of the user, an unavailable server.
func requestError(err error) error {
	var status apierrors.APIStatus
	if apierrors.IsForbidden(err) && strings.Contains(err.Error(), " cannot patch resource ") {
		return err // the permissions of the controller may differ
	}
	if err == nil || errors.As(err, &status) && !apierrors.IsUnauthorized(err) && !apierrors.IsTooManyRequests(err) &&
		!apierrors.IsServerTimeout(err) && !apierrors.IsServiceUnavailable(err) {
		return nil
	}
	return err
}

// changeOf returns the change that an observation shows.
func (c *comparison) changeOf(ctx context.Context, r kube.Resource, ref controllers.VersionedID, o item, s observation) (diff.Change, error) {
	if reason := c.excluded(s.before); reason != "" {
		return diff.Change{Object: ref, Action: diff.Skipped, Reason: reason + " on the live object"}, nil
	}
	if reason := c.Release.skipsExisting(o, s.before); reason != "" {
		return diff.Change{Object: ref, Action: diff.Skipped, Reason: reason}, nil
	}
	if reason := c.Release.adoptionRefused(ref, o, s.before); reason != "" {
		c.aborted.Store(true)
		return c.finish(diff.Change{Object: ref, Action: diff.Failed, Reason: reason}, o, s.before, overlay(s.before, o.Object)), nil
	}
	if c.Release.replaces(ref, s.before) {
		return c.recreate(ctx, r, ref, o, s)
	}
	if s.before != nil && c.marked(o.Object, "ssa", "IfNotPresent") {
		return diff.Change{Object: ref, Action: diff.Skipped, Reason: policy.IfNotPresent}, nil
	}
	if change, ok := c.changedCRD(ref, o, s); ok {
		return change, nil
	}
	if s.refused != nil {
		return c.refused(ctx, r, ref, o, s)
	}
	if version(s.after) == "" || s.before == nil {
		c.recordProvided(ref, o)
		return c.finish(diff.Change{Object: ref, Action: diff.Created}, o, nil, o.Object), nil
	}
	before, after := s.before, s.after
	touched := c.changedByOthers(before)
	c.takeOver(ctx, r, o, before, after)
	c.ignore(ref, before, after)
	c.Release.tolerate(before, after)
	change := c.finish(diff.Change{Object: ref, Action: diff.Changed}, o, before, after)
	change.Drift = touched && change.Action == diff.Changed && c.isLastApplied(ctx, ref, o)
	if ref.IsCRD() && change.Action == diff.Changed {
		c.recordCRDChange(before, after) // it may serve more versions than the live CRD
	}
	return change, nil
}

// refused returns the change of an object whose dry run the server rejected. For an immutable field the
// controller fails or, with force, recreates the object.
func (c *comparison) refused(ctx context.Context, r kube.Resource, ref controllers.VersionedID, o item, s observation) (diff.Change, error) {
	change := diff.Change{Object: ref, Action: diff.Failed, Reason: c.dryRunError(o, s.refused)}
	if s.before == nil || !immutable(s.refused) {
		return c.finish(change, o, s.before, overlay(s.before, o.Object)), nil
	}
	invalid, err := c.probe(ctx, r, o, ref.Namespace)
	if err != nil {
		return change, err
	}
	forced := c.force || c.by.Manager == controllers.OperatorName && controllers.HasSetting(o.Object, controllers.OperatorGroup+"/force", "enabled") || c.marked(o.Object, "force", "enabled") || c.marked(s.before, "force", "enabled")
	switch {
	case invalid == nil && forced:
		change.Action = diff.Recreated
		if cleansUp(o.Object, s.before) {
			change.Notes = append(change.Notes, "changed with kubectl: the controller deletes the object, fails once, and creates it at the next attempt")
		}
		change.Dangers = append(change.Dangers, diff.Danger{Rule: diff.DangerImmutable})
	case invalid == nil:
		change.Dangers = append(change.Dangers, diff.Danger{Rule: diff.DangerImmutable})
	case forced:
		change.Reason = "the controller will delete the object and then fail to create it: " + c.dryRunError(o, invalid)
		change.Dangers = append(change.Dangers, diff.Danger{Rule: diff.DangerLost})
	}
	return c.finish(change, o, s.before, overlay(s.before, o.Object)), nil
}

// immutable reports whether the controller treats an error as a change of an immutable field, as it
// does for every invalid object.
func immutable(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsConflict(err) ||
		strings.Contains(err.Error(), "is immutable") || strings.Contains(err.Error(), "immutable field")
}

// dryRunError returns the error message of the server, with secret values masked.
func (p *plan) dryRunError(o item, err error) string {
	reason := string(apierrors.ReasonForError(err))
	if apierrors.HasStatusCause(err, metav1.CauseTypeFieldManagerConflict) {
		reason = string(metav1.CauseTypeFieldManagerConflict)
	}
	text := "dry-run failed: "
	if reason != "" {
		text = "dry-run failed (" + reason + "): "
	}
	return diff.MaskIn(o.Unstructured, text+err.Error(), slices.Concat(p.Build.SecretValues, diff.DerivedTexts(o.built)))
}

// overlay returns an estimate of an object for which there is no dry run: the live object with
// the fields of the build. Lists are replaced.
func overlay(live, desired map[string]any) map[string]any {
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
			result[key] = overlay(under, below)
			continue
		}
		if value != nil {
			result[key] = value
		}
	}
	return result
}
