package tree

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/fluxkit/flux/internal/budget"
	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/controllers"
)

const (
	// atOnce is the maximum number of parallel requests.
	atOnce = 16
	// manyNamespaces is the minimum number of namespaces for which one cluster-wide list replaces a
	// list in each namespace.
	manyNamespaces = 8
)

// errNotServed is returned for a kind that the cluster does not serve.
var errNotServed = errors.New("no such kind")

func notServed(err, missing error) error {
	if apierrors.IsNotFound(err) {
		return missing
	}
	return err
}

// wants holds the names of the objects to read, by resource and namespace. The name "" stands for
// all objects.
type wants map[kube.Resource]map[string]map[string]bool

func (w wants) add(r kube.Resource, namespace, name string) {
	if w[r] == nil {
		w[r] = map[string]map[string]bool{}
	}
	if w[r][namespace] == nil {
		w[r][namespace] = map[string]bool{}
	}
	w[r][namespace][name] = true
}

// check returns an error if the number of lists exceeds the limits of a tree.
func (w wants) check(root controllers.ID) error {
	lists := 0
	for _, namespaces := range w {
		lists += len(namespaces)
	}
	if len(w) > budget.TreeKinds {
		return &budget.ExceededError{Name: root.String(), Fact: fmt.Sprintf("its objects have more than %d kinds", budget.TreeKinds)}
	}
	if lists > budget.TreeLists {
		return &budget.ExceededError{Name: root.String(), Fact: fmt.Sprintf("reading its objects requires more than %d lists", budget.TreeLists)}
	}
	return nil
}

// request is one list.
type request struct {
	resource  kube.Resource
	selection kube.Selection
	// instead holds the lists of single namespaces, used if the cluster-wide list is forbidden.
	instead []*request
	// done lists the namespaces whose list has succeeded or failed.
	done []string
}

// requests returns the minimal set of lists for the wanted objects.
func (w wants) requests(everywhere bool) []*request {
	var all []*request
	for _, r := range slices.SortedFunc(maps.Keys(w), byName) {
		var each []*request
		for _, namespace := range slices.Sorted(maps.Keys(w[r])) {
			s := kube.Selection{Namespace: namespace}
			if names := slices.Collect(maps.Keys(w[r][namespace])); len(names) == 1 {
				s.Name = names[0]
			}
			each = append(each, &request{resource: r, selection: s})
		}
		if !r.ClusterScoped && (everywhere || len(each) >= manyNamespaces) {
			each = []*request{{resource: r, instead: each}}
		}
		all = append(all, each...)
	}
	return all
}

func byName(a, b kube.Resource) int {
	return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.Version, b.Version))
}

// collect sends the requests in parallel and returns the objects, converted
// with read. Failed lists become gaps.
func collect[T any](ctx context.Context, c *cluster, requests []*request, g *gaps, read func(controllers.Object) (T, error)) ([]T, error) {
	var mu sync.Mutex
	var found []T
	visit := func(o controllers.Object) error {
		item, err := read(o)
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		found = append(found, item)
		return nil
	}
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for _, r := range requests {
		group.Go(func() error { return r.send(groupCtx, c, g, visit) })
	}
	err := group.Wait()
	if ctx.Err() != nil {
		return nil, fmt.Errorf("collecting the tree: %w", context.Cause(ctx))
	}
	return found, err
}

// send sends the list, or the lists of single namespaces if the cluster-wide
// list is forbidden.
func (r *request) send(ctx context.Context, c *cluster, g *gaps, visit func(controllers.Object) error) error {
	err := c.each(ctx, r.resource, r.selection, visit)
	if apierrors.IsForbidden(err) && r.instead != nil {
		return r.sendInstead(ctx, c, g, visit)
	}
	r.done = []string{r.selection.Namespace}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		g.add(r.resource, r.selection.Namespace, err)
	}
	return nil
}

func (r *request) sendInstead(ctx context.Context, c *cluster, g *gaps, visit func(controllers.Object) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for _, one := range r.instead {
		group.Go(func() error { return one.send(ctx, c, g, visit) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	for _, one := range r.instead {
		r.done = append(r.done, one.done...)
	}
	return nil
}

// gaps records the failed lists by resource.
type gaps struct {
	mu  sync.Mutex
	all map[string]*gap
}

// gap holds the namespaces of a resource that could not be listed.
type gap struct {
	err        error
	everywhere bool
	namespaces map[string]bool
}

func (g *gaps) add(r kube.Resource, namespace string, err error) {
	var namespaces []string
	if namespace != "" {
		namespaces = []string{namespace}
	}
	g.merge(Gap{Resource: r.GroupResource().String(), Namespaces: namespaces, Err: err})
}

// merge adds a gap; the first error of a resource is kept.
func (g *gaps) merge(found Gap) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.all == nil {
		g.all = map[string]*gap{}
	}
	known := g.all[found.Resource]
	if known == nil {
		known = &gap{err: found.Err, namespaces: map[string]bool{}}
		g.all[found.Resource] = known
	}
	known.everywhere = known.everywhere || len(found.Namespaces) == 0
	for _, namespace := range found.Namespaces {
		known.namespaces[namespace] = true
	}
}

// covers returns the error if objects of the resource could not be listed in
// the namespace.
func (g *gaps) covers(resource, namespace string) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	known := g.all[resource]
	if known == nil || !known.everywhere && !known.namespaces[namespace] {
		return nil
	}
	return known.err
}

// list returns the gaps, except for kinds that are not served: their objects appear as missing.
func (g *gaps) list() []Gap {
	g.mu.Lock()
	defer g.mu.Unlock()
	var list []Gap
	for _, name := range slices.Sorted(maps.Keys(g.all)) {
		known := g.all[name]
		if IsNotServed(known.err) {
			continue
		}
		missed := Gap{Resource: name, Err: known.err}
		if !known.everywhere {
			missed.Namespaces = slices.Sorted(maps.Keys(known.namespaces))
		}
		list = append(list, missed)
	}
	return list
}

// IsNotServed reports whether the cluster does not serve a kind.
func IsNotServed(err error) bool {
	var missing *kube.MissingKindError
	return errors.Is(err, errNotServed) || errors.As(err, &missing)
}
