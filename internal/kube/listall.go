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

// ListAll lists the objects of all kinds of Flux and flux-operator concurrently, and returns them in the order of the
// catalog. Kinds that the cluster does not serve are omitted. If bearable returns true for an
// error, such as a missing permission, the error is returned in missed under the kind; any other
// error fails the call. If shape is not nil, its result replaces each object, and a nil result
// omits it.
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
