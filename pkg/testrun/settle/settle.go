// Package settle waits until the controllers have reconciled all Flux objects of a cluster, or are stuck.
package settle

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/internal/lazy"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diagnose/rules"
	"github.com/fluxkit/flux/pkg/testrun/policy"
)

// Flux is a Flux object with its kind.
type Flux struct {
	Kind   controllers.Kind
	Object controllers.Object
	// Seen is the time at which the object was first received, and Since the time at which it became
	// ready, zero if it is not.
	Seen, Since time.Time
}

// ID identifies the object.
func (f Flux) ID() controllers.ID {
	return f.Kind.IDOf(f.Object)
}

// Suspended returns why the object is suspended, nil if it is not.
func (f Flux) Suspended() *policy.Suspension { return policy.SuspensionOf(f.Kind, f.Object) }

// Failed reports whether the object is neither ready nor suspended.
func (f Flux) Failed() bool {
	return f.Suspended() == nil && f.Kind.HasConditions() && !f.Kind.IsReady(f.Object)
}

// Stuck reports whether the object has failed, as opposed to being reconciled for the first time. Its controller may be
// retrying.
func (f Flux) Stuck() bool {
	return f.Failed() && (f.Kind.Finished(f.Object) || rules.NewSubject(f.Kind, f.Object, "").Repeating)
}

// Failure returns the message of the Ready condition. For a remediated release, it returns the failure instead of the
// successful remediation.
func (f Flux) Failure() string { return rules.NewSubject(f.Kind, f.Object, "").Failed().Message }

// Watcher holds the current state of all Flux objects of a cluster.
type Watcher struct {
	Client *kube.Client
	Now    func() time.Time
	// Operated is set if flux-operator runs. Its objects are then reconciled, too.
	Operated bool
	// Quieted is called when no object is being reconciled, with the objects that are not ready. It
	// reports whether it has made changes, so that failed reconciliations are repeated. It may be
	// nil.
	Quieted func(ctx context.Context, failing []Flux) (changed bool, err error)

	mu      sync.Mutex
	objects map[controllers.ID]Flux
	changed chan struct{}
	// open holds the kinds whose first list has not been received.
	open map[string]bool
	// requests holds the request tokens of the current wave.
	requests map[controllers.ID]string
}

// Settle waits until every Flux object has been reconciled or is stuck, that is, retries of failed
// reconciliations no longer change anything. It returns the objects even if ctx ends.
func (w *Watcher) Settle(ctx context.Context, progress func(ready, all int)) (map[controllers.ID]Flux, error) {
	w.objects, w.changed, w.open = map[controllers.ID]Flux{}, make(chan struct{}, 1), map[string]bool{}
	watching, cancel := context.WithCancel(ctx)
	g, watching := errgroup.WithContext(watching)
	kinds := w.kinds()
	for _, k := range kinds { // before the first list is received
		w.open[k.Kind] = true
	}
	for _, k := range kinds {
		g.Go(func() error { return w.follow(watching, k) })
	}
	err := w.wait(watching, progress)
	cancel()
	if watched := g.Wait(); err == nil || !errors.Is(watched, context.Canceled) {
		err = errors.Join(err, IgnoreCanceled(watched))
	}
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return w.objects, err
}

// kinds returns the kinds of the objects that are reconciled. The run itself replaces a FluxInstance, and a FluxReport is
// only written.
func (w *Watcher) kinds() []controllers.Kind {
	if !w.Operated {
		return controllers.Kinds
	}
	return slices.DeleteFunc(slices.Clone(controllers.Known), func(k controllers.Kind) bool {
		return k.Kind == controllers.FluxInstance || k.Reported
	})
}

