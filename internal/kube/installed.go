package kube

import (
	"strings"

	"github.com/fluxkit/flux/pkg/controllers"
)

// Labels of the objects of a Flux installation.
const (
	PartOfLabel    = "app.kubernetes.io/part-of"
	InstanceLabel  = "app.kubernetes.io/instance"
	VersionLabel   = "app.kubernetes.io/version"
	ManagedByLabel = "app.kubernetes.io/managed-by"
	// BootstrapLabel is the label that kustomize-controller sets on objects that it applies, such
	// as those of a bootstrapped cluster.
	BootstrapLabel = "kustomize.toolkit.fluxcd.io/name"

	// PartOfFlux selects the objects of any Flux installation.
	PartOfFlux = PartOfLabel + "=flux"
)

// Label returns the value of a label of an object.
func Label(o controllers.Object, key string) string {
	v, _ := controllers.Path{"metadata.labels"}.Lookup(o)
	labels, _ := v.(map[string]any)
	s, _ := labels[key].(string)
	return s
}

// InstanceSelector returns the selector of the objects of the installation in a namespace.
func InstanceSelector(namespace string) string {
	return PartOfFlux + "," + InstanceLabel + "=" + namespace
}

// IsFluxGroup reports whether an API group belongs to Flux, including groups that are not in the
// catalog.
func IsFluxGroup(group string) bool {
	return strings.HasSuffix(group, ".toolkit.fluxcd.io") || strings.HasSuffix(group, ".extensions.fluxcd.io")
}
