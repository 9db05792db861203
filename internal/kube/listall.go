package kube

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/fluxkit/flux/pkg/controllers"
)

// ListAll lists the objects of all Flux and flux-operator kinds concurrently, and returns them in the order of the
// catalog. Kinds that the cluster does not serve are omitted. Errors for which bearable returns true, such as a
// missing permission, are returned by kind in missed; any other error fails the call. If shape is not nil, each
// object is replaced by the result of shape, or omitted if the result is nil.
func (c *Client) ListAll(
	ctx context.Context, s Selection, bearable func(error) bool, shape func(controllers.Kind, controllers.Object) controllers.Object,
) (objects []controllers.Object, missed map[string]error, err error) {
	found := make([][]controllers.Object, len(controllers.Known))
	missed = map[string]error{}
	var mu sync.Mutex
	g, ctx := errgroup.WithContext(ctx)
	for i, k := range controllers.Known {
		g.Go(func() error {
			err := c.WithServedVersion(ctx, k, func(r Resource) error {
				found[i] = nil
				_, err := c.List(ctx, r, s, func(o controllers.Object) error {
					if shape != nil {
						o = shape(k, o)
					}
					if o != nil {
						found[i] = append(found[i], o)
					}
					return nil
				})
				return err
			})
			var absent *MissingKindError
			switch {
			case errors.As(err, &absent):
				return nil
			case err != nil && bearable(err):
				mu.Lock()
				defer mu.Unlock()
				missed[k.Kind] = err
				return nil
			}
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, nil, fmt.Errorf("listing the Flux objects: %w", err)
	}
	return slices.Concat(found...), missed, nil
}
