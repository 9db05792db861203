package diff

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/fluxkit/flux/internal/kube"
)

// bring remembers what others of this plan and the next may stand on.
func (e *Engine) bring(ref Ref, o item) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if isNamespace(ref) {
		e.namespaces[ref.Name] = true
	}
	if !isDefinition(ref) {
		return
	}
	e.defined[definedKind(o.Object)] = definitionOf(o.Object)
}

// brings tells whether a namespace is one that the plan creates.
func (e *Engine) brings(namespace string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.namespaces[namespace]
}

// intoNewNamespace judges an object that can only be created once its
// namespace is there. Whether it is valid is tried in the Kustomization's own.
func (c *comparison) intoNewNamespace(ctx context.Context, r kube.Resource, ref Ref, o item) (Change, error) {
	change := Change{Object: ref, Action: Created}
	invalid, err := c.probe(ctx, r, o, c.ref.Namespace)
	if err != nil {
		return change, err
	}
	if invalid != nil {
		change.Action, change.Reason = Failed, c.said(o, invalid)
	} else if !c.grants(ref.Namespace) {
		for _, verb := range []string{"patch", "create"} {
			may, err := c.actor.allowed(ctx, verb, r, ref)
			if err != nil {
				return change, fmt.Errorf("asking who may %s %s: %w", verb, ref, err)
			}
			if !may {
				change.Action, change.Reason = Failed, "applying it is forbidden: "+c.actor.mayNot(verb, r, ref)
				break
			}
		}
	}
	return c.finish(change, o, nil, o.Object), nil
}

// grants tells whether the plan gives permissions in a namespace that it brings:
// what its account may do there afterwards is not known before.
func (c *comparison) grants(namespace string) bool {
	return slices.ContainsFunc(c.objects, func(o item) bool {
		ref := o.ref()
		return ref.Group == "rbac.authorization.k8s.io" && (ref.Namespace == namespace || ref.Kind == "ClusterRoleBinding")
	})
}

// probeName is short enough for every kind, and nobody's.
const probeName = "flux-diff-probe"

// probe asks, by a dry run, whether an object could be created, as another one
// that is not there. Only what would not hold elsewhere counts: that the object
// is invalid. Whether policies and quotas let it in is not known before.
func (c *comparison) probe(ctx context.Context, r kube.Resource, o item, namespace string) (invalid, err error) {
	copied := o.DeepCopy()
	copied.SetName(probeName)
	if !r.ClusterScoped {
		copied.SetNamespace(namespace)
	}
	_, refused := c.actor.client.DryRunAs(ctx, r, copied.Object, c.by.Applier)
	if c.actor.denied(refused) {
		// What it may do there says nothing about where the object goes.
		if _, refused = c.client.DryRunAs(ctx, r, copied.Object, c.by.Applier); apierrors.IsForbidden(refused) {
			return nil, nil
		}
	}
	if err := broken(refused); err != nil {
		return nil, fmt.Errorf("validating %s: %w", o.ref(), err)
	}
	if apierrors.IsInvalid(refused) || apierrors.IsBadRequest(refused) || apierrors.IsInternalError(refused) {
		return &probeError{refused, o.GetName()}, nil
	}
	return nil, nil
}

// probeError is the refusal of a probe in words about the object itself.
type probeError struct {
	error
	name string
}

func (e *probeError) Error() string { return strings.ReplaceAll(e.error.Error(), probeName, e.name) }
func (e *probeError) Unwrap() error { return e.error }