// IgnoreCanceled returns nil for the error of a canceled context.
func IgnoreCanceled(err error) error {
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

func (w *Watcher) follow(ctx context.Context, k controllers.Kind) error {
	err := w.Client.WithServedVersion(ctx, k, func(r kube.Resource) error {
		return w.Client.Watch(ctx, context.WithCancel, r, kube.Selection{}, func(list []controllers.Object) error {
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

func (w *Watcher) set(k controllers.Kind, list []controllers.Object, deleted bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.open, k.Kind)
	for _, o := range list {
		f := Flux{Kind: k, Object: o}
		if deleted {
			delete(w.objects, f.ID())
			continue
		}
		f.Seen, f.Since = w.objects[f.ID()].Seen, w.objects[f.ID()].Since
		if f.Seen.IsZero() {
			f.Seen = w.Now()
		}
		switch {
		case !k.IsReady(o):
			f.Since = time.Time{}
		case f.Since.IsZero():
			f.Since = w.Now()
		}
		w.objects[f.ID()] = f
	}
	select {
	case w.changed <- struct{}{}:
	default:
	}
}

// The number of request waves without a change after which an object counts as stuck.
const (
	maxUnchanged = 2
	// maxMisplaced applies if the artifact does not contain the path of a Kustomization.
	// kustomize-controller does not record the revision then, and may have read the previous artifact
	// of another source.
	maxMisplaced = 5
	// unlimited applies to a failure that contradicts the state of other objects: the controller has
	// not received their changes yet.
	unlimited = math.MaxInt
)

// The pauses before waves after maxUnchanged: the first pause, which doubles with each wave, and the longest.
const (
	firstPause = 200 * time.Millisecond
	maxPause   = 5 * time.Second
)

// wait requests the failed reconciliations again until a wave of requests changes nothing.
func (w *Watcher) wait(ctx context.Context, progress func(ready, all int)) error {
	last, unchanged := "", 0
	for {
		failing, err := w.quiet(ctx, progress)
		if err != nil {
			return err
		}
		changed := false
		if w.Quieted != nil && len(failing) > 0 {
			if changed, err = w.Quieted(ctx, failing); err != nil {
				return err
			}
		}
		if state := w.state(); changed || state != last {
			last, unchanged = state, 0
		} else {
			unchanged++
			failing = slices.DeleteFunc(failing, func(f Flux) bool { return unchanged >= w.waves(f) })
		}
		if len(failing) == 0 {
			return nil
		}
		if err := w.pause(ctx, unchanged, last); err != nil {
			return err
		}
		if err := w.request(ctx, failing); err != nil {
			return err
		}
	}
}

// pause waits before the next wave for outdated failures, until the state changes.
func (w *Watcher) pause(ctx context.Context, unchanged int, state string) error {
	if unchanged < maxUnchanged {
		return nil
	}
	timer := time.NewTimer(min(firstPause<<min(unchanged-maxUnchanged, 10), maxPause))
	defer timer.Stop()
	for w.state() == state {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-timer.C:
			return nil
		case <-w.changed:
		}
	}
	return nil
}

// misplaced is the start of kustomize-controller's message about an artifact without the path. The
// controller does not record its revision as attempted.
const misplaced = "kustomization path not found"

// waves returns the number of waves after which a failed object is stuck. For an object that does not
// depend on others, or that depends on a failed object, one wave suffices.
func (w *Watcher) waves(f Flux) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	limit := 1
	contradicted := outdated().MatchString(f.Kind.Ready(f.Object).Message)
	for _, t := range slices.Concat(f.Kind.Upstream(f.Object), f.Kind.DependenciesOf(f.Object)) {
		other, ok := w.objects[t]
		if !ok || !other.Kind.IsReady(other.Object) {
			return 1
		}
		limit = maxUnchanged
		// A suspended object is Ready, and may never have the awaited revision.
		contradicted = contradicted && !other.Kind.Suspension.Is(other.Object)
	}
	switch {
	case limit == 1:
		return 1
	case strings.HasPrefix(f.Kind.Ready(f.Object).Message, misplaced):
		return maxMisplaced
	case contradicted:
		return unlimited
	}
	return limit
}

// outdated matches the messages of controllers that a source or a dependency does not exist, is not
// ready or has no artifact. It does not match messages about a readyExpr, because a ready dependency
// may not satisfy it.
var outdated = lazy.Regexp(`^(?:Source artifact not found|Source (?:is )?not ready|could not get Source object|no artifact available for|` +
	`(?:dependency|source) '[^']*' (?:is not ready$|not found|revision is not up to date)|\S+ '[^']*' is not ready: |.*\.fluxcd\.io "[^"]*" not found$)`)

// quiet waits until no object is being reconciled, and returns the objects that are not ready.
func (w *Watcher) quiet(ctx context.Context, progress func(ready, all int)) ([]Flux, error) {
	for {
		if err := w.simulate(ctx); err != nil {
			return nil, err
		}
		busy, failing, ready := w.classify()
		progress(ready, w.count())
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

func (w *Watcher) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.objects)
}

// classify returns the number of objects that are being reconciled, the objects that are not ready,
// and the number of other objects.
func (w *Watcher) classify() (busy int, failing []Flux, ready int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	stuck := map[controllers.ID]bool{}
	var working []Flux
	for t, f := range w.objects {
		token := cmp.Or(w.requests[t], requested(f))
		switch {
		case f.Kind.Suspension.Is(f.Object), !f.Kind.HasConditions(), f.Kind.Static != nil && f.Kind.Static(f.Object):
		case token != "" && !w.handled(f, token):
			working = append(working, f)
		case f.Kind.IsReady(f.Object) && !w.behind(f):
		case !f.Kind.IsReady(f.Object) && (f.Kind.Finished(f.Object) || f.Kind.Pending(f.Object)):
			failing = append(failing, f)
			stuck[t] = true
		default:
			working = append(working, f)
		}
	}
	before := -1
	for before != len(stuck) {
		before = len(stuck)
		working = slices.DeleteFunc(working, func(f Flux) bool {
			held := Awaits(f, stuck) != nil
			if held {
				stuck[f.ID()] = true
			}
			return held
		})
	}
	return len(working) + len(w.open), failing, len(w.objects) - len(working) - len(stuck)
}

// checking is the start of kustomize-controller's message while it waits for the objects that it has applied.
const checking = "Running health checks"

// Awaits returns the failed object that a reconciliation waits for, nil if there is none. Such a
// reconciliation times out, but is not the root cause.
func Awaits(f Flux, stuck map[controllers.ID]bool) *controllers.ID {
	c, ok := controllers.FindCondition(f.Object, "Reconciling")
	if !ok || c.Status != "True" || !strings.HasPrefix(c.Message, checking) {
		return nil
	}
	for _, t := range controllers.Managed(f.Object) {
		if stuck[t] {
			return &t
		}
	}
	return nil
}

// requested returns the token of a user's reconciliation request.
func requested(f Flux) string {
	if !f.Kind.Has(controllers.Reconcile) {
		return ""
	}
	return controllers.Annotation(f.Object, controllers.RequestAnnotation)
}

// behind reports whether an object has not tried the revision of a ready source. The caller holds w.mu.
func (w *Watcher) behind(f Flux) bool {
	return slices.ContainsFunc(f.Kind.SourceOf(f.Object), func(t controllers.ID) bool {
		source, ok := w.objects[t]
		revision := (controllers.Path{"status.artifact.revision"}).String(source.Object)
		return ok && source.Kind.IsReady(source.Object) && revision != "" && !f.Kind.Tried(f.Object, source.Kind, revision)
	})
}

func (w *Watcher) handled(f Flux, token string) bool {
	handled := (controllers.Path{"status.lastHandledReconcileAt"}).String(f.Object) == token
	return f.Kind.Settled(f.Object, token) || handled && f.Kind.Pending(f.Object)
}

// state identifies which objects exist and why objects are not ready.
func (w *Watcher) state() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var lines []string
	for t, f := range w.objects {
		ready := f.Kind.Ready(f.Object)
		lines = append(lines, strings.Join([]string{t.String(), ready.Status, ready.Reason}, " "))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// request requests a reconciliation of each failing object whose kind supports it.
func (w *Watcher) request(ctx context.Context, failing []Flux) error {
	token := w.Now().Format(time.RFC3339Nano)
	requests := map[controllers.ID]string{}
	for _, f := range failing {
		if !f.Kind.Has(controllers.Reconcile) {
			continue
		}
		err := w.Client.WithServedVersion(ctx, f.Kind, func(r kube.Resource) error {
			_, err := w.Client.Annotate(ctx, r, controllers.Namespace(f.Object), controllers.Name(f.Object), map[string]any{controllers.RequestAnnotation: token})
			return err
		})
		if apierrors.IsNotFound(err) {
			continue // deleted in the meantime
		}
		if err != nil {
			return fmt.Errorf("requesting the reconciliation of %s: %w", f.ID(), err)
		}
		requests[f.ID()] = token
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.requests = requests
	return nil
}
