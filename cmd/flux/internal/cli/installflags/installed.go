package installflags

import (
	"fmt"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/controllers"
)

// ElsewhereHint returns a hint if Flux is installed in another namespace.
func ElsewhereHint(crd controllers.Object, namespace string) string {
	if instance := kube.Label(crd, kube.InstanceLabel); instance != "" && instance != namespace {
		return fmt.Sprintf("Flux is installed in namespace %q: use -n %s", instance, instance)
	}
	return ""
}
