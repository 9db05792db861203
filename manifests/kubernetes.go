package manifests

import (
	"k8s.io/apimachinery/pkg/util/version"

	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/controllers"
)

// CheckKubernetes returns an error if a version of Kubernetes is too old for the
// manifests. Requirements are unknown, and not checked, for minor versions of Flux
// without an embedded distribution.
func (s *Set) CheckKubernetes(server *version.Version) error {
	d, known := controllers.SameMinor(s.Version)
	if !known {
		return nil
	}
	constraint, supported, err := kube.Supports(server, d.Kubernetes)
	if err != nil || supported {
		return err
	}
	return hint.Errorf("upgrade the cluster, or install "+olderFlux(server),
		"Kubernetes %s is too old for Flux %s, which requires %s", server, s.Version, constraint)
}

// olderFlux returns how to install the newest embedded distribution that supports a
// version of Kubernetes.
func olderFlux(server *version.Version) string {
	if d, found := Newest(server); found {
		return "Flux " + d.Version + " with --version " + d.Version
	}
	return "an older Flux with --version or --manifests"
}

// Newest returns the newest embedded distribution that supports a version of
// Kubernetes.
func Newest(server *version.Version) (controllers.Distribution, bool) {
	for _, d := range controllers.Distributions {
		if _, supported, err := kube.Supports(server, d.Kubernetes); err == nil && supported {
			return d, true
		}
	}
	return controllers.Distribution{}, false
}
