package diff

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxkit/flux/internal/kube"
)

// applier is how a controller applies: all that differs between the two.
type applier struct {
	kube.Applier
	// group is that of the labels by which it knows its objects.
	group string
	// takesOver tells whether it makes fields its own before it applies, so
	// that those go away which it does not set.
	takesOver func(metav1.ManagedFieldsEntry) bool
	// leftovers is metadata that it removes from live objects.
	leftovers map[string][]string
}

func kustomizeController() applier {
	return applier{Applier: kube.Applier{Manager: manager}, group: group, takesOver: undone, leftovers: leftovers}
}

// labels select what an owner has applied.
func (a applier) labels(owner Ref) string {
	return fmt.Sprintf("%s/name=%s,%s/namespace=%s", a.group, owner.Name, a.group, owner.Namespace)
}
