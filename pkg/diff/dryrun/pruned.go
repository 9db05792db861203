package dryrun

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diff"
	"github.com/fluxkit/flux/pkg/diff/policy"
)

// compareStale returns the change of an object of the inventory that is no longer in the build.
func (c *comparison) compareStale(ctx context.Context, ref controllers.VersionedID) (diff.Change, error) {
	change := diff.Change{Object: ref, Action: diff.Skipped}
	if !c.prune {
		change.Reason, change.Orphaned = c.stay, true
		return change, nil
	}
	r, served := c.resource(ref.GroupVersionKind())
	if !served && c.Release != nil && c.Release.Step == diff.Upgrade {
		c.aborted.Store(true)
		change.Action, change.Reason = diff.Failed, "the cluster no longer serves its kind: Helm cannot upgrade a release with such an object"
		return change, nil
	}
	if !served {
		change.Reason = "the cluster no longer serves its kind"
		return change, nil
	}
	if r.ClusterScoped {
		ref.Namespace, change.Object.Namespace = "", ""
	}
	at := scopeOf(r, ref)
	o, err := c.live.listed(at, ref.Name)
	if err == nil && o == nil {
		o, err = c.live.get(ctx, at, ref.Name)
	}
	if err != nil {
		return change, fmt.Errorf("reading %s: %w", ref, err)
	}
	labels := policy.TextMap(o, "metadata", "labels")
	kind, _ := c.ref.Flux()
	switch reason := c.excluded(o); {
	case o == nil:
		change.Reason = "already deleted"
	case c.Release != nil && c.Release.isKept(ref, o):
		change.Reason = policy.Kept
	case c.Release != nil:
		return c.deleted(ctx, r, change, o)
	case policy.IsRelease(c.ref.ID):
		if change.Reason = policy.UninstallSkips(ref, o); change.Reason == "" {
			return c.deleted(ctx, r, change, o)
		}
	case slices.Contains(c.Build.Excluded, ref):
		change.Reason = controllers.OperatorGroup + "/reconcile: disabled"
	case labels[c.by.group+"/name"] != c.ref.Name || labels[c.by.group+"/namespace"] != c.ref.Namespace:
		change.Reason = "not owned by this " + c.ref.Kind
	case controllers.HasSetting(o, kind.Keep.Key, kind.Keep.Value):
		change.Reason = kind.Keep.String()
	case reason != "":
		change.Reason = reason
	default:
		return c.deleted(ctx, r, change, o)
	}
	return change, nil
}

// deleted returns the change of an object that the controller deletes, if it has the permission.
func (c *comparison) deleted(ctx context.Context, r kube.Resource, change diff.Change, o controllers.Object) (diff.Change, error) {
	may, err := c.actor.allowed(ctx, "delete", r, change.Object)
	if err != nil {
		return change, fmt.Errorf("checking the permission to delete %s: %w", change.Object, err)
	}
	if !may {
		change.Action, change.Reason = diff.Failed, "pruning is forbidden: "+c.actor.forbidden("delete", r, change.Object)
		return change, nil
	}
	change.Action = diff.Pruned
	return c.finish(change, item{}, o, nil), nil
}

// finish adds the fields that differ, with secret values masked. A change without a difference
// becomes Unchanged.
func (p *plan) finish(change diff.Change, o item, before, after controllers.Object) diff.Change {
	b, a := diff.Tidy(before), diff.Tidy(after)
	if change.Action == diff.Changed && len(diff.Fields(diff.Content(b), diff.Content(a))) == 0 {
		return diff.Change{Object: change.Object, Action: diff.Unchanged}
	}
	if change.Action == diff.Pruned && p.hasSecrets() {
		// Without a build it is unknown which of its values are secret.
		b = diff.Bare(b)
	}
	diff.Mask(change.Object, built(o), diff.Content(b), diff.Content(a), o.built.Secret)
	diff.MaskTexts(b, a, p.Build.SecretValues, o.built.Encrypted)
	change.Notes = append(change.Notes, diff.HideUnstable(a, o.built)...)
	change.Before, change.After = b, a
	if before != nil && after != nil {
		change.Fields = diff.Fields(diff.Content(b), diff.Content(a))
		if p.FieldOwners {
			setOwners(change.Fields, before, after)
		}
	}
	change.Images = diff.ImagesOf(diff.Content(b), diff.Content(a))
	change.ExplainMasks()
	return change
}

func built(o item) map[string]any { return diff.Content(o.built.Unstructured) }

// hasSecrets reports whether objects other than Secrets may contain values from Secrets or
// encrypted files.
func (p *plan) hasSecrets() bool {
	return p.decrypts() || RefersToSecrets(p.Owner)
}

// RefersToSecrets reports whether an object takes variables or values from Secrets.
func RefersToSecrets(o *unstructured.Unstructured) bool {
	return slices.ContainsFunc(build.DataReferences(o), controllers.ID.IsSecret)
}
