package kube

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/fluxkit/flux/internal/web"
	"github.com/fluxkit/flux/pkg/controllers"
)

// maxRefusals is the maximum number of consecutive rejections of a watch that was previously accepted. A restarting
// server rejects requests until it has loaded its authorization rules.
const maxRefusals = 25

// Bound returns a context with a deadline, for an operation whose context has no deadline.
type Bound func(context.Context) (context.Context, context.CancelFunc)

// Watch lists the selected objects, calls listed with them, and then calls visit with every change
// until visit returns an error or ctx is done. Like Follow it survives lost connections, but the
// first list must succeed before the deadline of the context first.
func (c *Client) Watch(ctx context.Context, first Bound, r Resource, s Selection, listed func([]controllers.Object) error, visit func(Event) error) error {
	f := newFollower(c, r, s, func(e Event) (bool, error) { return false, visit(e) })
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
	return f.run(ctx)
}

// visitError distinguishes an error of the visitor from a server error.
type visitError struct{ err error }

func (e *visitError) Error() string { return e.err.Error() }

// run watches until the visitor is done or returns an error, ctx is done, or the server keeps
// rejecting the watch.
func (f *follower) run(ctx context.Context) error {
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
		case !refusal(err) || refused == maxRefusals:
			return fmt.Errorf("watching %s: %w", f.resource.Resource, err)
		default:
			refused++
		}
		if web.Sleep(ctx, retryPause) != nil {
			return ctx.Err()
		}
	}
}

func refusal(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) || apierrors.IsNotFound(err)
}

func key(o controllers.Object) string { return controllers.Namespace(o) + "/" + controllers.Name(o) }
