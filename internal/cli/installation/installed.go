package installation

import (
	"fmt"
	"strings"

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

// ImageTag returns the tag of an image, or its digest if it has no tag.
func ImageTag(image string) string {
	name, digest, _ := strings.Cut(image, "@")
	if i := strings.LastIndexByte(name, ':'); i > strings.LastIndexByte(name, '/') {
		return name[i+1:]
	}
	return digest
}
