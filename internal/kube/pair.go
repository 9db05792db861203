package kube

import (
	"context"
	"errors"
	"io"
	"sync"

	"github.com/fluxkit/flux/internal/budget"
)

// pair sends the first read request for a kind in two versions at the same time, because supported
// versions of Flux serve one or the other. Sequential requests would take three round trips on
// clusters that serve the older version: the newest version, discovery, and the older version.
type pair struct {
	older string

	mu   sync.Mutex
	sent bool
	// key identifies the first request, whose response in the older version is kept.
	key  string
	kept *response
}

// response is the result of a request and the function that ends the request. It outlives the
// context of the call that sent the request.
type response struct {
	body   io.ReadCloser
	err    error
	cancel context.CancelCauseFunc
}

// during makes the request end with ctx until the returned function is called.
func (r *response) during(ctx context.Context) (stop func() bool) {
	return context.AfterFunc(ctx, func() { r.cancel(context.Cause(ctx)) })
}

// close ends the request.
func (r *response) close() error {
	defer r.cancel(nil)
	if r.body == nil {
		return nil
	}
	return r.body.Close()
}

// closer closes a response whose body is read in another call.
type closer func() error

// Close implements io.Closer.
func (c closer) Close() error { return c() }

// open sends a request for r and, if it is the first one, the same request for the older version. If the server does
// not serve the version of r, it keeps the response of the older version until the request with that key is opened.
func (p *pair) open(ctx context.Context, r Resource, key string, send func(context.Context, Resource) (io.ReadCloser, error)) (io.ReadCloser, error) {
	if p == nil {
		return send(ctx, r)
	}
	if r.Version == p.older {
		return p.opened(ctx, r, key, send)
	}
	if !p.first(key) {
		return send(ctx, r)
	}
	var spare response
	var arrived sync.WaitGroup
	inOlder := r
	inOlder.Version = p.older
	olderCtx, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	spare.cancel = cancel
	stop := spare.during(ctx)
	defer stop()
	arrived.Go(func() { spare.body, spare.err = send(olderCtx, inOlder) })
	body, err := send(ctx, r)
	if !NotServed(err) {
		cancel(nil) // also closes the response body
		return body, err
	}
	arrived.Wait()
	if NotServed(spare.err) || ctx.Err() != nil {
		cancel(nil)
		return body, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.kept = &spare
	return body, err
}

// opened returns the kept response of the older version, or sends a request if there is none.
func (p *pair) opened(ctx context.Context, r Resource, key string, send func(context.Context, Resource) (io.ReadCloser, error)) (io.ReadCloser, error) {
	kept := p.take(key)
	switch {
	case kept == nil:
		return send(ctx, r)
	case ctx.Err() != nil:
		return nil, errors.Join(context.Cause(ctx), kept.close())
	case kept.err != nil:
		kept.cancel(nil)
		return nil, kept.err
	}
	stop := kept.during(ctx)
	return budget.Closing(kept.body, closer(func() error {
		stop()
		return kept.close()
	})), nil
}

func (p *pair) first(key string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.sent {
		return false
	}
	p.sent, p.key = true, key
	return true
}

// take returns the kept response of a request once, and nil afterwards.
func (p *pair) take(key string) *response {
	p.mu.Lock()
	defer p.mu.Unlock()
	if key != p.key {
		return nil
	}
	kept := p.kept
	p.kept = nil
	return kept
}

// keeps reports whether the server serves only the older of the two versions.
func (p *pair) keeps() bool {
	if p == nil {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.kept != nil
}

// discard ends a kept request that was not opened.
func (p *pair) discard() {
	if p == nil {
		return
	}
	if kept := p.take(p.key); kept != nil {
		_ = kept.close() // the body is not read
	}
}
