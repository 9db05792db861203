package kube

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/fluxkit/flux/pkg/controllers"
)

// Fleet lists the objects of all kinds of Flux, one list a kind and all at
// once, in the order of the catalogue. Kinds that the cluster does not have are
// left out; refused are the errors of those that may not be listed.
func (c *Client) Fleet(ctx context.Context, s Selection) (objects []controllers.Object, refused map[string]error, err error) {
	found := make([][]controllers.Object, len(controllers.Kinds))
	refused = map[string]error{}
	var mu sync.Mutex
	g, ctx := errgroup.WithContext(ctx)
	for i, k := range controllers.Kinds {
		g.Go(func() error {
			err := c.With(ctx, k, func(r Resource) error {
				found[i] = nil
				_, err := c.List(ctx, r, s, func(o controllers.Object) error {
					found[i] = append(found[i], o)
					return nil
				})
				return err
			})
			var absent *MissingKindError
			switch {
			case errors.As(err, &absent):
				return nil
			case apierrors.IsForbidden(err):
				mu.Lock()
				defer mu.Unlock()
				refused[k.Kind] = err
				return nil
			}
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, nil, fmt.Errorf("listing the objects of Flux: %w", err)
	}
	return slices.Concat(found...), refused, nil
}
