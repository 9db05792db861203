package logs

import (
	"bytes"
	"context"
	"errors"
	"io"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/fluxkit/flux/internal/kube"
)

// tail follows the log of one container through lost connections and restarts,
// until its pod is gone.
type tail struct {
	*source
	out   chan<- Entry
	slots chan struct{}
	// wake tells that something about the pod has changed.
	wake chan struct{}
	done chan struct{}
	// run is the one that is read or was read last; whole says to its end.
	run   run
	whole bool
	order time.Time
}

// changed tells the tail to look at its pod again.
func (t *tail) changed() {
	select {
	case t.wake <- struct{}{}:
	default: // it is to look already
	}
}

// follow reads until the pod is gone or ctx ends.
func (t *tail) follow(ctx context.Context) {
	defer close(t.done)
	defer t.close()
	for ctx.Err() == nil {
		pod, there, err := t.look(ctx)
		switch {
		case err != nil && final(err):
			t.options.Failed(err)
			return
		case err != nil:
			// The network or the server: the end of ctx is seen above.
			_ = wait(ctx, pause)
			continue
		case !there:
			return
		}
		if !t.step(ctx, pod) {
			return
		}
	}
}

// look reads the pod as it is now.
func (t *tail) look(ctx context.Context) (Pod, bool, error) {
	o, err := t.client.Get(ctx, podResource(), t.pod.Namespace, t.pod.Name)
	if apierrors.IsNotFound(err) {
		return Pod{}, false, nil
	}
	if err != nil {
		return Pod{}, false, err
	}
	pod, ours := Of(o)
	return pod, ours, nil
}

// step does what the state of the pod asks for. It returns false when there is
// nothing more to be had.
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
		// It breaks again where the server is not well.
		_ = wait(ctx, pause)
	}
	return true
}

// catchUp reads the end of the run before the present one, which nobody has
// seen: the stream broke, or the container ended before it was found.
func (t *tail) catchUp(ctx context.Context, pod Pod) {
	missed := pod.run.restarts
	if pod.run.uid == t.run.uid {
		missed -= t.run.restarts
	}
	if missed > 1 {
		t.options.Warn("container %s of pod %s/%s was restarted %d times in between: only the log of the last run is kept", pod.Container, pod.Namespace, pod.Name, missed)
	}
	if missed > 0 {
		t.rest(ctx, true)
	}
}

// rest reads what has not come yet of a run that has ended.
func (t *tail) rest(ctx context.Context, previous bool) {
	for failed := 0; ctx.Err() == nil; failed++ {
		err := t.open(ctx, false, previous)
		if err == nil {
			err = t.pump(ctx)
		}
		var gone apierrors.APIStatus
		if errors.Is(err, io.EOF) || errors.As(err, &gone) && final(err) {
			return // what the kubelet keeps no longer, nobody can read
		}
		if failed == attempts {
			t.options.Failed(err)
			return
		}
		_ = wait(ctx, pause)
	}
}

// live reads what the container prints until the stream ends. Its clean end is
// no error: it may be that of the container.
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

// pump hands on lines until there are no more.
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
		if !t.options.Filter.Shows(&e) {
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
