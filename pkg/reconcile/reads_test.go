package reconcile

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/fluxkit/flux/pkg/controllers"
)

// server answers when it is told to, and counts.
type server struct {
	answers chan struct{}

	mu            sync.Mutex
	asked         map[string]int
	running, most int
}

func (s *server) reads() *reads {
	return &reads{
		fetch: func(ctx context.Context, t Subject) (controllers.Object, error) {
			s.mu.Lock()
			s.asked[t.Name]++
			n := s.asked[t.Name]
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
		slots: make(chan struct{}, atOnce), running: map[controllers.Target]*read{}, queued: map[controllers.Target]*read{},
	}
}

// TestReadsShared holds the objects that ask for the same source to two
// requests: one under way, and one that all share that came in meanwhile.
func TestReadsShared(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &server{answers: make(chan struct{}), asked: map[string]int{}}
		r := s.reads()
		source := Subject{Kind: controllers.Kind{Kind: "GitRepository"}, Namespace: "apps", Name: "fleet"}
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
			t.Errorf("the first answer is %v, and %d more came with it", first, len(answers))
		}
		s.answers <- struct{}{}
		synctest.Wait()
		for range 500 {
			if next := <-answers; next != "fleet2" {
				t.Fatalf("%v answers a question that is younger", next)
			}
		}
		if s.asked["fleet"] != 2 {
			t.Errorf("%d requests for one source", s.asked["fleet"])
		}
		// What was answered is not kept: the next one asks again.
		ask()
		synctest.Wait()
		s.answers <- struct{}{}
		if next := <-answers; next != "fleet3" {
			t.Errorf("%v answers a later question", next)
		}
		if len(r.running)+len(r.queued) != 0 {
			t.Errorf("%d running, %d queued at the end", len(r.running), len(r.queued))
		}
	})
}

// TestReadsBounded holds requests for different objects to a few at a time, and
// ends all of them with the context.
func TestReadsBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &server{answers: make(chan struct{}), asked: map[string]int{}}
		r := s.reads()
		ctx, cancel := context.WithCancel(t.Context())
		failures := make(chan error, 200)
		for i := range 200 {
			go func() {
				_, err := r.get(ctx, Subject{Kind: controllers.Kind{Kind: "GitRepository"}, Namespace: "apps", Name: fmt.Sprint(i % 100)})
				failures <- err
			}()
		}
		synctest.Wait()
		for range 20 {
			s.answers <- struct{}{}
			synctest.Wait()
		}
		if s.most != atOnce {
			t.Errorf("%d requests were under way together", s.most)
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
