package logs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/controllers"
)

const (
	// holdBack is how long a line waits for those of other pods that were
	// printed before it and take longer to arrive.
	holdBack = 100 * time.Millisecond
	// heldLines and heldBytes bound what waits.
	heldLines = 2000
	heldBytes = 4 << 20
)

// Selection are the pods among which those of controllers are looked for.
func Selection(namespace string) kube.Selection {
	return kube.Selection{Namespace: namespace, Without: []string{"metadata.managedFields", "spec.volumes", "spec.tolerations", "spec.affinity"}}
}

// Pods lists the pods of the controllers.
func Pods(ctx context.Context, client *kube.Client, namespace string) ([]Pod, error) {
	var pods []Pod
	_, err := client.List(ctx, podResource(), Selection(namespace), func(o controllers.Object) error {
		if p, ok := Of(o); ok {
			pods = append(pods, p)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("listing the pods of namespace %q: %w", namespace, err)
	}
	return pods, nil
}

// Follow is Read, and goes on with what the pods print from then on, those that
// come later too, until ctx ends.
func Follow(ctx context.Context, client *kube.Client, namespace string, o Options, each func(*Entry) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	f := &follower{
		client: client, namespace: namespace, options: o, each: each, cancel: cancel,
		out: make(chan Entry), slots: make(chan struct{}, o.Streams), tails: map[string]*tail{},
	}
	defer f.running.Wait()
	defer cancel(nil)
	err := client.Watch(ctx, o.Bound, podResource(), Selection(namespace),
		func(objects []controllers.Object) error { return f.begin(ctx, objects) },
		func(e kube.Event) error {
			if p, ok := Of(e.Object); ok {
				f.changed(ctx, p, e.Deleted)
			}
			return nil
		})
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}

// follower has a tail for every pod.
type follower struct {
	client    *kube.Client
	namespace string
	options   Options
	each      func(*Entry) error
	cancel    context.CancelCauseFunc
	out       chan Entry
	slots     chan struct{}
	tails     map[string]*tail // by the name of the pod
	running   sync.WaitGroup
}

// begin shows what has been printed so far, and follows from there.
func (f *follower) begin(ctx context.Context, objects []controllers.Object) error {
	var pods []Pod
	for _, o := range objects {
		if p, ok := Of(o); ok {
			pods = append(pods, p)
		}
	}
	if len(pods) == 0 {
		f.options.Warn("there are no controllers' pods in namespace %q yet", f.namespace)
	}
	sources, err := sourcesOf(f.client, pods, f.options)
	if err != nil {
		return err
	}
	refused := 0
	o := f.options
	o.Failed = func(err error) {
		f.options.Failed(err)
		refused++
	}
	if err := merge(ctx, sources, o, f.each); err != nil {
		return err
	}
	if refused > 0 && refused == len(sources) {
		return ErrRefused
	}
	f.running.Go(func() { f.print(ctx) })
	for _, s := range sources {
		f.start(ctx, s, s.pod.run)
	}
	return nil
}

// ErrRefused says that no log could be read; why has been told already.
var ErrRefused = errors.New("none of the logs can be read")

func (f *follower) start(ctx context.Context, s *source, read run) {
	t := &tail{source: s, out: f.out, slots: f.slots, wake: make(chan struct{}, 1), done: make(chan struct{}), run: read}
	f.tails[s.pod.Name] = t
	f.running.Go(func() { t.follow(ctx) })
}

// changed follows a pod that is new, and lets the others look what is new.
func (f *follower) changed(ctx context.Context, p Pod, deleted bool) {
	for name, t := range f.tails {
		select {
		case <-t.done:
			delete(f.tails, name)
		default:
		}
	}
	if t := f.tails[p.Name]; t != nil {
		t.changed()
		return
	}
	if deleted {
		return
	}
	o := f.options
	o.Since, o.SinceTime, o.Tail = 0, time.Time{}, -1
	f.start(ctx, newSource(f.client, p, o), run{})
}

// print shows what comes, sorted as far as it waits for each other.
func (f *follower) print(ctx context.Context) {
	for {
		var held []Entry
		select {
		case <-ctx.Done():
			return
		case e := <-f.out:
			held = f.hold(ctx, e)
		}
		slices.SortStableFunc(held, func(a, b Entry) int { return a.order.Compare(b.order) })
		for i := range held {
			if err := f.each(&held[i]); err != nil {
				f.cancel(err)
				return
			}
		}
	}
}

// hold collects what comes soon after an entry.
func (f *follower) hold(ctx context.Context, first Entry) []Entry {
	held, size := []Entry{first}, len(first.text)
	timer := time.NewTimer(holdBack)
	defer timer.Stop()
	for len(held) < heldLines && size < heldBytes {
		select {
		case <-ctx.Done():
			return held
		case <-timer.C:
			return held
		case e := <-f.out:
			held, size = append(held, e), size+len(e.text)
		}
	}
	return held
}
