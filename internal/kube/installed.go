package kube

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/fluxkit/flux/pkg/controllers"
)

// The labels of objects in a Flux installation.
const (
	PartOfLabel    = "app.kubernetes.io/part-of"
	InstanceLabel  = "app.kubernetes.io/instance"
	VersionLabel   = "app.kubernetes.io/version"
	ManagedByLabel = "app.kubernetes.io/managed-by"
	// BootstrapLabel is the label that kustomize-controller sets on objects that it applies, such
	// as the Flux objects of a bootstrapped cluster.
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

// InstanceSelector returns the label selector for the objects of the installation in a namespace.
func InstanceSelector(namespace string) string {
	return PartOfFlux + "," + InstanceLabel + "=" + namespace
}

// IsFluxGroup reports whether an API group belongs to Flux, including groups that are not in the
// catalog.
func IsFluxGroup(group string) bool {
	return strings.HasSuffix(group, ".toolkit.fluxcd.io") || strings.HasSuffix(group, ".extensions.fluxcd.io")
}

// ErrNotInstalled is returned for a cluster without Flux CRDs.
var ErrNotInstalled = errors.New("no Flux CRDs found in the cluster")

// CheckInstalled returns ErrNotInstalled if none of the cluster's resources belongs to a Flux kind.
func CheckInstalled(resources []Resource) error {
	if slices.ContainsFunc(resources, func(r Resource) bool { return slices.Contains(controllers.Groups(), r.Group) }) {
		return nil
	}
	return ErrNotInstalled
}

// Versions contains the versions of an installation.
type Versions struct {
	// Flux is the version of the distribution with a leading "v", "" if no label contains it.
	Flux string
	// Controllers maps the names of the controllers' Deployments to their image tags. It is empty if the namespace
	// contains no controllers.
	Controllers map[string]string
}

// InstalledVersions reads the versions from the Deployments of the controllers in a namespace.
func InstalledVersions(ctx context.Context, client *Client, namespace string) (Versions, error) {
	v := Versions{Controllers: map[string]string{}}
	_, err := client.List(ctx, BuiltIn("apps/v1", "Deployment"), Selection{Namespace: namespace, Labels: PartOfFlux}, func(o controllers.Object) error {
		name := controllers.Name(o)
		v.Controllers[name] = controllers.ImageTag(controllers.Path{"spec.template.spec.containers[0].image"}.String(o))
		// source-controller is part of every installation, so its label takes precedence.
		if v.Flux == "" || name == "source-controller" {
			v.Flux = Label(o, VersionLabel)
		}
		return nil
	})
	return v, err
}
