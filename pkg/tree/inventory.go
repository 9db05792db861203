package tree

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fluxkit/flux/pkg/controllers"
)

// fluxObject is the required part of a Flux object with an inventory.
type fluxObject struct {
	live
	inventory []controllers.VersionedID
	// remote marks an inventory of another cluster.
	remote bool
	// stored is the release storage for a HelmRelease without an inventory, nil
	// otherwise. restored is set if the inventory was read from it.
	stored   *storage
	restored bool
	// broken is the error for an invalid inventory. It is returned only if the object is in the tree,
	// because lists also contain other objects.
	broken error
}

func fluxObjectOf(k controllers.Kind, o controllers.Object) fluxObject {
	f := fluxObject{live: liveOf(o), stored: storageOf(k, o), remote: controllers.IsRemote(o)}
	list, _ := k.Inventory.Lookup(o)
	items, _ := list.([]any)
	for _, item := range items {
		m, ok := item.(map[string]any)
		if !ok {
			continue
		}
		e, err := entryOf(m)
		if err != nil {
			f.broken = fmt.Errorf("reading the inventory of %s: %w", f.object, err)
			return f
		}
		f.inventory = append(f.inventory, e)
	}
	return f
}

// entryOf parses an entry of an inventory. Entries of an ArtifactGenerator refer to an
// ExternalArtifact, unless they have another kind, such as a managed Namespace since Flux 2.10.
func entryOf(m map[string]any) (controllers.VersionedID, error) {
	field := func(name string) string { return controllers.Path{name}.String(m) }
	id := field("id")
	if id == "" {
		artifact, _ := controllers.FindKind("ExternalArtifact")
		if other := field("kind"); other != "" && other != artifact.Kind {
			return controllers.VersionedID{ID: controllers.ID{Kind: other, Namespace: field("namespace"), Name: field("name")}, Version: "v1"}, nil
		}
		return controllers.VersionedID{ID: artifact.ID(field("namespace"), field("name")), Version: artifact.Version}, nil
	}
	parsed, err := controllers.ParseInventoryID(id)
	return controllers.VersionedID{ID: parsed, Version: field("v")}, err
}

// expandable reports whether objects of the kind have an inventory.
func expandable(kind schema.GroupKind) (controllers.Kind, bool) {
	k, ok := controllers.KindOf(kind.Group, kind.Kind)
	return k, ok && k.Inventory != nil
}

func ofFlux(kind schema.GroupKind) bool { return slices.Contains(controllers.Groups(), kind.Group) }
