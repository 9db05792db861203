package dryrun

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diff/policy"
)

// Live returns an object from the cluster, or nil if it does not exist.
func (e *Engine) Live(ctx context.Context, ref controllers.VersionedID) (*unstructured.Unstructured, error) {
	if err := e.discover(ctx, []schema.GroupVersionKind{ref.GroupVersionKind()}); err != nil {
		return nil, err
	}
	r, served := e.resource(ref.GroupVersionKind())
	if !served {
		return nil, nil
	}
	o, err := e.Client.Get(ctx, r, ref.Namespace, ref.Name)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", ref, err)
	}
	return &unstructured.Unstructured{Object: o}, nil
}

// DeletionPlan returns the plan for the deletion of a Kustomization or a HelmRelease: the effects
// of its finalizer on its inventory.
func DeletionPlan(live *unstructured.Unstructured) Plan {
	return Plan{Owner: live, Build: &build.Result{}, ownerDeleted: true}
}

// keptReason returns why the deletion of an owner keeps the objects that it has applied, or "" if
// it deletes them.
func keptReason(owner *unstructured.Unstructured) string {
	field := func(path string) string { return controllers.Path{path}.String(owner.Object) }
	deletion := field("spec.deletionPolicy")
	switch {
	case field("spec.suspend") == "true":
		return "suspended"
	case policy.IsRelease(controllers.IDOf(owner.Object)) && field("status.storageNamespace") == "":
		return "not installed"
	case policy.IsRelease(controllers.IDOf(owner.Object)):
		return ""
	case deletion == "Orphan":
		return "spec.deletionPolicy: Orphan"
	case deletion != "Delete" && deletion != "WaitForTermination" && field("spec.prune") != "true":
		return "spec.prune is not true"
	}
	return ""
}

// accountMissing reports whether the service account of the finalizer is missing. In that case,
// the finalizer keeps all objects.
func (c *comparison) accountMissing(ctx context.Context) (bool, error) {
	_, rest, named := strings.Cut(c.Account, "system:serviceaccount:")
	if !c.ownerDeleted || !named || c.stay != "" || !build.IsKustomization(c.Owner) {
		return false, nil
	}
	namespace, name, _ := strings.Cut(rest, ":")
	accounts := kube.ResourceFor(schema.FromAPIVersionAndKind("v1", "ServiceAccount"))
	_, err := c.Client.Get(ctx, accounts, namespace, name)
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	if apierrors.IsForbidden(err) {
		return false, nil // unknown: assume that the objects are deleted
	}
	return false, err
}
