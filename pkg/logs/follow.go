package logs

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/controllers"
)

const (
	// holdBack is the time for which a line is held to sort it with earlier lines of other pods
	// that arrive later.
	holdBack = 100 * time.Millisecond
	// heldLines and heldBytes limit the lines that are held.
	heldLines = 2000
	heldBytes = 4 << 20
)

// Selection returns the list options for the pods of a namespace.
func Selection(namespace string) kube.Selection {
	return kube.Selection{Namespace: namespace, Without: []string{"metadata.managedFields", "spec.volumes", "spec.tolerations", "spec.affinity"}}
}

// Pods lists the pods of the controllers.
func Pods(ctx context.Context, client *kube.Client, namespace string) ([]Pod, error) {
	return Options{}.Pods(ctx, client, namespace)
}

// Pods lists the containers of a namespace that the options select.
func (o Options) Pods(ctx context.Context, client *kube.Client, namespace string) ([]Pod, error) {
	var pods []Pod
	_, err := client.List(ctx, podResource(), Selection(namespace), func(pod controllers.Object) error {
		pods = append(pods, o.selected(pod)...)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("listing the pods of namespace %q: %w", namespace, err)
	}
	return pods, nil
}

// Follow is like Read, and continues with new lines, including those of new pods, until ctx is
// done.
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
			for _, p := range o.selected(e.Object) {
				f.changed(ctx, p, e.Deleted)
			}
			return nil
		})
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}

// follower runs a tail for each pod.
type follower struct {
	client    *kube.Client
	namespace string
	options   Options
	each      func(*Entry) error
	cancel    context.CancelCauseFunc
	out       chan Entry
	slots     chan struct{}
	tails     map[string]*tail // by the label of the container
	running   sync.WaitGroup
}

// begin reads the logs so far, and starts to follow them.
func (f *follower) begin(ctx context.Context, objects []controllers.Object) error {
	var pods []Pod
	for _, o := range objects {
		pods = append(pods, f.options.selected(o)...)
	}
	if len(pods) == 0 && f.options.Select == nil {
		f.options.Warn("no controller pods in namespace %q yet", f.namespace)
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
		return ErrUnreadable
	}
	f.running.Go(func() { f.print(ctx) })
	for _, s := range sources {
		f.start(ctx, s, s.pod.run)
	}
	return nil
}

// ErrUnreadable is returned if no log can be read. Each cause was reported to Options.Failed.
var ErrUnreadable = errors.New("cannot read any of the logs")

func (f *follower) start(ctx context.Context, s *source, read run) {
	t := &tail{source: s, out: f.out, slots: f.slots, wake: make(chan struct{}, 1), run: read}
	f.tails[s.pod.Label] = t
	f.running.Go(func() { t.follow(ctx) })
}

// changed follows a new pod, or wakes the tail of a known one.
func (f *follower) changed(ctx context.Context, p Pod, deleted bool) {
	maps.DeleteFunc(f.tails, func(_ string, t *tail) bool { return t.over() })
	if t := f.tails[p.Label]; t != nil && t.changed() {
		return
	}
	if deleted {
		return
	}
	o := f.options
	o.Since, o.SinceTime, o.Tail = 0, time.Time{}, -1
	f.start(ctx, newSource(f.client, p, o), run{})
}

// print emits the lines, sorted within the time for which they are held.
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

// hold collects the lines that arrive soon after an entry.
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
