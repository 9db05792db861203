package assert

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/fluxkit/flux/internal/web/loopback"
)

// The limits of received notifications.
const (
	maxNotification  = 1 << 20
	maxNotifications = 10_000
)

// Sink receives the notifications of all Providers, which a run redirects to Address/NAMESPACE/NAME.
type Sink struct {
	// Address is the URL of the sink on loopback.
	Address string

	server *loopback.Server

	mu   sync.Mutex
	list []received
	// moment and wake belong to the runner's hub.
	moment func() int
	wake   func()
}

// received is a notification with the moment at which it was received.
type received struct {
	notification
	provider ProviderRef
	moment   int
}

// notification contains the fields of an event that notification-controller sends to generic webhooks.
type notification struct {
	InvolvedObject involved `json:"involvedObject"`
	Reason         string   `json:"reason"`
	Message        string   `json:"message"`
}

type involved struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

func (r *Ref) notified() involved { return involved{r.Kind, r.Namespace, r.Name} }

// OpenSink starts a sink.
func OpenSink(ctx context.Context) (*Sink, error) {
	s := &Sink{moment: func() int { return 0 }, wake: func() {}}
	var err error
	if s.server, err = loopback.Serve(ctx, s); err != nil {
		return nil, err
	}
	s.Address = "http://" + s.server.Address
	return s, nil
}

// Close stops the sink.
func (s *Sink) Close() error { return s.server.Close() }

// ServeHTTP receives a notification.
func (s *Sink) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	namespace, name, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	n := received{provider: ProviderRef{namespace, name}}
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxNotification)).Decode(&n.notification); err != nil || r.Method != http.MethodPost {
		http.Error(w, "expected a notification from notification-controller", http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	n.moment = s.moment()
	if len(s.list) < maxNotifications {
		s.list = append(s.list, n)
	}
	wake := s.wake
	s.mu.Unlock()
	wake()
}

// connect sets the hub from which the sink takes its moments.
func (s *Sink) connect(h *hub) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.moment, s.wake = h.next, h.wake
}

// received returns the notifications of a Provider after a moment.
func (s *Sink) received(p ProviderRef, after int) []received {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(s.list), func(n received) bool { return n.provider != p || n.moment <= after })
}
