package rehearse

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/controllers"
)

// flux is a Flux object with its kind.
type flux struct {
	kind   controllers.Kind
	object controllers.Object
}

func (f flux) target() controllers.Target {
	return controllers.Target{Kind: f.kind.Kind, Namespace: controllers.Namespace(f.object), Name: controllers.Name(f.object)}
}

// watcher has the current state of all Flux objects of a cluster.
type watcher struct {
	client *kube.Client
	now    func() time.Time

	mu      sync.Mutex
	objects map[controllers.Target]flux
	changed chan struct{}
	// open has the kinds whose first list has not been received.
	open map[string]bool
	// asked are the requests of the present wave.
	asked map[controllers.Target]string
}

// settle waits until every Flux object has been reconciled or is stuck: controllers have repeated
// the failed reconciliations, and nothing has changed. It returns the objects, also if ctx ends.
func settle(ctx context.Context, client *kube.Client, now func() time.Time, progress func(ready, all int)) (map[controllers.Target]flux, error) {
	w := &watcher{client: client, now: now, objects: map[controllers.Target]flux{}, changed: make(chan struct{}, 1), open: map[string]bool{}}
	watching, cancel := context.WithCancel(ctx)
	g, watching := errgroup.WithContext(watching)
	for _, k := range controllers.Kinds {
		w.open[k.Kind] = true
		g.Go(func() error { return w.follow(watching, k) })
	}
	err := w.wait(watching, progress)
	cancel()
	if watched := g.Wait(); err == nil || !errors.Is(watched, context.Canceled) {
		err = errors.Join(err, ignoreCanceled(watched))
	}
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return w.objects, err
}

func ignoreCanceled(err error) error {
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

func (w *watcher) follow(ctx context.Context, k controllers.Kind) error {
	err := w.client.WithServedVersion(ctx, k, func(r kube.Resource) error {
		return w.client.Watch(ctx, context.WithCancel, r, kube.Selection{}, func(list []controllers.Object) error {
			w.set(k, list, false)
			return nil
		}, func(e kube.Event) error {
			w.set(k, []controllers.Object{e.Object}, e.Deleted)
			return nil
		})
	})
	var absent *kube.MissingKindError
	if errors.As(err, &absent) {
		w.set(k, nil, false)
		return nil
	}
	return err
}

func (w *watcher) set(k controllers.Kind, list []controllers.Object, deleted bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.open, k.Kind)
	for _, o := range list {
		f := flux{k, o}
		if deleted {
			delete(w.objects, f.target())
			continue
		}
		w.objects[f.target()] = f
	}
	select {
	case w.changed <- struct{}{}:
	default:
	}
}

// The numbers of waves of requests that change nothing after which an object counts as stuck. A
// controller may have read other objects before they were ready, and then the failure is outdated.
const (
	maxUnchanged = 2
	maxOutdated  = 5
)

// wait requests the failed reconciliations again until a wave of requests changes nothing.
func (w *watcher) wait(ctx context.Context, progress func(ready, all int)) error {
	last, unchanged := "", 0
	for {
		failing, err := w.quiet(ctx, progress)
		if err != nil {
			return err
		}
		if state := w.state(); state != last {
			last, unchanged = state, 0
		} else {
			unchanged++
			failing = slices.DeleteFunc(failing, func(f flux) bool { return unchanged >= w.waves(f) })
		}
		if len(failing) == 0 {
			return nil
		}
		if err := w.request(ctx, failing); err != nil {
			return err
		}
	}
}

// waves returns the number of waves after which a failed object is stuck. One that does not depend
// on others, or that depends on a failed one, has answered with the first.
func (w *watcher) waves(f flux) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	sources := f.kind.SourceOf(f.object)
	limit := 1
	if f.kind.Pending(f.object) {
		limit = maxOutdated
	}
	for i, t := range slices.Concat(sources, f.kind.DependenciesOf(f.object)) {
		t.APIVersion = ""
		other, ok := w.objects[t]
		if !ok || !other.kind.IsReady(other.object) {
			return 1
		}
		limit = max(limit, maxUnchanged)
		revision := (controllers.Path{"status.artifact.revision"}).String(other.object)
		if i < len(sources) && revision != "" && !f.kind.Tried(f.object, other.kind, revision) {
			limit = maxOutdated
		}
	}
	return limit
}

// quiet waits until no object is being reconciled, and returns those that are not ready.
func (w *watcher) quiet(ctx context.Context, progress func(ready, all int)) ([]flux, error) {
	for {
		busy, failing, all := w.look()
		progress(all-busy-len(failing), all)
		if busy == 0 {
			return failing, nil
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-w.changed:
		}
	}
}

// look returns the number of objects that are being reconciled, and those that are not ready.
func (w *watcher) look() (busy int, failing []flux, all int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for t, f := range w.objects {
		token := w.asked[t]
		switch {
		case f.kind.Suspension.Is(f.object), !f.kind.HasConditions(), f.kind.Static != nil && f.kind.Static(f.object):
		case token != "" && !w.answered(f, token):
			busy++
		case f.kind.IsReady(f.object):
		case f.kind.Finished(f.object) || f.kind.Pending(f.object):
			failing = append(failing, f)
		default:
			busy++
		}
	}
	return busy + len(w.open), failing, len(w.objects)
}

func (w *watcher) answered(f flux, token string) bool {
	handled := (controllers.Path{"status.lastHandledReconcileAt"}).String(f.object) == token
	return f.kind.Settled(f.object, token) || handled && f.kind.Pending(f.object)
}

// state identifies which objects exist and why some are not ready.
func (w *watcher) state() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var lines []string
	for t, f := range w.objects {
		ready := f.kind.Ready(f.object)
		lines = append(lines, strings.Join([]string{t.String(), ready.Status, ready.Reason}, " "))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// request requests a reconciliation of each object that a request makes a controller reconcile.
func (w *watcher) request(ctx context.Context, failing []flux) error {
	token := w.now().Format(time.RFC3339Nano)
	asked := map[controllers.Target]string{}
	for _, f := range failing {
		if !f.kind.Has(controllers.Reconcile) {
			continue
		}
		err := w.client.WithServedVersion(ctx, f.kind, func(r kube.Resource) error {
			_, err := w.client.Annotate(ctx, r, controllers.Namespace(f.object), controllers.Name(f.object), map[string]any{controllers.RequestAnnotation: token})
			return err
		})
		if apierrors.IsNotFound(err) {
			continue // deleted in the meantime
		}
		if err != nil {
			return fmt.Errorf("requesting the reconciliation of %s: %w", f.target(), err)
		}
		asked[f.target()] = token
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked = asked
	return nil
}
