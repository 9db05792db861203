package tree

import (
	"context"
	"fmt"
	"sync"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fluxkit/flux/internal/kube"
)

// mostRelatives is the maximum number of kinds in a group to list: operators
// have a few, cloud providers have hundreds.
const mostRelatives = 16

// relatives adds the other kinds in the groups of custom resources: operators
// create custom resources for custom resources, such as requests and orders for
// certificates.
func (b *builder) relatives(ctx context.Context, root *Node, wanted wants) error {
	namespaces := map[schema.GroupVersion]map[string]bool{}
	root.each(func(n *Node) {
		o := n.Object
		gv := schema.GroupVersion{Group: o.Group, Version: n.version}
		if !n.remote && o.Namespace != "" && custom(o.GroupKind()) {
			if namespaces[gv] == nil {
				namespaces[gv] = map[string]bool{}
			}
			namespaces[gv][o.Namespace] = true
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
				if r.ClusterScoped {
					continue
				}
				known := wanted.known(r)
				for namespace := range within {
					wanted.add(known, namespace, "")
				}
				if err := wanted.check(root.Object); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return group.Wait()
}

// known returns the resource under which a kind is already selected, so that it is not listed
// twice.
func (w wants) known(r kube.Resource) kube.Resource {
	for other := range w {
		if other.Group == r.Group && other.Kind == r.Kind {
			return other
		}
	}
	return r
}

// family returns the kinds of a group, in the given or the preferred version, nil if discovery
// fails. Subsequent lists then return the error.
func (c *cluster) family(ctx context.Context, gv schema.GroupVersion) map[string]kube.Resource {
	if kinds, err := c.client.Discovery().Kinds(ctx, gv); err == nil {
		return kinds
	}
	kinds, err := c.preferred(ctx, gv.Group)
	if err != nil {
		return nil
	}
	return kinds
}
