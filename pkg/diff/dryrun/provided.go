package dryrun

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diff"
	"github.com/fluxkit/flux/pkg/diff/crd"
)

// recordProvided records a namespace or CRD of the plan, which other objects of this plan and of later ones
// may depend on.
func (e *Engine) recordProvided(ref controllers.VersionedID, o item) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if ref.IsNamespace() {
		e.namespaces[ref.Name] = true
	}
	if !ref.IsCRD() {
		return
	}
	e.crds[crd.Kind(o.Object)] = crd.Of(o.Object)
}

// createsNamespace reports whether a plan creates the namespace.
func (e *Engine) createsNamespace(namespace string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.namespaces[namespace]
}

// intoNewNamespace returns the change of an object whose namespace the plan creates. It is
// validated in the namespace of the owner, which exists.
func (c *comparison) intoNewNamespace(ctx context.Context, r kube.Resource, ref controllers.VersionedID, o item) (diff.Change, error) {
	change := diff.Change{Object: ref, Action: diff.Created}
	invalid, err := c.probe(ctx, r, o, c.ref.Namespace)
	if err != nil {
		return change, err
	}
	if invalid != nil {
		change.Action, change.Reason = diff.Failed, c.dryRunError(o, invalid)
	} else if !c.grantsIn(ref.Namespace) {
		for _, verb := range []string{"patch", "create"} {
			may, err := c.actor.allowed(ctx, verb, r, ref)
			if err != nil {
				return change, fmt.Errorf("checking the permission to %s %s: %w", verb, ref, err)
			}
			if !may {
				change.Action, change.Reason = diff.Failed, "applying is forbidden: "+c.actor.forbidden(verb, r, ref)
				break
			}
		}
	}
	return c.finish(change, o, nil, o.Object), nil
}

// grantsIn reports whether the plan contains RBAC rules for a namespace that it creates: the
// permissions of the account there are not known before they are applied.
func (p *plan) grantsIn(namespace string) bool {
	return slices.ContainsFunc(p.objects, func(o item) bool {
		ref := o.ref()
		return ref.Group == "rbac.authorization.k8s.io" && (ref.Namespace == namespace || ref.Kind == "ClusterRoleBinding")
	})
}

// probeName is the name of the object in the dry run of probe. It is short enough for every kind
// and not used by real objects.
const probeName = "flux-diff-probe"

// probe sends a dry run that creates the object under another name, and returns why the object is
// invalid, if it is. Errors that depend on the name or the namespace, such as those of policies
// and quotas, are ignored.
func (c *comparison) probe(ctx context.Context, r kube.Resource, o item, namespace string) (invalid, err error) {
	copied := o.DeepCopy()
	copied.SetName(probeName)
	if !r.ClusterScoped {
		copied.SetNamespace(namespace)
	}
	_, refused := kube.DryRun(ctx, c.actor.client, r, copied.Object, c.by.Applier)
	if c.actor.denied(refused) {
		// The permissions in the target namespace may differ.
		if _, refused = kube.DryRun(ctx, c.Client, r, copied.Object, c.by.Applier); apierrors.IsForbidden(refused) {
			return nil, nil
		}
	}
	if err := requestError(refused); err != nil {
		return nil, fmt.Errorf("validating %s: %w", o.ref(), err)
	}
	if apierrors.IsInvalid(refused) || apierrors.IsBadRequest(refused) || apierrors.IsInternalError(refused) {
		return &probeError{refused, o.GetName()}, nil
	}
	return nil, nil
}

// probeError is the error of a probe with the name of the object instead of the name of the probe.
type probeError struct {
	error
	name string
}

func (e *probeError) Error() string { return strings.ReplaceAll(e.error.Error(), probeName, e.name) }
func (e *probeError) Unwrap() error { return e.error }
