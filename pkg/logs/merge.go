package logs

import (
	"container/heap"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/controllers"
)

// Options select the lines to read.
type Options struct {
	Filter Filter
	// Since omits lines older than a duration, and SinceTime lines before a time.
	Since     time.Duration
	SinceTime time.Time
	// Tail is the number of recent lines of each container that match the filter, -1 for all.
	Tail int64
	// Select returns the containers of a pod to read. It is nil for the controllers.
	Select func(controllers.Object) []Pod
	// Streams is the maximum number of logs that are read at once.
	Streams int
	// Bound limits the time of the first list of pods in Follow.
	Bound kube.Bound
	// Warn is called for missing log lines, and Failed for a log that cannot be read.
	Warn   func(format string, args ...any)
	Failed func(error)
}

func (o Options) sinceSeconds() int64 {
	return int64((o.Since + time.Second - 1) / time.Second)
}

// selected returns the containers of a pod that the options select.
func (o Options) selected(pod controllers.Object) []Pod {
	if o.Select != nil {
		return o.Select(pod)
	}
	if p, ok := Of(pod); ok {
		return []Pod{p}
	}
	return nil
}

// ManyError is returned if there are more containers than logs may be read at once.
type ManyError struct {
	Pods, Streams int
	// Applications is set for other pods than those of controllers.
	Applications bool
}

func (e *ManyError) Error() string {
	what := "controller pods exceed"
	if e.Applications {
		what = "containers exceed"
	}
	return fmt.Sprintf("%d %s the limit of %d concurrent logs", e.Pods, what, e.Streams)
}

// Read calls each with the lines that the containers of the pods have written so far, sorted by
// time. An entry is valid until each returns.
func Read(ctx context.Context, client *kube.Client, pods []Pod, o Options, each func(*Entry) error) error {
	sources, err := sourcesOf(client, pods, o)
	if err != nil {
		return err
	}
	return merge(ctx, sources, o, each)
}

// sourcesOf returns the logs of the containers that have started.
func sourcesOf(client *kube.Client, pods []Pod, o Options) ([]*source, error) {
	if len(pods) > o.Streams {
		return nil, &ManyError{len(pods), o.Streams, o.Select != nil}
	}
	var sources []*source
	for _, p := range pods {
		if p.Started {
			sources = append(sources, newSource(client, p, o))
			continue
		}
		o.Warn("pod %s/%s has not started and has no log yet: %s", p.Namespace, p.Label, p.Waiting)
	}
	return sources, nil
}

// merge reads the sources to their ends. It holds one line of each and reads the rest on demand,
// so that its memory does not grow with the logs.
func merge(ctx context.Context, sources []*source, o Options, each func(*Entry) error) error {
	heads := make([]*head, len(sources))
	var wg sync.WaitGroup
	for i, s := range sources {
		heads[i] = &head{source: s, order: i}
		wg.Go(func() {
			if o.counts() {
				heads[i].collect(ctx, o)
			}
			heads[i].advance(ctx, o.Filter)
		})
	}
	wg.Wait()
	defer func() {
		for _, s := range sources {
			s.close()
		}
	}()
	var queue headQueue
	for _, h := range heads {
		if h.take(o) {
			queue = append(queue, h)
		}
	}
	heap.Init(&queue)
	for len(queue) > 0 {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		h := queue[0]
		if err := each(&h.entry); err != nil {
			return err
		}
		h.advance(ctx, o.Filter)
		if h.take(o) {
			heap.Fix(&queue, 0)
		} else {
			heap.Pop(&queue)
		}
	}
	return ctx.Err()
}

// head is the next entry of a source.
type head struct {
	source *source
	order  int
	entry  Entry
	// at is the time of the entry, or the time of an earlier entry of the container if that is later.
	// This keeps the order within a log.
	at  time.Time
	err error
	// backlog holds entries that were read in advance, and end is the error with which the source
	// ended after them. dropped is the number of entries that exceeded the memory limit.
	backlog []Entry
	end     error
	dropped int
}

// advance reads the next entry that matches the filter.
func (h *head) advance(ctx context.Context, f Filter) {
	if len(h.backlog) > 0 {
		h.entry, h.backlog = h.backlog[0], h.backlog[1:]
		if h.entry.At.After(h.at) {
			h.at = h.entry.At
		}
		return
	}
	if h.end != nil {
		h.err = h.end
		return
	}
	for {
		l, err := h.source.read(ctx)
		if err != nil {
			h.err = err
			return
		}
		h.entry = h.source.entry(l)
		if h.entry.At.After(h.at) {
			h.at = h.entry.At
		}
		if f.Matches(&h.entry) {
			return
		}
	}
}

// take reports whether there is an entry. It passes the error of a log that cannot be read to Options.Failed.
func (h *head) take(o Options) bool {
	if h.err != nil && !errors.Is(h.err, io.EOF) && !errors.Is(h.err, context.Canceled) {
		o.Failed(h.err)
	}
	return h.err == nil
}

type headQueue []*head

func (q headQueue) Len() int { return len(q) }
func (q headQueue) Less(i, j int) bool {
	if !q[i].at.Equal(q[j].at) {
		return q[i].at.Before(q[j].at)
	}
	return q[i].order < q[j].order
}
func (q headQueue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }

// Push implements heap.Interface.
func (q *headQueue) Push(h any) { *q = append(*q, h.(*head)) }

// Pop implements heap.Interface.
func (q *headQueue) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
}
