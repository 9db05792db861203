package main

import (
	"context"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/controllers"
)

// shareFrom is how many objects of a kind in a namespace are waited for over
// one watch, which the server feeds with the others of the namespace too, and
// not over a watch each.
const shareFrom = 17

// watches gives everybody who waits for an object its changes: over a watch
// of its own, or over one that is shared.
type watches struct {
	client *kube.Client

	mu     sync.Mutex
	shared map[place]*sharedWatch
	open   sync.WaitGroup
}

// place is where the objects of a shared watch are; the namespace is "" for all.
type place struct{ kind, namespace string }

func newWatches(client *kube.Client) *watches {
	return &watches{client: client, shared: map[place]*sharedWatch{}}
}

// share makes one watch for the objects of a kind in a namespace. With the
// version of a list it starts there, without one it lists. It sees everything
// that happens from start on, so nothing may be asked for before.
func (w *watches) share(k controllers.Kind, namespace, version string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	p := place{k.Kind, namespace}
	if w.shared[p] == nil {
		w.shared[p] = &sharedWatch{kind: k, namespace: namespace, version: version, waiting: map[string]*subscription{}}
	}
}

// shareMany shares a watch wherever many of the targets are.
func (w *watches) shareMany(targets []target) {
	count := map[place]int{}
	for _, t := range targets {
		p := place{t.kind.Kind, t.namespace}
		if count[p]++; count[p] == shareFrom && w.find(t) == nil {
			w.share(t.kind, t.namespace, "")
		}
	}
}

func (w *watches) find(t target) *sharedWatch {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, namespace := range []string{t.namespace, ""} {
		if s := w.shared[place{t.kind.Kind, namespace}]; s != nil {
			return s
		}
	}
	return nil
}

// subscribe has the changes of an object kept from now on; nil where the
// object is to be followed by itself.
func (w *watches) subscribe(t target) *subscription {
	s := w.find(t)
	if s == nil {
		return nil
	}
	sub := &subscription{changed: make(chan struct{}, 1)}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting[t.namespace+"/"+t.name] = sub
	return sub
}

// start opens the shared watches that somebody has subscribed to. They end
// with ctx, and wait returns after them.
func (w *watches) start(ctx context.Context) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range w.shared {
		if len(s.waiting) > 0 && !s.started {
			s.started = true
			w.open.Go(func() { s.run(ctx, w.client) })
		}
	}
}

func (w *watches) wait() { w.open.Wait() }

// follow calls visit with the changes of an object until visit is done.
func (w *watches) follow(ctx context.Context, t target, version string, sub *subscription, visit func(kube.Event) (bool, error)) error {
	if sub != nil {
		return sub.follow(ctx, visit)
	}
	return w.client.With(ctx, t.kind, func(r kube.Resource) error {
		return w.client.Follow(ctx, r, kube.Selection{Namespace: t.namespace, Name: t.name}, version, visit)
	})
}

type sharedWatch struct {
	kind               controllers.Kind
	namespace, version string
	started            bool

	mu      sync.Mutex
	waiting map[string]*subscription
}

// awaited are the names of those whose deletion must not be missed.
func (s *sharedWatch) awaited() []types.NamespacedName {
	s.mu.Lock()
	defer s.mu.Unlock()
	var names []types.NamespacedName
	for key := range s.waiting {
		namespace, name, _ := strings.Cut(key, "/")
		names = append(names, types.NamespacedName{Namespace: namespace, Name: name})
	}
	return names
}

func (s *sharedWatch) run(ctx context.Context, client *kube.Client) {
	err := client.With(ctx, s.kind, func(r kube.Resource) error {
		return client.FollowFrom(ctx, r, kube.Selection{Namespace: s.namespace}, s.version, s.awaited(), func(e kube.Event) (bool, error) {
			s.mu.Lock()
			defer s.mu.Unlock()
			if sub := s.waiting[controllers.Namespace(e.Object)+"/"+controllers.Name(e.Object)]; sub != nil {
				sub.put(e)
			}
			return false, nil
		})
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, sub := range s.waiting {
		sub.fail(err)
	}
}

// subscription keeps the newest state of an object until it is asked for: who
// waits for an outcome does not care how the object came to it.
type subscription struct {
	changed chan struct{}

	mu      sync.Mutex
	pending []kube.Event
	err     error
}

func (s *subscription) put(e kube.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	// A deletion is never skipped over, since what follows is another object.
	if n := len(s.pending); n > 0 && !s.pending[n-1].Deleted {
		s.pending[n-1] = e
	} else {
		s.pending = append(s.pending, e)
	}
	s.signal()
}

func (s *subscription) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = err
	s.signal()
}

func (s *subscription) signal() {
	select {
	case s.changed <- struct{}{}:
	default: // it is signalled already
	}
}

func (s *subscription) take() ([]kube.Event, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	events := s.pending
	s.pending = nil
	return events, s.err
}

func (s *subscription) follow(ctx context.Context, visit func(kube.Event) (bool, error)) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-s.changed:
		}
		events, failed := s.take()
		for _, e := range events {
			if done, err := visit(e); done || err != nil {
				return err
			}
		}
		if failed != nil {
			return failed
		}
	}
}
