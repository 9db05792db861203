package reconcile

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/fluxkit/flux/internal/kube/objref"
	"github.com/fluxkit/flux/pkg/controllers"
)

// server counts requests and answers them when the test allows it.
type server struct {
	answers chan struct{}

	mu            sync.Mutex
	requests      map[string]int
	running, most int
}

func (s *server) reads() *reads {
	return &reads{
		fetch: func(ctx context.Context, t objref.Target) (controllers.Object, error) {
			s.mu.Lock()
			s.requests[t.Name]++
			n := s.requests[t.Name]
			s.running++
			s.most = max(s.most, s.running)
			s.mu.Unlock()
			select {
			case <-s.answers:
			case <-ctx.Done():
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			s.running--
			return controllers.Object{"answer": fmt.Sprint(t.Name, n)}, ctx.Err()
		},
		slots: make(chan struct{}, atOnce), running: map[controllers.ID]*read{}, queued: map[controllers.ID]*read{},
	}
}

// TestReadsShared checks that concurrent reads of one source send two requests:
// the running one, and one shared by all reads during that request.
func TestReadsShared(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &server{answers: make(chan struct{}), requests: map[string]int{}}
		r := s.reads()
		source := objref.Target{Kind: controllers.Kind{Kind: "GitRepository"}, Namespace: "apps", Name: "fleet"}
		answers := make(chan any, 501)
		ask := func() {
			go func() {
				o, err := r.get(t.Context(), source)
				if err != nil {
					t.Error(err)
				}
				answers <- o["answer"]
			}()
		}
		ask()
		synctest.Wait()
		for range 500 {
			ask()
		}
		synctest.Wait()
		s.answers <- struct{}{}
		synctest.Wait()
		if first := <-answers; first != "fleet1" || len(answers) != 0 {
			t.Errorf("the first result is %v, with %d more results", first, len(answers))
		}
		s.answers <- struct{}{}
		synctest.Wait()
		for range 500 {
			if next := <-answers; next != "fleet2" {
				t.Fatalf("got %v from a request that started before the read", next)
			}
		}
		if s.requests["fleet"] != 2 {
			t.Errorf("%d requests for one source", s.requests["fleet"])
		}
		// A result is not cached: the next read sends a request.
		ask()
		synctest.Wait()
		s.answers <- struct{}{}
		if next := <-answers; next != "fleet3" {
			t.Errorf("a later read returned %v", next)
		}
		if len(r.running)+len(r.queued) != 0 {
			t.Errorf("%d running, %d queued at the end", len(r.running), len(r.queued))
		}
	})
}

// TestReadsBounded checks that requests for different objects are limited, and
// that all of them end with the context.
func TestReadsBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &server{answers: make(chan struct{}), requests: map[string]int{}}
		r := s.reads()
		ctx, cancel := context.WithCancel(t.Context())
		failures := make(chan error, 200)
		for i := range 200 {
			go func() {
				_, err := r.get(ctx, objref.Target{Kind: controllers.Kind{Kind: "GitRepository"}, Namespace: "apps", Name: fmt.Sprint(i % 100)})
				failures <- err
			}()
		}
		synctest.Wait()
		for range 20 {
			s.answers <- struct{}{}
			synctest.Wait()
		}
		if s.most != atOnce {
			t.Errorf("%d requests were running in parallel", s.most)
		}
		cancel()
		synctest.Wait()
		if len(failures) != 200 {
			t.Errorf("%d of 200 have ended", len(failures))
		}
		if len(r.running)+len(r.queued)+len(r.slots) != 0 {
			t.Errorf("%d running, %d queued and %d slots taken at the end", len(r.running), len(r.queued), len(r.slots))
		}
	})
}
