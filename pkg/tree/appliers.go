package tree

import (
	"context"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/controllers"
)

// Applier is a Flux object that applies objects.
type Applier struct {
	Kind controllers.Kind
	// Live is the object without its inventory.
	Live controllers.Object
	// Objects lists the applied objects. Recorded is set if they come from the inventory, and Released if they come from
	// the Helm release storage, which does not contain CustomResourceDefinitions from crds/. Otherwise they are unknown.
	Objects            []controllers.VersionedID
	Recorded, Released bool
	// Err is the error for an invalid inventory.
	Err error
}

// Appliers reads the owners that owner labels refer to, with all other objects of their kinds. For owners without an
// inventory, it reads the Helm release storage. Objects that could not be listed or read are gaps.
func Appliers(ctx context.Context, client *kube.Client, owners []controllers.ID) (map[controllers.ID]*Applier, []Gap, error) {
	b := newBuilder(client, Options{})
	wanted, nodes := wants{}, []*Node{}
	for _, owner := range owners {
		if k, ok := expandable(owner.GroupKind()); ok {
			wanted.add(kube.Of(k), owner.Namespace, "")
			nodes = append(nodes, &Node{Object: owner})
		}
	}
	type applier struct {
		Applier
		fluxObject
	}
	all, err := collect(ctx, b.cluster, wanted.requests(true), &b.gaps, func(o controllers.Object) (applier, error) {
		k, _ := kindOf(o)
		a := applier{Applier{Kind: k, Live: o}, fluxObjectOf(k, o)}
		_, a.Recorded = k.Inventory.Lookup(o)
		if status, ok := o["status"].(controllers.Object); ok {
			delete(status, "inventory")
		}
		return a, nil
	})
	if err != nil {
		return nil, nil, err
	}
	for _, a := range all {
		b.flux[a.object] = a.fluxObject
	}
	if err := b.restore(ctx, nodes); err != nil {
		return nil, nil, err
	}
	found := map[controllers.ID]*Applier{}
	for _, a := range all {
		f := b.flux[a.object]
		a.Objects, a.Released, a.Err = f.inventory, f.restored, f.broken
		found[a.object] = &a.Applier
	}
	return found, b.gaps.list(), nil
}
