package charts

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/controllers"
)

// Target is the Helm release that a HelmRelease manages.
type Target struct {
	// Name and Namespace identify the Helm release.
	Name, Namespace string
	// Storage is the namespace of the release Secrets of Helm.
	Storage string
}

// TargetOf returns the Helm release that a HelmRelease manages.
func TargetOf(hr *unstructured.Unstructured) (Target, error) {
	var spec releaseSpec
	if err := build.Decode(hr.Object["spec"], &spec); err != nil {
		return Target{}, fmt.Errorf("reading the spec of %s: %w", controllers.IDOf(hr.Object), err)
	}
	return spec.target(hr), nil
}

func (s *releaseSpec) target(hr *unstructured.Unstructured) Target {
	t := Target{Name: controllers.ReleaseName(hr.Object), Namespace: s.TargetNamespace, Storage: s.StorageNamespace}
	if t.Namespace == "" {
		t.Namespace = hr.GetNamespace()
	}
	if t.Storage == "" {
		t.Storage = hr.GetNamespace()
	}
	return t
}

const helmToolkit = "helm.toolkit.fluxcd.io"
