package reconcile

import (
	"context"
	"sync"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/internal/kube/objref"
	"github.com/fluxkit/flux/pkg/controllers"
)

// reads reads the objects to which awaited objects refer. Many of them refer to
// the same source and read it again on each change: reads during a request
// share the next request. A result is never older than the call, because it may
// end a wait.
type reads struct {
	fetch func(context.Context, objref.Target) (controllers.Object, error)
	slots chan struct{}

	mu sync.Mutex
	// running holds the current requests, and queued the requests that start after them.
	running, queued map[controllers.ID]*read
}

// read is a request that several callers may share.
type read struct {
	done   chan struct{}
	object controllers.Object
	err    error
}

func newReads(client *kube.Client) *reads {
	return &reads{
		fetch: func(ctx context.Context, s objref.Target) (controllers.Object, error) {
			return client.GetKind(ctx, s.Kind, s.Namespace, s.Name)
		},
		slots: make(chan struct{}, atOnce), running: map[controllers.ID]*read{}, queued: map[controllers.ID]*read{},
	}
}

// get reads an object. The request uses the context of the first caller:
// callers that share it belong to the same command.
func (r *reads) get(ctx context.Context, s objref.Target) (controllers.Object, error) {
	t := s.Named()
	mine := &read{done: make(chan struct{})}
	r.mu.Lock()
	queued, running := r.queued[t], r.running[t]
	switch {
	case queued != nil:
		r.mu.Unlock()
		return queued.wait(ctx)
	case running != nil:
		r.queued[t] = mine
	default:
		r.running[t] = mine
	}
	r.mu.Unlock()
	if running != nil {
		<-running.done // ends with the context of that request
		r.mu.Lock()
		delete(r.queued, t)
		r.running[t] = mine
		r.mu.Unlock()
	}
	mine.object, mine.err = r.request(ctx, s)
	r.mu.Lock()
	if r.running[t] == mine {
		delete(r.running, t)
	}
	r.mu.Unlock()
	close(mine.done)
	return mine.object, mine.err
}

func (r *reads) request(ctx context.Context, s objref.Target) (controllers.Object, error) {
	select {
	case r.slots <- struct{}{}:
		defer func() { <-r.slots }()
		return r.fetch(ctx, s)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (r *read) wait(ctx context.Context) (controllers.Object, error) {
	select {
	case <-r.done:
		return r.object, r.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
