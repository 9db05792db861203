package tree

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fluxkit/flux/internal/kube"
)

// mostRelatives is how many kinds a group may have for all of them to be
// listed: operators have a few, providers of clouds have hundreds.
const mostRelatives = 16

// relatives adds to what is wanted the other kinds of the groups that custom
// resources of the tree belong to: operators make custom resources out of
// custom resources, such as requests and orders out of certificates.
func (b *builder) relatives(ctx context.Context, root *Node, wanted wants) error {
	namespaces := map[schema.GroupVersion][]string{}
	root.each(func(n *Node) {
		o := n.Object
		gv := schema.GroupVersion{Group: o.GroupKind.Group, Version: n.version}
		if !n.remote && o.Namespace != "" && custom(o.GroupKind) && !slices.Contains(namespaces[gv], o.Namespace) {
			namespaces[gv] = append(namespaces[gv], o.Namespace)
		}
	})
	var mu sync.Mutex
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for gv, within := range namespaces {
		group.Go(func() error {
			kinds := b.cluster.family(ctx, gv)
			if ctx.Err() != nil {
				return fmt.Errorf("collecting the tree: %w", context.Cause(ctx))
			}
			if len(kinds) > mostRelatives {
				return nil
			}
			mu.Lock()
			defer mu.Unlock()
			for _, r := range kinds {
				for _, namespace := range within {
					if !r.ClusterScoped {
						wanted.add(wanted.known(r), namespace, "")
					}
				}
			}
			return nil
		})
	}
	return group.Wait()
}

// known is the resource under which a kind is wanted already: one that was
// guessed is not listed twice.
func (w wants) known(r kube.Resource) kube.Resource {
	for other := range w {
		if other.Group == r.Group && other.Kind == r.Kind {
			return other
		}
	}
	return r
}

// family are the kinds of a group, in a version or in the one that the server
// prefers; none where the server does not tell. One that cannot be reached
// shows with the lists that follow.
func (c *cluster) family(ctx context.Context, gv schema.GroupVersion) map[string]kube.Resource {
	if kinds, err := c.Kinds(ctx, gv); err == nil {
		return kinds
	}
	kinds, err := c.preferred(ctx, gv.Group)
	if err != nil {
		return nil
	}
	return kinds
}
