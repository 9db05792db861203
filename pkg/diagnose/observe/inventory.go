package observe

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/internal/terminal/output"
	"github.com/fluxkit/flux/pkg/controllers"
)

const (
	// inventoryLists is the maximum number of list requests for an inventory, one for each kind.
	inventoryLists = 12
	// listsAtOnce is the maximum number of parallel lists.
	listsAtOnce = 6
)

// Inventory is the live state of the objects in the inventory of an applier.
type Inventory struct {
	// Objects lists the entries.
	Objects []controllers.ID
	// Live holds the metadata of existing objects. Absent marks missing objects. An object in neither could not be checked.
	Live   map[controllers.ID]controllers.Object
	Absent map[controllers.ID]bool
	// Unserved marks the missing objects whose kind the cluster does not serve.
	Unserved map[controllers.ID]bool
	// Unknown describes what could not be checked, and why.
	Unknown []string

	owner controllers.ID
	// inspect is called with each live object.
	inspect func(controllers.ID, controllers.Object)
	mu      sync.Mutex
}

// Inventory reads the metadata of the objects in the inventory of an applier: one list for each kind, selected by the owner
// labels, and a request for each remaining object. inspect is called with each object before its managed fields, which are
// large, are dropped; several calls may run at the same time.
func (c *Cluster) Inventory(ctx context.Context, k controllers.Kind, applier controllers.Object, inspect func(controllers.ID, controllers.Object)) *Inventory {
	inv := &Inventory{
		Objects: controllers.Managed(applier), Live: map[controllers.ID]controllers.Object{}, Absent: map[controllers.ID]bool{}, Unserved: map[controllers.ID]bool{},
		owner: k.IDOf(applier), inspect: inspect,
	}
	entries, err := controllers.ParseInventory(applier)
	if err != nil {
		inv.Unknown = append(inv.Unknown, fmt.Sprintf("part of the inventory of %s: %v", inv.owner, err))
	}
	kinds := byKind(entries)
	if len(kinds) > inventoryLists {
		n := 0
		for _, kind := range kinds[inventoryLists:] {
			n += len(kind.objects)
		}
		inv.Unknown = append(inv.Unknown, fmt.Sprintf("%s of %d more kinds in the inventory of %s", output.Amount(n, "object"), len(kinds)-inventoryLists, inv.owner))
		kinds = kinds[:inventoryLists]
	}
	var g errgroup.Group
	g.SetLimit(listsAtOnce)
	for _, kind := range kinds {
		g.Go(func() error {
			inv.list(ctx, c.Client, kind)
			return nil
		})
	}
	_ = g.Wait() // all errors are in Unknown
	inv.lookUp(ctx, c, kinds)
	slices.Sort(inv.Unknown)
	return inv
}

// inventoryKind holds the objects of one kind.
type inventoryKind struct {
	resource kube.Resource
	// namespace is "" for several namespaces and for cluster-scoped objects.
	namespace string
	objects   []controllers.ID
	// done is set if the kind is not served or cannot be listed.
	done bool
}

// byKind returns the kinds of an inventory, sorted by the number of objects.
func byKind(entries []controllers.VersionedID) []*inventoryKind {
	known := map[schema.GroupVersionKind]*inventoryKind{}
	var kinds []*inventoryKind
	for _, e := range entries {
		at := e.GroupVersionKind()
		kind := known[at]
		if kind == nil {
			kind = &inventoryKind{resource: kube.ResourceFor(at), namespace: e.Namespace}
			kind.resource.ClusterScoped = e.Namespace == ""
			known[at] = kind
			kinds = append(kinds, kind)
		}
		if kind.namespace != e.Namespace {
			kind.namespace = ""
		}
		kind.objects = append(kind.objects, e.ID)
	}
	slices.SortStableFunc(kinds, func(a, b *inventoryKind) int { return cmp.Compare(len(b.objects), len(a.objects)) })
	return kinds
}

