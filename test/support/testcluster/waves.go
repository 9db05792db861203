package testcluster

import (
	"fmt"
	"net/http"
	"sync"
)

// Waves makes the proxy hold the requests of a wave until all of them have arrived; sizes
// contains the number of requests of each wave. A client that sends the requests of a
// wave one after the other never gets a response, so a client that finishes has at most
// as many sequential requests as there are waves. Further requests are rejected.
func (p *Proxy) Waves(sizes ...int) {
	w := &waves{}
	for _, size := range sizes {
		w.waves = append(w.waves, &wave{missing: size, complete: make(chan struct{})})
	}
	p.Misbehave(w.hold)
}

type waves struct {
	mu    sync.Mutex
	waves []*wave // the remaining waves, starting with the current one
}

type wave struct {
	missing  int
	complete chan struct{}
}

// next returns the wave of a new request, or nil after the last wave.
func (w *waves) next() *wave {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.waves) == 0 {
		return nil
	}
	current := w.waves[0]
	if current.missing--; current.missing == 0 {
		close(current.complete)
		w.waves = w.waves[1:]
	}
	return current
}

func (w *waves) hold(rw http.ResponseWriter, r *http.Request) bool {
	current := w.next()
	if current == nil {
		rw.Header().Set("Content-Type", "application/json")
		rw.WriteHeader(http.StatusTeapot)
		// Fails only if the client has disconnected.
		_, _ = fmt.Fprintf(rw, `{"kind":"Status","apiVersion":"v1","status":"Failure","code":418,"reason":"Unknown","message":"one request too many: %s %s"}`, r.Method, r.URL.Path)
		return true
	}
	select {
	case <-current.complete:
	case <-r.Context().Done():
	}
	return false
}
