package controllers

import (
	"cmp"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// ID identifies an object, regardless of the version of its kind. It is comparable.
type ID struct {
	// Group is the API group, "" for the core group.
	Group string `json:"group,omitempty"`
	Kind  string `json:"kind"`
	// Namespace is "" for cluster-scoped objects.
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

// NewID returns the ID of an object of a kind.
func NewID(kind schema.GroupKind, namespace, name string) ID {
	return ID{kind.Group, kind.Kind, namespace, name}
}

// IDOf returns the ID of an object.
func IDOf(o Object) ID {
	gv, _ := schema.ParseGroupVersion(Path{"apiVersion"}.String(o)) // the API server accepts no other objects
	return ID{gv.Group, Path{"kind"}.String(o), Namespace(o), Name(o)}
}

// ID returns the ID of an object of the kind.
func (k Kind) ID(namespace, name string) ID { return ID{k.Group, k.Kind, namespace, name} }

// IDOf returns the ID of an object of the kind. The object itself may have no kind.
func (k Kind) IDOf(o Object) ID { return k.ID(Namespace(o), Name(o)) }

// FluxID returns the ID of an object of the Flux kind with the name kind, without a group if no Flux kind has that name.
func FluxID(kind, namespace, name string) ID {
	k, _ := FindKind(kind)
	return ID{k.Group, kind, namespace, name}
}

// Flux returns the row of the kind in the catalog. It returns false for an object of another group.
func (i ID) Flux() (Kind, bool) { return KindOf(i.Group, i.Kind) }

// JoinNames joins the names of objects.
func JoinNames(objects []ID, separator string) string {
	names := make([]string, len(objects))
	for i, id := range objects {
		names[i] = id.String()
	}
	return strings.Join(names, separator)
}

// GroupKind returns the group and the kind.
func (i ID) GroupKind() schema.GroupKind { return schema.GroupKind{Group: i.Group, Kind: i.Kind} }

// WithoutNamespace returns the ID of objects with the kind and the name in all namespaces.
func (i ID) WithoutNamespace() ID { return ID{Group: i.Group, Kind: i.Kind, Name: i.Name} }

// String returns Kind/namespace/name, or Kind/name for a cluster-scoped object.
func (i ID) String() string {
	if i.Namespace == "" {
		return i.Kind + "/" + i.Name
	}
	return i.Kind + "/" + i.Namespace + "/" + i.Name
}

// Compare orders IDs by kind, namespace, name and group.
func (i ID) Compare(other ID) int {
	return cmp.Or(strings.Compare(i.Kind, other.Kind), strings.Compare(i.Namespace, other.Namespace),
		strings.Compare(i.Name, other.Name), strings.Compare(i.Group, other.Group))
}

// VersionedID identifies an object in a version of its kind, for example an entry of an inventory.
type VersionedID struct {
	ID
	Version string `json:"version,omitempty"`
}

// VersionedIDOf returns the ID of an object with its version.
func VersionedIDOf(o Object) VersionedID {
	gv, _ := schema.ParseGroupVersion(Path{"apiVersion"}.String(o)) // the API server accepts no other objects
	return VersionedID{IDOf(o), gv.Version}
}

// GroupVersionKind returns the kind with the version.
func (i VersionedID) GroupVersionKind() schema.GroupVersionKind {
	return i.GroupKind().WithVersion(i.Version)
}

// Managed returns the IDs of the objects in the inventory of an object, without entries whose id is invalid.
func Managed(o Object) []ID {
	entries := Inventory(o)
	ids := make([]ID, 0, len(entries))
	for _, e := range entries {
		ids = append(ids, e.ID)
	}
	return ids
}

// Inventory returns the inventory of an object, without entries whose id is invalid.
func Inventory(o Object) []VersionedID {
	entries, _ := ParseInventory(o)
	return entries
}

// ParseInventory returns the inventory of an object. If entries have an invalid id, it returns the others and an error.
func ParseInventory(o Object) (entries []VersionedID, err error) {
	v, _ := Path{inventory}.Lookup(o)
	list, _ := v.([]any)
	for _, item := range list {
		m, _ := item.(map[string]any)
		id, invalid := ParseInventoryID(Path{"id"}.String(m))
		if invalid != nil {
			err = cmp.Or(err, invalid)
			continue
		}
		entries = append(entries, VersionedID{id, Path{"v"}.String(m)})
	}
	return entries, err
}

// ParseInventoryID parses the id of an inventory entry, which has the form namespace_name_group_kind. Two
// underscores in the name replace a colon, which names of RBAC objects may contain.
func ParseInventoryID(id string) (ID, error) {
	namespace, rest, first := strings.Cut(id, "_")
	rest, kind, last := cutLast(rest)
	name, group, between := cutLast(rest)
	if !first || !last || !between || name == "" || kind == "" {
		return ID{}, fmt.Errorf("entry %q does not have the form namespace_name_group_kind", id)
	}
	return ID{group, kind, namespace, strings.ReplaceAll(name, "__", ":")}, nil
}

func cutLast(s string) (before, after string, found bool) {
	i := strings.LastIndexByte(s, '_')
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+1:], true
}
