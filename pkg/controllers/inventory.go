package controllers

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// InventoryID is the identity of an object in the inventory of a Kustomization
// or a HelmRelease: `id` of a ResourceRef in their API documents.
type InventoryID struct {
	// Namespace is empty for objects of the cluster.
	Namespace, Name string
	GroupKind       schema.GroupKind
}

// ParseInventoryID reads an identity of the form namespace_name_group_kind. Two
// underscores in the name stand for a colon, which RBAC objects may have there.
func ParseInventoryID(id string) (InventoryID, error) {
	namespace, rest, first := strings.Cut(id, "_")
	rest, kind, last := cutLast(rest)
	name, group, between := cutLast(rest)
	if !first || !last || !between || name == "" || kind == "" {
		return InventoryID{}, fmt.Errorf("the entry %q is not of the form namespace_name_group_kind", id)
	}
	return InventoryID{namespace, strings.ReplaceAll(name, "__", ":"), schema.GroupKind{Group: group, Kind: kind}}, nil
}

func cutLast(s string) (before, after string, found bool) {
	i := strings.LastIndexByte(s, '_')
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+1:], true
}
