package kube

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Kinds finds the resources of kinds. It discovers each group version at most once.
type Kinds struct {
	client *Client
	mu     sync.Mutex // held during discovery
	known  map[schema.GroupVersion]map[string]Resource
}

// NewKinds returns a Kinds for the server of a client.
func NewKinds(c *Client) *Kinds {
	return &Kinds{client: c, known: map[schema.GroupVersion]map[string]Resource{}}
}

// Add adds a resource that the discovery of the server may not list yet. The group version of the resource is then not
// discovered: all of its kinds must be added.
func (k *Kinds) Add(r Resource) {
	k.mu.Lock()
	defer k.mu.Unlock()
	gv := r.GroupVersion()
	if k.known[gv] == nil {
		k.known[gv] = map[string]Resource{}
	}
	k.known[gv][r.Kind] = r
}

// Discover discovers the group versions of the given kinds concurrently.
func (k *Kinds) Discover(ctx context.Context, kinds ...schema.GroupVersionKind) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	var wanted []schema.GroupVersion
	for _, kind := range kinds {
		gv := kind.GroupVersion()
		if _, ok := k.known[gv]; !ok && !slices.Contains(wanted, gv) {
			wanted = append(wanted, gv)
		}
	}
	served := make([]map[string]Resource, len(wanted))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(maxRequests)
	for i, gv := range wanted {
		g.Go(func() (err error) {
			if served[i], err = k.client.Discovery().Kinds(ctx, gv); err != nil && !apierrors.IsNotFound(err) {
				return fmt.Errorf("reading the kinds of %s: %w", gv, err)
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	for i, gv := range wanted {
		k.known[gv] = served[i]
	}
	return nil
}

// Of returns the resource of a kind whose group version is discovered, or false if the server does not serve the kind.
func (k *Kinds) Of(kind schema.GroupVersionKind) (Resource, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	r, ok := k.known[kind.GroupVersion()][kind.Kind]
	return r, ok
}

// Find returns the resource of a kind, or false if the server does not serve the kind. It discovers the group version.
func (k *Kinds) Find(ctx context.Context, kind schema.GroupVersionKind) (Resource, bool, error) {
	err := k.Discover(ctx, kind)
	r, ok := k.Of(kind)
	return r, ok, err
}
