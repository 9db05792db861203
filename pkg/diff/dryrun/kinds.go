package dryrun

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/controllers"
)

// builtin holds the group versions that every supported version of Kubernetes serves and that
// kube.ResourceFor knows, so that they need no discovery.
var builtin = []string{
	"v1", "apps/v1", "batch/v1", "rbac.authorization.k8s.io/v1", "networking.k8s.io/v1", "policy/v1", "autoscaling/v2",
	"storage.k8s.io/v1", "scheduling.k8s.io/v1", "admissionregistration.k8s.io/v1", "apiextensions.k8s.io/v1",
}

// kinds maps kinds to resources. It discovers each group version once.
type kinds struct {
	client *kube.Client
	mu     sync.Mutex
	known  map[schema.GroupVersion]map[string]kube.Resource
}

func newKinds(client *kube.Client) *kinds {
	return &kinds{client: client, known: map[schema.GroupVersion]map[string]kube.Resource{}}
}

// learn discovers the group versions of the given kinds.
func (k *kinds) learn(ctx context.Context, wanted []schema.GroupVersionKind) error {
	asked := map[schema.GroupVersion]bool{}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(maxRequests)
	for _, gvk := range wanted {
		gv := gvk.GroupVersion()
		if asked[gv] || wellKnown(gvk) || k.has(gv) {
			continue
		}
		asked[gv] = true
		g.Go(func() error { return k.ask(ctx, gv) })
	}
	return g.Wait()
}

func (k *kinds) has(gv schema.GroupVersion) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	_, ok := k.known[gv]
	return ok
}

func (k *kinds) ask(ctx context.Context, gv schema.GroupVersion) error {
	served, err := k.client.Discovery().Kinds(ctx, gv)
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("discovering the kinds of %s: %w", gv, err)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.known[gv] = served
	return nil
}

// of returns the resource of a discovered kind, or false if the server does not serve it.
func (k *kinds) of(gvk schema.GroupVersionKind) (kube.Resource, bool) {
	if wellKnown(gvk) {
		return kube.ResourceFor(gvk), true
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	r, ok := k.known[gvk.GroupVersion()][gvk.Kind]
	return r, ok
}

func wellKnown(gvk schema.GroupVersionKind) bool {
	if row, ok := controllers.KindOf(gvk.Group, gvk.Kind); ok {
		return gvk.Version == row.Version
	}
	return slices.Contains(builtin, gvk.GroupVersion().String())
}
