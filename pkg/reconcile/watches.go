package reconcile

import (
	"context"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/internal/kube/objref"
	"github.com/fluxkit/flux/pkg/controllers"
)

// ShareFrom is the minimum number of objects of a kind in a namespace for which one watch of the
// namespace replaces single watches.
const ShareFrom = 17

// Watches sends the changes of objects to their subscribers, from a watch for
// each object or from a shared one.
type Watches struct {
	client *kube.Client
	reads  *reads

	mu     sync.Mutex
	shared map[place]*sharedWatch
	open   sync.WaitGroup
}

// place is the scope of a shared watch. The namespace is "" for all namespaces.
type place struct{ kind, namespace string }

// NewWatches returns watches of a cluster.
func NewWatches(client *kube.Client) *Watches {
	return &Watches{client: client, reads: newReads(client), shared: map[place]*sharedWatch{}}
}

// Share creates one watch for the objects of a kind in a namespace. It starts
// at the version of a list, or lists first if version is "". It receives all
// changes after Start, so Start must come before any request.
func (w *Watches) Share(k controllers.Kind, namespace, version string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	p := place{k.CRD(), namespace}
	if w.shared[p] == nil {
		w.shared[p] = &sharedWatch{kind: k, namespace: namespace, version: version, waiting: map[string]*Subscription{}}
	}
}

// ShareMany shares a watch for each kind and namespace with many subjects.
func (w *Watches) ShareMany(subjects []objref.Target) {
	count := map[place]int{}
	for _, t := range subjects {
		p := place{t.Kind.CRD(), t.Namespace}
		if count[p]++; count[p] == ShareFrom && w.find(t) == nil {
			w.Share(t.Kind, t.Namespace, "")
		}
	}
}

func (w *Watches) find(t objref.Target) *sharedWatch {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, namespace := range []string{t.Namespace, ""} {
		if s := w.shared[place{t.Kind.CRD(), namespace}]; s != nil {
			return s
		}
	}
	return nil
}

// Subscribe collects the changes of an object from now on. It returns nil if
// the object has no shared watch.
func (w *Watches) Subscribe(t objref.Target) *Subscription {
	s := w.find(t)
	if s == nil {
		return nil
	}
	sub := &Subscription{changed: make(chan struct{}, 1)}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting[t.Namespace+"/"+t.Name] = sub
	return sub
}

// Start starts the shared watches with subscriptions. They end with ctx; Wait
// waits for them.
func (w *Watches) Start(ctx context.Context) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range w.shared {
		if len(s.waiting) > 0 && !s.started {
			s.started = true
			w.open.Go(func() { s.run(ctx, w.client) })
		}
	}
}

// Wait returns when all shared watches have ended.
func (w *Watches) Wait() { w.open.Wait() }

// Follow calls visit with the changes of an object until visit returns true.
func (w *Watches) Follow(ctx context.Context, t objref.Target, version string, sub *Subscription, visit func(kube.Event) (bool, error)) error {
	if sub != nil {
		return sub.follow(ctx, visit)
	}
	return w.client.WithServedVersion(ctx, t.Kind, func(r kube.Resource) error {
		return w.client.Follow(ctx, r, kube.Selection{Namespace: t.Namespace, Name: t.Name}, version, visit)
	})
}

type sharedWatch struct {
	kind               controllers.Kind
	namespace, version string
	started            bool

	mu      sync.Mutex
	waiting map[string]*Subscription
}

// awaited returns the objects whose deletion must be reported.
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
	err := client.WithServedVersion(ctx, s.kind, func(r kube.Resource) error {
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

// Subscription keeps the newest state of an object until it is read.
// Intermediate states do not matter.
type Subscription struct {
	changed chan struct{}

	mu      sync.Mutex
	pending []kube.Event
	err     error
}

func (s *Subscription) put(e kube.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	// Keep a deletion: the next state belongs to another object.
	if n := len(s.pending); n > 0 && !s.pending[n-1].Deleted {
		s.pending[n-1] = e
	} else {
		s.pending = append(s.pending, e)
	}
	s.signal()
}

func (s *Subscription) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = err
	s.signal()
}

func (s *Subscription) signal() {
	select {
	case s.changed <- struct{}{}:
	default: // already signalled
	}
}

func (s *Subscription) take() ([]kube.Event, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	events := s.pending
	s.pending = nil
	return events, s.err
}

func (s *Subscription) follow(ctx context.Context, visit func(kube.Event) (bool, error)) error {
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
