package dryrun

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diff/policy"
)

// applier holds the differences between how kustomize-controller, helm-controller and flux-operator
// apply objects.
type applier struct {
	kube.Applier
	// group is the prefix of the labels by which the controller selects its objects.
	group string
	// takesOver reports whether the controller takes over the fields of an entry before it
	// applies, so that fields which it does not set are removed.
	takesOver func(metav1.ManagedFieldsEntry) bool
	// leftovers is the metadata that the controller removes from live objects.
	leftovers map[string][]string
}

// kustomizeController returns the applier of Kustomizations, which also takes over the fields of the
// overridden field managers.
func kustomizeController(overridden []string) applier {
	takesOver := func(entry metav1.ManagedFieldsEntry) bool {
		return takesOverFields(entry) || entry.Subresource == "" &&
			slices.ContainsFunc(overridden, func(name string) bool { return strings.HasPrefix(entry.Manager, name) })
	}
	return applier{Applier: kube.Applier{Manager: manager}, group: policy.Group, takesOver: takesOver, leftovers: leftovers}
}

// operatorApplier returns the applier of a kind of flux-operator, which takes over the fields that kubectl has set, and those
// that kustomize-controller has applied.
func operatorApplier(k controllers.Kind) applier {
	takesOver := func(entry metav1.ManagedFieldsEntry) bool {
		other := manager
		if entry.Operation == metav1.ManagedFieldsOperationUpdate {
			other = beforeApply
		}
		return entry.Subresource == "" && (strings.HasPrefix(entry.Manager, kubectl) || strings.HasPrefix(entry.Manager, other))
	}
	return applier{Applier: kube.Applier{Manager: controllers.OperatorName}, group: cmp.Or(k.Label, k.Group), takesOver: takesOver}
}

// labels returns the selector of the objects that an owner has applied.
func (a applier) labels(owner controllers.VersionedID) string {
	return fmt.Sprintf("%s/name=%s,%s/namespace=%s", a.group, owner.Name, a.group, owner.Namespace)
}
