package diff

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/controllers"
)

// definition is what a plan's CustomResourceDefinition will serve.
type definition struct {
	versions      []string
	clusterScoped bool
}

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
	d := definition{clusterScoped: controllers.Path{"spec.scope"}.String(o.Object) == "Cluster"}
	versions, _, _ := unstructured.NestedSlice(o.Object, "spec", "versions")
	for _, v := range versions {
		if m, ok := v.(map[string]any); ok && m["served"] == true {
			d.versions = append(d.versions, controllers.Path{"name"}.String(m))
		}
	}
	kind := schema.GroupKind{Group: controllers.Path{"spec.group"}.String(o.Object), Kind: controllers.Path{"spec.names.kind"}.String(o.Object)}
	e.defined[kind] = d
}

// brings tells whether a namespace is one that the plan creates.
func (e *Engine) brings(namespace string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.namespaces[namespace]
}

// unserved judges an object of a kind that the server does not know: it is
// created where the plan brings the definition, and cannot be otherwise.
func (c *comparison) unserved(ref Ref, o item) Change {
	change := Change{Object: ref, Action: Created}
	c.mu.Lock()
	d, brought := c.defined[ref.kind().GroupKind()]
	c.mu.Unlock()
	switch {
	case !brought:
		change.Action, change.Reason = Failed, fmt.Sprintf("the cluster does not serve %s %s, and nothing here defines it", ref.Kind, o.GetAPIVersion())
	case !slices.Contains(d.versions, ref.Version):
		change.Action, change.Reason = Failed, fmt.Sprintf("its definition does not serve version %s", ref.Version)
	case !d.clusterScoped && ref.Namespace == "":
		change.Action, change.Reason = Failed, "namespace not specified"
	default:
		change.Notes = append(change.Notes, "not validated: its definition is created by the same change")
	}
	return c.finish(change, o, nil, o.Object)
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
	_, refused := c.actor.client.DryRun(ctx, r, copied.Object, manager)
	if c.actor.denied(refused) {
		// What it may do there says nothing about where the object goes.
		if _, refused = c.client.DryRun(ctx, r, copied.Object, manager); apierrors.IsForbidden(refused) {
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
