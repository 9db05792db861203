package controllers

import (
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The names of the kinds that code refers to. Facts about a Flux kind belong in its catalog
// row, not in comparisons with these names.
const (
	Bucket          = "Bucket"
	GitRepository   = "GitRepository"
	HelmChart       = "HelmChart"
	HelmRelease     = "HelmRelease"
	HelmRepository  = "HelmRepository"
	ImageRepository = "ImageRepository"
	Kustomization   = "Kustomization"
	OCIRepository   = "OCIRepository"

	ConfigMap = "ConfigMap"
	Secret    = "Secret"
)

// IsSecret reports whether the object is a Secret.
func (i ID) IsSecret() bool { return i.is("", Secret) }

// IsConfigMap reports whether the object is a ConfigMap.
func (i ID) IsConfigMap() bool { return i.is("", ConfigMap) }

// IsNamespace reports whether the object is a Namespace.
func (i ID) IsNamespace() bool { return i.is("", "Namespace") }

// IsCRD reports whether the object is a CustomResourceDefinition.
func (i ID) IsCRD() bool { return i.is("apiextensions.k8s.io", "CustomResourceDefinition") }

// First reports whether kustomize-controller applies the object before others, which may depend on it.
func (i ID) First() bool {
	return i.IsNamespace() || i.IsCRD() || i.is("rbac.authorization.k8s.io", "ClusterRole")
}

// IsBuiltInGroup reports whether an API group is one of Kubernetes: it has no domain, or the domain k8s.io.
func IsBuiltInGroup(group string) bool {
	return !strings.Contains(group, ".") || strings.HasSuffix(group, ".k8s.io")
}

func (i ID) is(group, kind string) bool {
	return i.GroupKind() == schema.GroupKind{Group: group, Kind: kind}
}

// ExternalArtifact is the kind of objects that an ArtifactGenerator produces.
const ExternalArtifact = "ExternalArtifact"
