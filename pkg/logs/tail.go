package logs

import (
	"bytes"
	"context"
	"errors"
	"io"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/internal/web"
)

// tail follows the log of one container across connection losses and restarts, until its pod is
// deleted.
type tail struct {
	*source
	out   chan<- Entry
	slots chan struct{}
	// wake receives a value after the pod has changed.
	wake chan struct{}
	// ending guards ended, which reports whether the tail no longer reads its pod.
	ending sync.Mutex
	ended  bool
	// run is the run that is being read, or the last one. whole reports whether it was read to its end.
	run   run
	whole bool
	order time.Time
}

// changed makes the tail read its pod again. It returns false if the tail has ended.
func (t *tail) changed() bool {
	t.ending.Lock()
	defer t.ending.Unlock()
	if t.ended {
		return false
	}
	select {
	case t.wake <- struct{}{}:
	default: // already pending
	}
	return true
}

// end ends the tail. Without force, it returns false if the pod has changed since it was read: a
// pod that was deleted may exist again.
func (t *tail) end(force bool) bool {
	t.ending.Lock()
	defer t.ending.Unlock()
	select {
	case <-t.wake:
		if !force {
			return false
		}
	default:
	}
	t.ended = true
	return true
}

// over reports whether the tail has ended.
func (t *tail) over() bool {
	t.ending.Lock()
	defer t.ending.Unlock()
	return t.ended
}

// follow reads until the pod is deleted or ctx is done.
func (t *tail) follow(ctx context.Context) {
	defer t.end(true)
	defer t.close()
	for ctx.Err() == nil {
		pod, there, err := t.current(ctx)
		switch {
		case err != nil && final(err):
			t.options.Failed(err)
			return
		case err != nil:
			// A failed connection or server: retry until ctx is done.
			_ = web.Sleep(ctx, pause)
			continue
		case !there && t.end(false):
			return
		case !there:
			continue
		}
		if !t.step(ctx, pod) {
			return
		}
	}
}

// current returns the current state of the pod.
func (t *tail) current(ctx context.Context) (Pod, bool, error) {
	o, err := t.client.Get(ctx, podResource(), t.pod.Namespace, t.pod.Name)
	if apierrors.IsNotFound(err) {
		return Pod{}, false, nil
	}
	if err != nil {
		return Pod{}, false, err
	}
	for _, p := range t.options.selected(o) {
		if p.Container == t.pod.Container {
			return p, true, nil
		}
	}
	return Pod{}, false, nil
}

// step reads the log according to the pod's state. It returns false at the end of the log.
func (t *tail) step(ctx context.Context, pod Pod) bool {
	another := pod.run.uid != t.run.uid || pod.run.restarts != t.run.restarts
	if another && pod.Started {
		t.catchUp(ctx, pod)
		t.run, t.whole = pod.run, false
	}
	if !pod.Started || t.whole {
		select {
		case <-ctx.Done():
		case <-t.wake:
		}
		return ctx.Err() == nil
	}
	if !pod.run.running {
		t.rest(ctx, false)
		t.whole = true
		return true
	}
	err := t.live(ctx)
	if err != nil && apierrors.IsForbidden(err) {
		t.options.Failed(err)
		return false
	}
	if err != nil {
		// The server may still be unavailable: do not retry at once.
		_ = web.Sleep(ctx, pause)
	}
	return true
}

// catchUp reads the missing lines at the end of the previous run: the stream broke, or the
// container ended before its log was read.
func (t *tail) catchUp(ctx context.Context, pod Pod) {
	missed := pod.run.restarts
	if pod.run.uid == t.run.uid {
		missed -= t.run.restarts
	}
	if missed > 1 {
		t.options.Warn("container %s of pod %s/%s restarted %d times since the last line: only the log of the last run is available", pod.Container, pod.Namespace, pod.Name, missed)
	}
	if missed > 0 {
		t.rest(ctx, true)
	}
}

// rest reads the remaining lines of a run that has ended.
func (t *tail) rest(ctx context.Context, previous bool) {
	for failed := 0; ctx.Err() == nil; failed++ {
		err := t.open(ctx, false, previous)
		if err == nil {
			err = t.pump(ctx)
		}
		var gone apierrors.APIStatus
		if errors.Is(err, io.EOF) || errors.As(err, &gone) && final(err) {
			return // the log is no longer available
		}
		if failed == attempts {
			t.options.Failed(err)
			return
		}
		_ = web.Sleep(ctx, pause)
	}
}

// live reads new lines until the stream ends. A clean end is not an error, since the container may
// have ended.
func (t *tail) live(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case t.slots <- struct{}{}:
	}
	defer func() { <-t.slots }()
	if err := t.open(ctx, true, false); err != nil {
		return err
	}
	before := t.last
	err := t.pump(ctx)
	if errors.Is(err, io.EOF) && t.last.After(before) {
		return nil
	}
	return err
}

// pump passes on lines until the stream ends.
func (t *tail) pump(ctx context.Context) error {
	defer t.close()
	for {
		l, err := t.next()
		if err != nil {
			return err
		}
		e := t.entry(l)
		if e.At.After(t.order) {
			t.order = e.At
		}
		if !t.options.Filter.Matches(&e) {
			continue
		}
		e.text, e.order = bytes.Clone(e.text), t.order
		select {
		case <-ctx.Done():
			return ctx.Err()
		case t.out <- e:
		}
	}
}

func podResource() kube.Resource {
	r := kube.Resource{Kind: "Pod"}
	r.Version, r.Resource = "v1", "pods"
	return r
}
