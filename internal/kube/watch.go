package kube

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/fluxkit/flux/pkg/controllers"
)

// patience is how often in a row a server may refuse to go on with a watch
// that it allowed before. One that starts anew refuses what it allows again
// as soon as it has read who may do what.
const patience = 25

// Bound returns a context for an operation that has to end, made of one that
// may last.
type Bound func(context.Context) (context.Context, context.CancelFunc)

// Watch lists the selected objects, hands them to listed in the order of the
// server, and then calls visit with every change until visit returns an error
// or ctx ends. It outlives lost connections like Follow, but the first list
// has to succeed, in the time of first.
func (c *Client) Watch(ctx context.Context, first Bound, r Resource, s Selection, listed func([]controllers.Object) error, visit func(Event) error) error {
	f := follower{client: c, resource: r, selection: s, known: map[string]controllers.Object{}}
	f.visit = func(e Event) (bool, error) {
		if err := visit(e); err != nil {
			return false, &visitError{err}
		}
		return false, nil
	}
	var objects []controllers.Object
	bounded, cancel := first(ctx)
	defer cancel()
	var err error
	f.version, err = c.List(bounded, r, s, func(o controllers.Object) error {
		objects = append(objects, o)
		f.known[key(o)] = o
		return nil
	})
	cancel()
	if err != nil {
		return err
	}
	if err := listed(objects); err != nil {
		return err
	}
	return f.goOn(ctx)
}

// visitError tells an error of the visitor from one of the server.
type visitError struct{ err error }

func (e *visitError) Error() string { return e.err.Error() }

// goOn follows until the visitor is done or has an error, ctx ends, or the
// server keeps refusing.
func (f *follower) goOn(ctx context.Context) error {
	for refused := 0; ; {
		done, err := f.once(ctx)
		var visit *visitError
		switch {
		case done:
			return nil
		case errors.As(err, &visit):
			return visit.err
		case ctx.Err() != nil:
			return ctx.Err()
		case err == nil:
			refused = 0
		case !refusal(err) || refused == patience:
			return fmt.Errorf("watching %s: %w", f.resource.Resource, err)
		default:
			refused++
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(retryPause):
		}
	}
}

func refusal(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) || apierrors.IsNotFound(err)
}

func key(o controllers.Object) string { return controllers.Namespace(o) + "/" + controllers.Name(o) }
