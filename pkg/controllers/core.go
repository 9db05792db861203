package controllers

import "k8s.io/apimachinery/pkg/runtime/schema"

// The groups of Kubernetes with kinds that the controllers treat in a way of their own.
const (
	rbacGroup = "rbac.authorization.k8s.io"
	crdGroup  = "apiextensions.k8s.io"
)

// IsSecret reports whether the object is a Secret.
func (i ID) IsSecret() bool { return i.is("", "Secret") }

// IsNamespace reports whether the object is a Namespace.
func (i ID) IsNamespace() bool { return i.is("", "Namespace") }

// IsCRD reports whether the object is a CustomResourceDefinition.
func (i ID) IsCRD() bool { return i.is(crdGroup, "CustomResourceDefinition") }

func (i ID) is(group, kind string) bool {
	return i.GroupKind() == schema.GroupKind{Group: group, Kind: kind}
}
