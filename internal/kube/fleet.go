package kube

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/fluxkit/flux/pkg/controllers"
	"golang.org/x/sync/errgroup"
)

// Fleet lists the objects of all kinds of Flux, one list a kind and all at
// once, in the order of the catalogue. Kinds that the cluster does not have are
// left out. An error that is bearable is kept with its kind, such as that the
// kind may not be listed; any other ends the look at all of them. With shape,
// what that returns of an object is kept in its place, and nothing where it
// returns nil.
func (c *Client) Fleet(
	ctx context.Context, s Selection, bearable func(error) bool, shape func(controllers.Kind, controllers.Object) controllers.Object,
) (objects []controllers.Object, missed map[string]error, err error) {
	found := make([][]controllers.Object, len(controllers.Kinds))
	missed = map[string]error{}
	var mu sync.Mutex
	g, ctx := errgroup.WithContext(ctx)
	for i, k := range controllers.Kinds {
		g.Go(func() error {
			err := c.With(ctx, k, func(r Resource) error {
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
		return nil, nil, fmt.Errorf("listing the objects of Flux: %w", err)
	}
	return slices.Concat(found...), missed, nil
}
