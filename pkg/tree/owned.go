package tree

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/controllers"
)

// The built-in kinds that own others or are owned, and where Helm keeps releases.
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

// ownedBy says which kinds an object of a kind owns, itself or through others.
var ownedBy = map[schema.GroupKind][]schema.GroupKind{
	deployment:  {replicaSet, pod},
	replicaSet:  {pod},
	statefulSet: {pod, claim},
	daemonSet:   {pod},
	job:         {pod},
	cronJob:     {job, pod},
}

// workloads are what an operator makes out of its custom resources.
var workloads = []schema.GroupKind{deployment, statefulSet, daemonSet, replicaSet, cronJob, job, pod, claim}

// ownedKinds are the kinds below an object, nil where nothing is.
func ownedKinds(o Object) []schema.GroupKind {
	if kinds, ok := ownedBy[o.GroupKind]; ok {
		return kinds
	}
	if o.Namespace != "" && custom(o.GroupKind) {
		return workloads
	}
	return nil
}

// custom tells a custom resource from a built-in kind: groups that are not
// Kubernetes' own belong to somebody's domain.
func custom(kind schema.GroupKind) bool {
	domain := strings.Contains(kind.Group, ".") && !strings.HasSuffix(kind.Group, ".k8s.io")
	return domain && !ofFlux(kind)
}

// resourceOf is the collection of a kind, in v1 unless a version is known.
func resourceOf(kind schema.GroupKind, version string) kube.Resource {
	return kube.Guess(kind.WithVersion(cmp.Or(version, "v1")))
}

// populate looks at the live objects of the tree and adds what they own.
func (b *builder) populate(ctx context.Context, root *Node) error {
	wanted := b.wanted(root)
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

// wanted are the objects of the inventories as far as their status counts,
// and all objects of the kinds that they may own.
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
		if _, read := expandable(n.Object.GroupKind); !read && (b.options.Status || owned != nil) {
			r := resourceOf(n.Object.GroupKind, n.version)
			r.ClusterScoped = n.Object.Namespace == ""
			wanted.add(r, n.Object.Namespace, n.Object.Name)
		}
		for _, kind := range owned {
			wanted.add(resourceOf(kind, ""), n.Object.Namespace, "")
		}
	})
	return wanted
}

// fill describes a node of an inventory and hangs below it what it owns.
func (b *builder) fill(n *Node, index *index) {
	if _, read := expandable(n.Object.GroupKind); read && !n.remote {
		return
	}
	l, ok := index.live[n.Object]
	if b.options.Status {
		b.judge(n, l, ok)
	}
	if n.remote || !b.options.owned() {
		return
	}
	if !ok {
		l = live{object: n.Object}
	}
	b.hang(n, l, index)
}

func (b *builder) judge(n *Node, l live, found bool) {
	if found && !n.remote {
		n.describe(l)
		return
	}
	if n.remote {
		n.Status, n.Message = Unknown, "it is in another cluster"
		return
	}
	b.absent(n, resourceOf(n.Object.GroupKind, n.version).GroupResource().String())
}

// absent says why an object that the inventory names was not found.
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

// hang adds what a live object owns below its node, and so on down.
func (b *builder) hang(n *Node, l live, index *index) {
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
		b.hang(node, child, index)
	}
}

// index finds live objects by name and by owner.
type index struct {
	live  map[Object]live
	owned map[Object][]live
	// claims are the claims by their names without the ordinal: by default a
	// StatefulSet makes them and does not own them.
	claims map[Object][]live
	// shown are the objects in the tree: each stands in one place.
	shown map[Object]bool
}

func newIndex(found []live) *index {
	slices.SortFunc(found, func(a, b live) int {
		return cmp.Or(cmp.Compare(a.object.GroupKind.Kind, b.object.GroupKind.Kind), cmp.Compare(a.object.Name, b.object.Name))
	})
	x := &index{live: map[Object]live{}, owned: map[Object][]live{}, claims: map[Object][]live{}, shown: map[Object]bool{}}
	for _, l := range found {
		x.live[l.object] = l
		if l.owner != (Object{}) {
			x.owned[l.owner] = append(x.owned[l.owner], l)
		}
		if l.object.GroupKind == claim {
			base := l.object
			base.Name = strings.TrimRight(base.Name, "0123456789")
			x.claims[base] = append(x.claims[base], l)
		}
	}
	return x
}

// below are the objects that l owns. Where l itself could not be read, its
// name has to do; else one of the same name that is gone does not count.
func (x *index) below(l live) []live {
	var all []live
	for _, child := range x.owned[l.object] {
		if l.uid == "" || child.ownerUID == l.uid {
			all = append(all, child)
		}
	}
	for _, prefix := range l.claims {
		all = append(all, x.claims[Object{l.object.Namespace, prefix + "-", claim}]...)
	}
	return all
}
