package testcluster

import (
	"fmt"
	"net/http"
	"sync"
)

// Waves makes the proxy hold every request until all of its wave have come;
// sizes says how many requests each wave has. A client that waits for an
// answer where it need not never gets one, so that what ends at all has waited
// for no longer a chain of answers than there are waves. One request more than
// in all waves is refused.
func (p *Proxy) Waves(sizes ...int) {
	w := &waves{}
	for _, size := range sizes {
		w.waves = append(w.waves, &wave{missing: size, complete: make(chan struct{})})
	}
	p.Misbehave(w.hold)
}

type waves struct {
	mu    sync.Mutex
	waves []*wave // those to come, first the one that is being awaited
}

type wave struct {
	missing  int
	complete chan struct{}
}

// next is the wave of a request that has just come, nil after the last.
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
		// Where the client is gone already, nobody needs the answer.
		_, _ = fmt.Fprintf(rw, `{"kind":"Status","apiVersion":"v1","status":"Failure","code":418,"reason":"Unknown","message":"one request too many: %s %s"}`, r.Method, r.URL.Path)
		return true
	}
	select {
	case <-current.complete:
	case <-r.Context().Done():
	}
	return false
}
