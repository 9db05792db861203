package diff

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
)

// Owners are the Kustomizations and HelmReleases among the objects of a result
// that are pruned: what they have applied goes with them, or stays.
func (r *Result) Owners() []Ref {
	var found []Ref
	for _, c := range r.Changes {
		if c.Action == Pruned && (isKustomization(c.Object) || c.Object.IsHelmRelease()) {
			found = append(found, c.Object)
		}
	}
	return found
}

func isKustomization(r Ref) bool { return r.Group == group && r.Kind == "Kustomization" }

// IsHelmRelease tells whether the object is a HelmRelease of Flux.
func (r Ref) IsHelmRelease() bool { return r.Group == helmGroup && r.Kind == "HelmRelease" }

// Live reads an object of the cluster; it is nil where there is none.
func (e *Engine) Live(ctx context.Context, ref Ref) (*unstructured.Unstructured, error) {
	if err := e.kinds.learn(ctx, []schema.GroupVersionKind{ref.kind()}); err != nil {
		return nil, err
	}
	r, served := e.kinds.of(ref.kind())
	if !served {
		return nil, nil
	}
	o, err := e.client.Get(ctx, r, ref.Namespace, ref.Name)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", ref, err)
	}
	return &unstructured.Unstructured{Object: o}, nil
}

// Going is the plan of a Kustomization or a HelmRelease that is deleted: what
// its finalizer does with all of its inventory.
func Going(live *unstructured.Unstructured) Plan {
	return Plan{Kustomization: live, Build: &build.Result{}, going: true}
}

// stays tells why the deletion of an owner leaves what it has applied, "" where
// that is deleted, too.
func stays(owner *unstructured.Unstructured) string {
	field := func(path string) string { return controllers.Path{path}.String(owner.Object) }
	policy := field("spec.deletionPolicy")
	switch {
	case field("spec.suspend") == "true":
		return "it is suspended"
	case RefOf(owner).IsHelmRelease() && field("status.storageNamespace") == "":
		return "it is not installed"
	case RefOf(owner).IsHelmRelease():
		return ""
	case policy == "Orphan":
		return "spec.deletionPolicy: Orphan"
	case policy != "Delete" && policy != "WaitForTermination" && field("spec.prune") != "true":
		return "it does not prune"
	}
	return ""
}

// accountGone tells whether the service account is missing by which the
// finalizer would delete: it leaves everything then.
func (c *comparison) accountGone(ctx context.Context) (bool, error) {
	_, rest, named := strings.Cut(c.Account, "system:serviceaccount:")
	if !c.going || !named || c.stay != "" || !isKustomization(c.ref) {
		return false, nil
	}
	namespace, name, _ := strings.Cut(rest, ":")
	accounts := kube.Guess(schema.FromAPIVersionAndKind("v1", "ServiceAccount"))
	_, err := c.client.Get(ctx, accounts, namespace, name)
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	if apierrors.IsForbidden(err) {
		return false, nil // nobody knows: what is announced is the worse
	}
	return false, err
}

const crdsStay = "Helm leaves the definitions of a chart's crds folder"

// uninstalled tells why Helm leaves an object of a release, "" where it does not.
func uninstalled(ref Ref, o controllers.Object) string {
	switch {
	case keeps(o):
		return keepPolicy + ": keep"
	case isDefinition(ref) && textMap(o, "metadata", "annotations")["meta.helm.sh/release-name"] == "":
		return crdsStay
	}
	return ""
}
