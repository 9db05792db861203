package kube

import (
	"strings"

	"github.com/fluxkit/flux/pkg/controllers"
)

// The labels that tell what belongs to an installation of Flux, and who put it there.
const (
	PartOfLabel    = "app.kubernetes.io/part-of"
	InstanceLabel  = "app.kubernetes.io/instance"
	VersionLabel   = "app.kubernetes.io/version"
	ManagedByLabel = "app.kubernetes.io/managed-by"
	// BootstrapLabel is what kustomize-controller labels everything with that
	// comes out of the repository that a cluster was bootstrapped from.
	BootstrapLabel = "kustomize.toolkit.fluxcd.io/name"

	// PartOfFlux selects what belongs to any installation of Flux.
	PartOfFlux = PartOfLabel + "=flux"
)

// Label returns the value of an object's label.
func Label(o controllers.Object, key string) string {
	v, _ := controllers.Path{"metadata.labels"}.Lookup(o)
	labels, _ := v.(map[string]any)
	s, _ := labels[key].(string)
	return s
}

// InstanceSelector selects what belongs to the installation in a namespace.
func InstanceSelector(namespace string) string {
	return PartOfFlux + "," + InstanceLabel + "=" + namespace
}

// IsFluxGroup tells whether an API group is one of Flux, also one that this
// version of the catalogue does not know.
func IsFluxGroup(group string) bool {
	return strings.HasSuffix(group, ".toolkit.fluxcd.io") || strings.HasSuffix(group, ".extensions.fluxcd.io")
}
