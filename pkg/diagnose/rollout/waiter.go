package rollout

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diagnose/observe"
)

// lateTimeout is the timeout for finding problems after a wait has timed out.
const lateTimeout = 5 * time.Second

// Waiter waits for the Deployments of a namespace. It sends a single list if all of them are ready. Otherwise it also lists
// their pods and watches both, because the status of a Deployment does not report the failures of pods.
type Waiter struct {
	// Client is the client for the cluster.
	Client *kube.Client
	// Namespace and Names identify the Deployments.
	Namespace string
	Names     []string
	// Ready is called for each Deployment that has become ready, Problem for each new problem. Either may be nil; they are never
	// called concurrently.
	Ready   func(name string)
	Problem func(Problem)
	// Waiting is called once with the Deployments that are not ready at first and have no problem. It may be nil.
	Waiting func(names []string)
	// AnyCause stops waiting for a Deployment at any known problem and continues to wait for the others. If it is false, the
	// first final problem ends the wait for all Deployments.
	AnyCause bool

	mu          sync.Mutex
	deployments map[string]*appsv1.Deployment // nil before List
	pods        map[string]*corev1.Pod        // nil if pods may not be read
	templates   map[string]string             // "deployment/revision" → hash of its pods' template
	pending     []string
	failed      []Problem
	reported    map[string]string // name → kind of the problem
	// version and podVersion are the resource versions of the lists.
	version, podVersion string
}

// List lists the Deployments of the namespace and returns them by name. Wait starts from this list, so List and Wait together
// send one list request.
func (w *Waiter) List(ctx context.Context) (map[string]*appsv1.Deployment, error) {
	w.deployments = map[string]*appsv1.Deployment{}
	var err error
	if w.version, err = list(ctx, w, appsv1.SchemeGroupVersion.String(), "Deployment", w.deployments); err != nil {
		return nil, fmt.Errorf("listing the Deployments in namespace %q: %w", w.Namespace, err)
	}
	return w.deployments, nil
}

// Wait returns nil when all Deployments are ready. It returns a *NotReadyError if one of them cannot become ready, or if ctx
// ends first.
func (w *Waiter) Wait(ctx context.Context) error {
	if w.deployments == nil {
		if _, err := w.List(ctx); err != nil {
			return err
		}
	}
	w.pending, w.failed, w.reported = w.Names, nil, map[string]string{}
	w.templates, w.pods = map[string]string{}, map[string]*corev1.Pod{}
	if w.dropReady(); len(w.pending) == 0 {
		return nil
	}
	if err := w.listPods(ctx); err != nil {
		return w.end(ctx, err)
	}
	done, err := w.evaluate(ctx)
	if err == nil && !done {
		if w.Waiting != nil {
			w.Waiting(slices.Clone(w.pending))
		}
		err = w.watch(ctx)
	}
	return w.end(ctx, err)
}

func (w *Waiter) listPods(ctx context.Context) (err error) {
	w.podVersion, err = list(ctx, w, "v1", "Pod", w.pods)
	if apierrors.IsForbidden(err) {
		w.pods = nil // Deployments still report their readiness
		return nil
	}
	return err
}

// watch watches Deployments and pods until all are ready or a problem is final.
func (w *Waiter) watch(ctx context.Context) error {
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	done := false
	follow := func(ctx context.Context, apiVersion, kind, version string, change func(kube.Event) error) error {
		err := w.Client.Follow(ctx, kube.BuiltIn(apiVersion, kind), kube.Selection{Namespace: w.Namespace}, version, func(e kube.Event) (_ bool, err error) {
			w.mu.Lock()
			defer w.mu.Unlock()
			if done {
				return true, nil
			}
			if err = change(e); err == nil {
				done, err = w.evaluate(ctx)
			}
			return done, err
		})
		w.mu.Lock()
		defer w.mu.Unlock()
		if done {
			cancel() // stop the other watch
			return nil
		}
		return err
	}
	g, gctx := errgroup.WithContext(inner)
	g.Go(func() error {
		return follow(gctx, appsv1.SchemeGroupVersion.String(), "Deployment", w.version, func(e kube.Event) error { return set(w.deployments, "Deployment", e) })
	})
	if w.pods != nil {
		g.Go(func() error {
			return follow(gctx, "v1", "Pod", w.podVersion, func(e kube.Event) error { return set(w.pods, "Pod", e) })
		})
	}
	return g.Wait()
}

// dropReady removes the Deployments that have become ready from pending.
func (w *Waiter) dropReady() {
	var rest []string
	for _, name := range w.pending {
		d := w.deployments[name]
		if d == nil || !Complete(d) {
			rest = append(rest, name)
			continue
		}
		if w.Ready != nil {
			w.Ready(name)
		}
	}
	w.pending = rest
}

// evaluate finds the problems of pending Deployments and reports whether the wait is over.
func (w *Waiter) evaluate(ctx context.Context) (bool, error) {
	w.dropReady()
	var rest []string
	for _, name := range w.pending {
		p, err := w.problem(ctx, name)
		if err != nil {
			return false, err
		}
		if p.Final || w.AnyCause && !p.Vague {
			w.failed = append(w.failed, p)
			continue
		}
		rest = append(rest, name)
		if kind := cmp.Or(p.kind, p.Message); !p.Vague && w.reported[name] != kind {
			w.reported[name] = kind
			if w.Problem != nil {
				w.Problem(p)
			}
		}
	}
	w.pending = rest
	return len(rest) == 0 || !w.AnyCause && len(w.failed) > 0, nil
}

// end returns the error of a wait that is over.
func (w *Waiter) end(ctx context.Context, err error) error {
	if err != nil && ctx.Err() == nil {
		return err
	}
	if ctx.Err() != nil {
		if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return ctx.Err()
		}
		// After a timeout, find the problems with a separate timeout.
		late, cancel := context.WithTimeout(context.WithoutCancel(ctx), lateTimeout)
		defer cancel()
		ctx, err = late, ctx.Err()
		for _, name := range w.pending {
			p, failed := w.problem(ctx, name)
			if failed != nil {
				p = Problem{Name: name, Message: failed.Error()}
			}
			w.failed = append(w.failed, p)
		}
	}
	if len(w.failed) == 0 {
		return err
	}
	explain(ctx, w.cluster(), w.Namespace, w.failed)
	return &NotReadyError{Namespace: w.Namespace, Problems: w.failed, Err: err}
}

func (w *Waiter) cluster() *observe.Cluster { return &observe.Cluster{Client: w.Client} }

// list lists the objects of a kind in the namespace and stores them by name.
func list[T any](ctx context.Context, w *Waiter, apiVersion, kind string, objects map[string]*T) (version string, err error) {
	return w.cluster().List(ctx, apiVersion, kind, w.Namespace, func(o controllers.Object) error { return set(objects, kind, kube.Event{Object: o}) })
}

// set stores an object of an event by name, or removes a deleted one.
func set[T any](objects map[string]*T, kind string, e kube.Event) error {
	name := controllers.Name(e.Object)
	if e.Deleted {
		delete(objects, name)
		return nil
	}
	typed, err := observe.Decode[T](e.Object)
	if err != nil {
		return fmt.Errorf("reading %s %s: %w", kind, name, err)
	}
	objects[name] = typed
	return nil
}
