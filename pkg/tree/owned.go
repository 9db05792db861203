package tree

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fluxkit/flux/internal/budget"
	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/controllers"
)

// The built-in kinds that are owners or owned, and the kind of the release storage.
var (
	pod         = schema.GroupKind{Kind: "Pod"}
	secret      = schema.GroupKind{Kind: "Secret"}
	claim       = schema.GroupKind{Kind: "PersistentVolumeClaim"}
	replicaSet  = schema.GroupKind{Group: "apps", Kind: "ReplicaSet"}
	deployment  = schema.GroupKind{Group: "apps", Kind: "Deployment"}
	statefulSet = schema.GroupKind{Group: "apps", Kind: "StatefulSet"}
	daemonSet   = schema.GroupKind{Group: "apps", Kind: "DaemonSet"}
	job         = schema.GroupKind{Group: "batch", Kind: "Job"}
	cronJob     = schema.GroupKind{Group: "batch", Kind: "CronJob"}
)

// ownedBy lists the kinds that an object of a kind owns, directly or
// indirectly.
var ownedBy = map[schema.GroupKind][]schema.GroupKind{
	deployment:  {replicaSet, pod},
	replicaSet:  {pod},
	statefulSet: {pod, claim},
	daemonSet:   {pod},
	job:         {pod},
	cronJob:     {job, pod},
}

// workloads lists the kinds that operators create for their custom resources.
var workloads = []schema.GroupKind{deployment, statefulSet, daemonSet, replicaSet, cronJob, job, pod, claim}

// ownedKinds returns the kinds that an object may own.
func ownedKinds(o controllers.ID) []schema.GroupKind {
	if kinds, ok := ownedBy[o.GroupKind()]; ok {
		return kinds
	}
	if o.Namespace != "" && custom(o.GroupKind()) {
		return workloads
	}
	return nil
}

// custom reports whether a kind is a custom resource of another project,
// according to the domain of its group.
func custom(kind schema.GroupKind) bool {
	return !controllers.IsBuiltInGroup(kind.Group) && !ofFlux(kind)
}

// resourceOf returns the resource of a kind, in v1 unless the version is given.
func resourceOf(kind schema.GroupKind, version string) kube.Resource {
	return kube.ResourceFor(kind.WithVersion(cmp.Or(version, "v1")))
}

// populate reads the live objects of the tree and adds the objects that they
// own.
func (b *builder) populate(ctx context.Context, root *Node) error {
	wanted := b.wanted(root)
	if err := wanted.check(root.Object); err != nil {
		return err
	}
	if b.options.owned() {
		if err := b.relatives(ctx, root, wanted); err != nil {
			return err
		}
	}
	found, err := collect(ctx, b.cluster, wanted.requests(false), &b.gaps, func(o controllers.Object) (live, error) { return liveOf(o), nil })
	if err != nil {
		return err
	}
	index := newIndex(found)
	var nodes []*Node
	root.each(func(n *Node) { nodes = append(nodes, n); index.shown[n.Object] = true })
	for _, n := range nodes {
		b.fill(n, index)
	}
	return nil
}

// wanted selects the inventory objects whose status is required, and all objects of the kinds that
// they may own.
func (b *builder) wanted(root *Node) wants {
	wanted := wants{}
	root.each(func(n *Node) {
		if n.remote {
			return
		}
		owned := ownedKinds(n.Object)
		if !b.options.owned() {
			owned = nil
		}
		if _, read := expandable(n.Object.GroupKind()); !read && (b.options.Status || owned != nil) {
			r := resourceOf(n.Object.GroupKind(), n.version)
			r.ClusterScoped = n.Object.Namespace == ""
			wanted.add(r, n.Object.Namespace, n.Object.Name)
		}
		for _, kind := range owned {
			wanted.add(resourceOf(kind, ""), n.Object.Namespace, "")
		}
	})
	return wanted
}

// fill sets the status of an inventory node and adds the objects that it owns.
func (b *builder) fill(n *Node, index *index) {
	if _, read := expandable(n.Object.GroupKind()); read && !n.remote {
		return
	}
	l, ok := index.live[n.Object]
	if b.options.Status {
		b.setStatus(n, l, ok)
	}
	if n.remote || !b.options.owned() {
		return
	}
	if !ok {
		l = live{object: n.Object}
	}
	b.addOwned(n, l, index, 1)
}

func (b *builder) setStatus(n *Node, l live, found bool) {
	if found && !n.remote {
		n.describe(l)
		return
	}
	if n.remote {
		n.Status, n.Message = Unknown, "it is in another cluster"
		return
	}
	b.absent(n, resourceOf(n.Object.GroupKind(), n.version).GroupResource().String())
}

// absent sets the status of an object in the inventory that was not found.
func (b *builder) absent(n *Node, resource string) {
	n.Status, n.Message = NotFound, "in the inventory, not in the cluster"
	err := b.gaps.covers(resource, n.Object.Namespace)
	switch {
	case err == nil:
	case IsNotServed(err):
		n.Message = "the cluster does not serve this kind"
	default:
		n.Status, n.Message = Unknown, "it could not be read"
	}
}

// addOwned recursively adds the owned objects of a live object to its node.
func (b *builder) addOwned(n *Node, l live, index *index, depth int) {
	if depth > budget.TreeDepth {
		n.Message = fmt.Sprintf("owned objects are nested more than %d levels deep", budget.TreeDepth)
		return
	}
	for _, child := range index.below(l) {
		if child.idle && !b.options.All || index.shown[child.object] {
			continue
		}
		index.shown[child.object] = true
		node := &Node{Object: child.object}
		if b.options.Status {
			node.describe(child)
		}
		n.Children = append(n.Children, node)
		b.addOwned(node, child, index, depth+1)
	}
}

// index finds live objects by name and by owner.
type index struct {
	live  map[controllers.ID]live
	owned map[controllers.ID][]live
	// claims holds the PersistentVolumeClaims by name without the ordinal. By default, a StatefulSet
	// creates them but does not own them.
	claims map[controllers.ID][]live
	// shown holds the objects in the tree, because each appears only once.
	shown map[controllers.ID]bool
}

func newIndex(found []live) *index {
	slices.SortFunc(found, func(a, b live) int {
		return cmp.Or(cmp.Compare(a.object.Kind, b.object.Kind), cmp.Compare(a.object.Name, b.object.Name))
	})
	x := &index{live: map[controllers.ID]live{}, owned: map[controllers.ID][]live{}, claims: map[controllers.ID][]live{}, shown: map[controllers.ID]bool{}}
	for _, l := range found {
		x.live[l.object] = l
		if l.owner != (controllers.ID{}) {
			x.owned[l.owner] = append(x.owned[l.owner], l)
		}
		if l.object.GroupKind() == claim {
			base := l.object
			base.Name = strings.TrimRight(base.Name, "0123456789")
			x.claims[base] = append(x.claims[base], l)
		}
	}
	return x
}

// below returns the objects that l owns. Owners match by UID or, if l could not
// be read, by name.
func (x *index) below(l live) []live {
	var all []live
	for _, child := range x.owned[l.object] {
		if l.uid == "" || child.ownerUID == l.uid {
			all = append(all, child)
		}
	}
	for _, prefix := range l.claims {
		all = append(all, x.claims[controllers.NewID(claim, l.object.Namespace, prefix+"-")]...)
	}
	return all
}
