package controllers

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// InventoryID identifies an object in the inventory of a Kustomization or HelmRelease. It is the
// field id of an entry.
type InventoryID struct {
	// Namespace is empty for cluster-scoped objects.
	Namespace, Name string
	GroupKind       schema.GroupKind
}

// ParseInventoryID parses an id of the form namespace_name_group_kind. Two
// underscores in the name replace a colon, which names of RBAC objects may
// contain.
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