// list reads the objects of a kind. If the guessed resource is not served, it looks up the resource once.
func (inv *Inventory) list(ctx context.Context, client *kube.Client, kind *inventoryKind) {
	wanted := map[[2]string]controllers.ID{}
	for _, t := range kind.objects {
		wanted[[2]string{t.Namespace, t.Name}] = t
	}
	owners := fmt.Sprintf("%[1]s/name=%[2]s,%[1]s/namespace=%[3]s", inv.owner.Group, inv.owner.Name, inv.owner.Namespace)
	selection := kube.Selection{Namespace: kind.namespace, Labels: owners, OnlyMetadata: true, Without: content}
	keep := func(o controllers.Object) error {
		if t, ok := wanted[[2]string{controllers.Namespace(o), controllers.Name(o)}]; ok {
			inv.take(t, o)
		}
		return nil
	}
	_, err := client.List(ctx, kind.resource, selection, keep)
	if apierrors.IsNotFound(err) {
		if kind.resource, err = servedAs(ctx, client, kind.resource); err == nil {
			_, err = client.List(ctx, kind.resource, selection, keep)
		}
	}
	if err == nil {
		return
	}
	inv.mu.Lock()
	defer inv.mu.Unlock()
	kind.done = true
	if notServed := (*kube.UnknownWordError)(nil); !errors.As(err, &notServed) {
		inv.Unknown = append(inv.Unknown, Unread(kind.resource.Resource+" in the inventory of "+inv.owner.String(), err))
		return
	}
	for _, t := range kind.objects { // the CRD was deleted with its objects
		inv.Absent[t], inv.Unserved[t] = true, true
	}
}

// take keeps the metadata of a live object.
func (inv *Inventory) take(t controllers.ID, o controllers.Object) {
	inv.inspect(t, o)
	if metadata, ok := o["metadata"].(map[string]any); ok {
		delete(metadata, "managedFields")
	}
	inv.mu.Lock()
	defer inv.mu.Unlock()
	inv.Live[t] = o
}

// servedAs returns the resource with the plural and the version that the cluster serves.
func servedAs(ctx context.Context, client *kube.Client, r kube.Resource) (kube.Resource, error) {
	versions, err := client.Discovery().NamedInGroup(ctx, r.Group, strings.ToLower(r.Kind))
	if err != nil {
		return r, err
	}
	served := versions[0]
	for _, v := range versions {
		if v.Version == r.Version {
			served = v
		}
	}
	served.ClusterScoped = r.ClusterScoped
	return served, nil
}

// lookUp reads the objects that no list returned: they are missing, or have lost their labels.
func (inv *Inventory) lookUp(ctx context.Context, c *Cluster, kinds []*inventoryKind) {
	requests := 0
	for _, kind := range kinds {
		for _, t := range kind.objects {
			if inv.Live[t] != nil || kind.done {
				continue
			}
			if requests++; requests > Lookups {
				continue
			}
			o, err := c.Metadata(ctx, kind.resource, t)
			switch {
			case err != nil:
				inv.Unknown = append(inv.Unknown, Unread(t.String(), err))
			case o == nil:
				inv.Absent[t] = true
			default:
				inv.take(t, o)
			}
		}
	}
	if requests > Lookups {
		inv.Unknown = append(inv.Unknown, fmt.Sprintf("%s without the labels of %s", output.Amount(requests-Lookups, "object"), inv.owner))
	}
}

// content lists the fields outside metadata, which a server may send anyway.
var content = []string{"spec", "status", "data", "binaryData", "stringData"}

// Metadata returns the metadata of one object, or nil if it does not exist.
func (c *Cluster) Metadata(ctx context.Context, r kube.Resource, t controllers.ID) (found controllers.Object, err error) {
	_, err = c.Client.List(ctx, r, kube.Selection{Namespace: t.Namespace, Name: t.Name, OnlyMetadata: true, Without: content}, func(o controllers.Object) error {
		found = o
		return nil
	})
	return found, err
}

// Object returns an object of an inventory with all its fields, or nil if it does not exist.
func (c *Cluster) Object(ctx context.Context, t controllers.VersionedID) (controllers.Object, error) {
	r := kube.ResourceFor(t.GroupVersionKind())
	r.ClusterScoped = t.Namespace == ""
	o, err := c.Client.Get(ctx, r, t.Namespace, t.Name)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return o, err
}
