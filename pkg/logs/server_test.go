package logs_test

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/test/support/fakeapi"
)

const podPath = "/api/v1/namespaces/flux-system/pods"

// printed is a line of a container's log.
type printed struct {
	at   time.Time
	text string
}

// printing is the log of one run of a container.
type printing struct {
	count int
	line  func(int) printed
	ended bool
}

// kubelet serves the logs of pods like a kubelet: it sends a run from its beginning, or from where
// the parameters say, and follows it until it ends. It fails the test on unknown parameters.
type kubelet struct {
	t       *testing.T
	server  *fakeapi.Server
	mu      sync.Mutex
	changed chan struct{}
	runs    map[string][]*printing
	// breaks cuts the connections of a pod in the middle of a line, one number
	// a connection; with a negative one the answer seems to be whole.
	breaks map[string][]int
	// down are pods whose node does not answer.
	down   map[string]bool
	opened map[string]int
	atOnce int
	most   int
}

func newKubelet(t *testing.T) *kubelet {
	t.Helper()
	k := &kubelet{
		t: t, server: fakeapi.New(t), changed: make(chan struct{}),
		runs: map[string][]*printing{}, breaks: map[string][]int{}, down: map[string]bool{}, opened: map[string]int{},
	}
	k.server.Serve(podPath)
	return k
}

// change calls do and wakes followers.
func (k *kubelet) change(do func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	do()
	close(k.changed)
	k.changed = make(chan struct{})
}

// run starts a pod, or restarts its container, with the given log.
func (k *kubelet) run(pod, uid string, p *printing) {
	restarts := 0
	k.change(func() {
		k.runs[pod] = append(k.runs[pod], p)
		restarts = len(k.runs[pod]) - 1
	})
	k.server.Handle("GET "+podPath+"/"+pod+"/log", func(w http.ResponseWriter, r *http.Request) { k.serve(w, r, pod) })
	k.server.Put(podPath, podObject(pod, uid, restarts, map[string]any{"running": map[string]any{}}))
}

func podObject(name, uid string, restarts int, state map[string]any) controllers.Object {
	return controllers.Object{
		"apiVersion": "v1", "kind": "Pod",
		"metadata": map[string]any{"name": name, "namespace": "flux-system", "uid": uid},
		"spec": map[string]any{"containers": []any{
			map[string]any{"name": "manager", "image": "ghcr.io/fluxcd/source-controller:v1.9.5"},
		}},
		"status": map[string]any{"containerStatuses": []any{
			map[string]any{"name": "manager", "restartCount": restarts, "state": state},
		}},
	}
}

// print appends lines to the present run of a pod.
func (k *kubelet) print(pod string, texts ...string) {
	k.change(func() {
		p := k.runs[pod][len(k.runs[pod])-1]
		before, first, at := p.line, p.count, time.Now()
		p.count += len(texts)
		p.line = func(i int) printed {
			if i < first {
				return before(i)
			}
			return printed{at.Add(time.Duration(i)), texts[i-first]}
		}
	})
}

// end ends the present run of a pod.
func (k *kubelet) end(pod string) {
	k.change(func() { k.runs[pod][len(k.runs[pod])-1].ended = true })
}

// remove deletes a pod. A later pod with its name has no previous runs.
func (k *kubelet) remove(pod string) {
	k.end(pod)
	k.server.Take(podPath, pod)
	k.change(func() { k.runs[pod] = nil })
}

// query holds the parameters of a log request.
type query struct {
	follow, previous bool
	since            time.Time
	tail             int
}

func (k *kubelet) query(r *http.Request) query {
	q := query{tail: -1}
	for name, values := range r.URL.Query() {
		value, err := values[0], error(nil)
		switch name {
		case "container":
			if value != "manager" {
				k.t.Errorf("a log of container %q", value)
			}
		case "timestamps":
		case "follow":
			q.follow, err = strconv.ParseBool(value)
		case "previous":
			q.previous, err = strconv.ParseBool(value)
		case "sinceTime":
			q.since, err = time.Parse("2006-01-02T15:04:05Z", value)
		case "tailLines":
			q.tail, err = strconv.Atoi(value)
		default:
			k.t.Errorf("parameter %s=%s of a log", name, value)
		}
		if err != nil {
			k.t.Errorf("parameter %s: %v", name, err)
		}
	}
	if r.URL.Query().Get("timestamps") != "true" {
		k.t.Error("a log without timestampstampstamps")
	}
	return q
}

func (k *kubelet) serve(w http.ResponseWriter, r *http.Request, pod string) {
	q := k.query(r)
	k.mu.Lock()
	runs := k.runs[pod]
	limit := 0
	if list := k.breaks[pod]; len(list) > 0 {
		limit, k.breaks[pod] = list[0], list[1:]
	}
	k.opened[pod]++
	k.atOnce++
	k.most = max(k.most, k.atOnce)
	k.mu.Unlock()
	defer func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.atOnce--
	}()
	if k.unreachable(pod) {
		fakeapi.Status(w, http.StatusInternalServerError, "InternalError", "the node does not answer")
		return
	}
	at := len(runs) - 1
	if q.previous {
		at--
	}
	if at < 0 {
		fakeapi.Status(w, http.StatusBadRequest, "BadRequest", "there is no such run of the container")
		return
	}
	k.send(w, r, pod, runs[at], q, limit)
}

func (k *kubelet) unreachable(pod string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.down[pod]
}

func (k *kubelet) send(w http.ResponseWriter, r *http.Request, pod string, p *printing, q query, limit int) {
	w.WriteHeader(http.StatusOK)
	flusher, _ := w.(http.Flusher)
	flusher.Flush()
	k.mu.Lock()
	next, sent := 0, 0
	if q.tail >= 0 {
		next = max(0, p.count-q.tail)
	}
	k.mu.Unlock()
	for {
		if k.unreachable(pod) {
			panic(http.ErrAbortHandler)
		}
		k.mu.Lock()
		count, line, ended, changed := p.count, p.line, p.ended, k.changed
		k.mu.Unlock()
		for ; next < count; next++ {
			l := line(next)
			if l.at.Before(q.since) {
				continue
			}
			if sent++; sent == limit || sent == -limit {
				_, _ = fmt.Fprintf(w, "%s %s", l.at.UTC().Format(time.RFC3339Nano), l.text[:len(l.text)/2])
				flusher.Flush()
			}
			if sent == limit {
				panic(http.ErrAbortHandler)
			}
			if sent == -limit {
				return
			}
			if _, err := io.WriteString(w, l.at.UTC().Format("2006-01-02T15:04:05.000000000Z")+" "+l.text+"\n"); err != nil {
				return
			}
		}
		if ended || !q.follow {
			return
		}
		flusher.Flush()
		select {
		case <-changed:
		case <-r.Context().Done():
			return
		}
	}
}
