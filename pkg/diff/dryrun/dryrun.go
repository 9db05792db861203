// Package dryrun compares the objects that a Kustomization or HelmRelease would apply with the live objects. It sends a
// server-side apply dry run for each object, as kustomize-controller does before it applies. It changes nothing.
package dryrun

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diff"
	"github.com/fluxkit/flux/pkg/diff/crd"
	"github.com/fluxkit/flux/pkg/diff/policy"
)

// maxRequests is the number of concurrent requests: fewer than the stream limit of an HTTP/2
// connection, and enough to hide the latency of a distant cluster.
const maxRequests = 48

// Engine compares plans with one cluster. It records the namespaces and CRDs of each plan, so that
// later plans may depend on them.
type Engine struct {
	config *rest.Config
	// Client sends the requests of the user.
	Client     *kube.Client
	kinds      *kube.Kinds
	normalizer *normalizer
	// self uses the permissions of the user, and actors use the permissions of service accounts.
	self   *actor
	acting sync.Mutex
	actors map[string]*actor
	warned bool

	mu         sync.Mutex
	namespaces map[string]bool
	crds       map[schema.GroupKind]crd.Definition
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
		Client: client, kinds: kube.NewKinds(client), normalizer: normal,
		namespaces: map[string]bool{}, crds: map[schema.GroupKind]crd.Definition{},
	}, nil
}

// Compare returns the changes that the controller would make for a plan. Errors that concern one object are part of its change,
// even if the controller will fail with them. A returned error means that the comparison is incomplete.
//
// Compare sends at most two requests for each object and, once, a discovery request for each group
// version that is not built into Kubernetes.
func (e *Engine) Compare(ctx context.Context, p Plan) (*diff.Result, error) {
	parsed, err := p.parsed(e.normalizer)
	if err != nil {
		return nil, err
	}
	c := &comparison{Engine: e, plan: parsed}
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() error { return e.discover(gctx, parsed.wanted()) })
	said := ""
	g.Go(func() (err error) {
		c.actor, said, err = e.actorFor(gctx, p.Account)
		return err
	})
	if err := g.Wait(); err != nil {
		return nil, err
	}
	gone, err := c.accountMissing(ctx)
	if err != nil {
		return nil, err
	}
	if gone {
		c.prune, c.stay = false, "its service account does not exist"
	}
	// Lists are shared by all objects: they use ctx, not the context of the first caller.
	c.live = newLive(ctx, e.Client, parsed.by.labels(parsed.ref), c.scopes())
	changes := make([]diff.Change, len(parsed.objects)+len(parsed.stale))
	if p.Progress != nil {
		p.Progress(0, len(changes))
	}
	for _, stage := range c.stages() {
		if err := c.run(ctx, stage, changes); err != nil {
			return nil, err
		}
	}
	result := diff.NewResult(p.Owner)
	result.Revision, result.Drift, result.Warnings = p.Revision, p.Drift, parsed.warnings()
	result.Concealed = &diff.Concealment{}
	result.Concealed.Add(p.Build)
	if said != "" {
		result.Warnings = append([]string{said}, result.Warnings...)
	}
	result.Changes = changes
	if p.Release != nil {
		c.addRelease(result)
	}
	if failing := (&diff.Result{Changes: changes[:len(parsed.objects)]}).Count(diff.Failed); failing > 0 {
		skipPruning(result, len(parsed.objects))
	}
	return result, nil
}

// comparison is the state of the comparison of one plan.
type comparison struct {
	*Engine
	*plan
	live  *live
	actor *actor

	// aborted reports whether Helm fails before it changes anything.
	aborted atomic.Bool
	// compared is the number of compared objects.
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
		all = append(all, ref.GroupVersionKind())
	}
	return all
}

func (p *plan) warnings() []string {
	var said []string
	if p.ownerDeleted {
		if !p.prune && len(p.stale) > 0 {
			said = append(said, fmt.Sprintf("%s is deleted, but its objects stay on the cluster: %s", p.ref, p.stay))
		}
		if p.prune && len(p.stale) == 0 && policy.IsRelease(p.ref.ID) {
			said = append(said, fmt.Sprintf("%s is deleted with the objects of its release, which its status does not list", p.ref))
		}
		return said
	}
	if kind, _ := p.ref.Flux(); kind.Suspension.Is(p.Owner.Object) {
		said = append(said, p.ref.String()+" is suspended: nothing is applied until it is resumed")
	}
	if !p.prune && len(p.stale) > 0 {
		said = append(said, p.ref.String()+" does not prune: objects that are no longer in its source stay on the cluster")
	}
	return said
}

// scopes counts the objects by kind and namespace.
func (c *comparison) scopes() map[scope]int {
	counts := map[scope]int{}
	count := func(ref controllers.VersionedID) {
		if r, ok := c.resource(ref.GroupVersionKind()); ok {
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

func scopeOf(r kube.Resource, ref controllers.VersionedID) scope {
	if r.ClusterScoped {
		return scope{resource: r}
	}
	return scope{resource: r, namespace: ref.Namespace}
}

// stages returns the indexes of the objects that are compared together. Namespaces and CRDs are
// first, since other objects depend on them.
func (c *comparison) stages() [][]int {
	var first, rest []int
	for i, o := range c.objects {
		if ref := o.ref(); ref.IsNamespace() || ref.IsCRD() {
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

func (c *comparison) run(ctx context.Context, stage []int, changes []diff.Change) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(maxRequests)
	for _, i := range stage {
		g.Go(func() (err error) {
			if i >= len(c.objects) {
				changes[i], err = c.compareStale(ctx, c.stale[i-len(c.objects)])
			} else {
				changes[i], err = c.compareApplied(ctx, c.objects[i])
			}
			if c.Progress != nil {
				c.Progress(int(c.compared.Add(1)), len(changes))
			}
			return err
		})
	}
	return g.Wait()
}

// skipPruning replaces the deletions, which start at index from: a controller that fails to apply does not prune.
func skipPruning(r *diff.Result, from int) {
	for i, c := range r.Changes {
		if i >= from && (c.Action == diff.Pruned || c.Action == diff.Failed) {
			r.Changes[i] = diff.Change{Object: c.Object, Action: diff.Skipped, Reason: "not pruned: the controller fails before it prunes"}
		}
	}
	r.Warnings = append(r.Warnings, r.Owner.String()+" will not become ready and prunes nothing until the failures are fixed")
}
