package reconcile

import (
	"context"

	"github.com/fluxkit/flux/internal/kube/objref"
	"github.com/fluxkit/flux/pkg/controllers"
)

// failedSource returns the error for a source that an object waits for, if its
// controller has finished and the source is not ready.
func (w *Waiter) failedSource(ctx context.Context, s objref.Target, o controllers.Object) (*FinalError, error) {
	if !s.Kind.Pending(o) {
		return nil, nil
	}
	u := upstream{reads: w.Watches.reads}
	for _, t := range s.Kind.Upstream(o) {
		source, found, err := u.get(ctx, t)
		if err != nil {
			return nil, err
		}
		if found && unhandled(source, source.Object) == "" && source.Kind.Finished(source.Object) && source.Kind.Ready(source.Object).Status != "True" {
			return &FinalError{Failed: true, Source: source.Named(), Message: source.Kind.Ready(source.Object).Message}, nil
		}
	}
	return nil, nil
}

// stalledSource returns the error for a source that an object waits for, if the
// source is stalled.
func (w *Waiter) stalledSource(ctx context.Context, s objref.Target, o controllers.Object) (*FinalError, error) {
	if !s.Kind.Pending(o) {
		return nil, nil
	}
	// The object may have created its source, so a waiting source is not a new attempt.
	u := upstream{reads: w.Watches.reads, seen: map[string]bool{s.Named().String(): true}}
	for _, t := range s.Kind.Upstream(o) {
		source, found, err := u.get(ctx, t)
		if err != nil {
			return nil, err
		}
		if !found {
			continue
		}
		message, ok := stalled(source.Object)
		if !ok {
			continue
		}
		if next, err := u.pending(ctx, source, source.Object, 0); next == "" || err != nil {
			return &FinalError{Stalled: true, Source: source.Named(), Message: message}, err
		}
	}
	return nil, nil
}
