package dryrun

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/controllers"
)

// builtin holds the group versions that every supported version of Kubernetes serves and that
// kube.ResourceFor knows, so that they need no discovery.
var builtin = []string{
	"v1", "apps/v1", "batch/v1", "rbac.authorization.k8s.io/v1", "networking.k8s.io/v1", "policy/v1", "autoscaling/v2",
	"storage.k8s.io/v1", "scheduling.k8s.io/v1", "admissionregistration.k8s.io/v1", "apiextensions.k8s.io/v1",
}

// discover discovers the group versions of the given kinds unless they are well known.
func (e *Engine) discover(ctx context.Context, wanted []schema.GroupVersionKind) error {
	return e.kinds.Discover(ctx, slices.DeleteFunc(wanted, wellKnown)...)
}

// resource returns the resource of a discovered kind, or false if the server does not serve it.
func (e *Engine) resource(kind schema.GroupVersionKind) (kube.Resource, bool) {
	if wellKnown(kind) {
		return kube.ResourceFor(kind), true
	}
	return e.kinds.Of(kind)
}

func wellKnown(kind schema.GroupVersionKind) bool {
	if row, ok := controllers.KindOf(kind.Group, kind.Kind); ok {
		return kind.Version == row.Version
	}
	return slices.Contains(builtin, kind.GroupVersion().String())
}
