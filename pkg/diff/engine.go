package diff

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/build"
)

// atOnce is how many requests are under way together: below what an HTTP/2
// connection carries, and enough for distance to cost little.
const atOnce = 48

// Engine compares plans with one cluster. It remembers what plans bring, so
// that a plan may stand on the namespaces and definitions of an earlier one.
type Engine struct {
	config     *rest.Config
	client     *kube.Client
	kinds      *kinds
	normalizer *normalizer
	// self asks as who runs the comparison, actors as service accounts.
	self   *actor
	acting sync.Mutex
	actors map[string]*actor
	warned bool

	mu         sync.Mutex
	namespaces map[string]bool
	defined    map[schema.GroupKind]definition
}

// New returns an engine for a cluster. It sends no request.
func New(cfg *rest.Config) (*Engine, error) {
	client, err := kube.New(cfg)
	if err != nil {
		return nil, err
	}
	normal, err := newNormalizer()
	if err != nil {
		return nil, err
	}
	return &Engine{
		config: cfg, self: &actor{client: client}, actors: map[string]*actor{},
		client: client, kinds: newKinds(client), normalizer: normal,
		namespaces: map[string]bool{}, defined: map[schema.GroupKind]definition{},
	}, nil
}

// Compare returns what the controller would do with a plan. What concerns one
// object stands in its change, also when the controller will fail with it;
// an error means that the comparison could not be made.
//
// It sends at most two requests an object and, once, one for each version of a
// group that Kubernetes does not have by itself.
func (e *Engine) Compare(ctx context.Context, p Plan) (*Result, error) {
	parsed, err := p.parsed(e.normalizer)
	if err != nil {
		return nil, err
	}
	c := &comparison{Engine: e, plan: parsed}
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() error { return e.kinds.learn(gctx, parsed.wanted()) })
	said := ""
	g.Go(func() (err error) {
		c.actor, said, err = e.actorFor(gctx, p.Account)
		return err
	})
	if err := g.Wait(); err != nil {
		return nil, err
	}
	gone, err := c.accountGone(ctx)
	if err != nil {
		return nil, err
	}
	if gone {
		c.prune, c.stay = false, "its service account is gone"
	}
	// A list that one object waits for serves all: it must not end with the first of them.
	c.live = newLive(ctx, e.client, parsed.by.labels(parsed.ref), c.scopes())
	changes := make([]Change, len(parsed.objects)+len(parsed.stale))
	if p.Progress != nil {
		p.Progress(0, len(changes))
	}
	for _, stage := range c.stages() {
		if err := c.run(ctx, stage, changes); err != nil {
			return nil, err
		}
	}
	result := &Result{Owner: parsed.ref, Revision: p.Revision, Drift: p.Drift, Warnings: parsed.warnings()}
	if said != "" {
		result.Warnings = append([]string{said}, result.Warnings...)
	}
	result.Changes = changes
	if p.Release != nil {
		c.conclude(result)
	}
	if failing := (&Result{Changes: changes[:len(parsed.objects)]}).Count(Failed); failing > 0 {
		result.unpruned(len(parsed.objects))
	}
	return result, nil
}

// unpruned takes back what would be pruned: a controller that fails to apply
// does not get that far. What would be pruned stands behind the rest.
func (r *Result) unpruned(from int) {
	for i, c := range r.Changes {
		if i >= from && (c.Action == Pruned || c.Action == Failed) {
			r.Changes[i] = Change{Object: c.Object, Action: Skipped, Reason: "the controller fails before it prunes"}
		}
	}
	r.Warnings = append(r.Warnings, r.Owner.String()+" will not become ready, and nothing of it is pruned, until what fails is resolved")
}

// comparison is one plan on its way.
type comparison struct {
	*Engine
	*plan
	live  *live
	actor *actor

	// aborted tells that Helm fails before it changes anything.
	aborted atomic.Bool
	// compared is the number of objects that are done.
	compared atomic.Int64

	once    sync.Once
	last    *build.Result
	lastErr error
}

func (p *plan) wanted() []schema.GroupVersionKind {
	var all []schema.GroupVersionKind
	for _, o := range p.objects {
		all = append(all, o.GroupVersionKind())
	}
	for _, ref := range p.stale {
		all = append(all, ref.kind())
	}
	return all
}

func (p *plan) warnings() []string {
	var said []string
	if p.going {
		if !p.prune && len(p.stale) > 0 {
			said = append(said, fmt.Sprintf("%s goes, and what it has applied stays: %s", p.ref, p.stay))
		}
		if p.prune && len(p.stale) == 0 && p.ref.IsHelmRelease() {
			said = append(said, fmt.Sprintf("%s goes with what it has installed, which its status does not list", p.ref))
		}
		return said
	}
	if suspended, _, _ := unstructured.NestedBool(p.Kustomization.Object, "spec", "suspend"); suspended {
		said = append(said, p.ref.String()+" is suspended: nothing happens until it is resumed")
	}
	if !p.prune && len(p.stale) > 0 {
		said = append(said, p.ref.String()+" does not prune: objects that are no longer in its source stay")
	}
	return said
}

// scopes counts the objects by where a list would find them.
func (c *comparison) scopes() map[scope]int {
	counts := map[scope]int{}
	count := func(ref Ref) {
		if r, ok := c.kinds.of(ref.kind()); ok {
			counts[scopeOf(r, ref)]++
		}
	}
	for _, o := range c.objects {
		count(o.ref())
	}
	for _, ref := range c.stale {
		count(ref)
	}
	return counts
}

func scopeOf(r kube.Resource, ref Ref) scope {
	if r.ClusterScoped {
		return scope{resource: r}
	}
	return scope{resource: r, namespace: ref.Namespace}
}

// stages are the indexes of what is compared together: what others stand on
// comes first, so that it is known what the plan brings.
func (c *comparison) stages() [][]int {
	var first, rest []int
	for i, o := range c.objects {
		if ref := o.ref(); isNamespace(ref) || isDefinition(ref) {
			first = append(first, i)
		} else {
			rest = append(rest, i)
		}
	}
	for i := range c.stale {
		rest = append(rest, len(c.objects)+i)
	}
	return [][]int{first, rest}
}

func (c *comparison) run(ctx context.Context, stage []int, changes []Change) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(atOnce)
	for _, i := range stage {
		g.Go(func() (err error) {
			if i >= len(c.objects) {
				changes[i], err = c.pruned(ctx, c.stale[i-len(c.objects)])
			} else {
				changes[i], err = c.applied(ctx, c.objects[i])
			}
			if c.Progress != nil {
				c.Progress(int(c.compared.Add(1)), len(changes))
			}
			return err
		})
	}
	return g.Wait()
}
