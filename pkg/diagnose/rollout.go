package diagnose

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/controllers"
)

// Rollout waits for the Deployments of a namespace. It sends a single list if
// all of them are ready. Otherwise it also lists their pods and watches both,
// because the status of a Deployment does not report the failures of pods.
type Rollout struct {
	// Client is the client for the cluster.
	Client *kube.Client
	// Namespace is the namespace of the Deployments, Names are their names.
	Namespace string
	Names     []string
	// Ready is called for each Deployment that has become ready, Trouble for
	// each new problem. Either may be nil; they are never called concurrently.
	Ready   func(name string)
	Trouble func(Trouble)
	// Waiting is called once with the Deployments that are not ready at first
	// and have no problem. It may be nil.
	Waiting func(names []string)
	// AnyCause stops waiting for a Deployment at any known cause and continues to wait for the
	// others. If it is false, the first final cause ends the wait for all Deployments.
	AnyCause bool

	mu          sync.Mutex
	looked      bool
	deployments map[string]*appsv1.Deployment
	pods        map[string]*corev1.Pod
	current     map[string]string // "deployment/revision" → hash of its pods' template
	pending     []string
	failed      []Trouble
	told        map[string]string
	version     string
	podVersion  string
	podsHidden  bool
}

// Look lists the Deployments of the namespace and returns them by name. Wait
// starts from this list, so both send one list together.
func (r *Rollout) Look(ctx context.Context) (map[string]*appsv1.Deployment, error) {
	r.deployments = map[string]*appsv1.Deployment{}
	version, err := r.Client.List(ctx, deployments(), kube.Selection{Namespace: r.Namespace}, r.takeDeployment)
	if err != nil {
		return nil, fmt.Errorf("listing the Deployments in namespace %q: %w", r.Namespace, err)
	}
	r.version, r.looked = version, true
	return r.deployments, nil
}

// Wait returns nil when all Deployments are ready. It returns a *NotReadyError
// if one of them cannot become ready, or if ctx ends first.
func (r *Rollout) Wait(ctx context.Context) error {
	if !r.looked {
		if _, err := r.Look(ctx); err != nil {
			return err
		}
	}
	r.pending, r.failed, r.told = r.Names, nil, map[string]string{}
	r.current, r.pods = map[string]string{}, map[string]*corev1.Pod{}
	if r.settle(); len(r.pending) == 0 {
		return nil
	}
	if err := r.listPods(ctx); err != nil {
		return r.end(ctx, err)
	}
	over, err := r.judge(ctx)
	if err == nil && !over {
		if r.Waiting != nil {
			r.Waiting(slices.Clone(r.pending))
		}
		err = r.watch(ctx)
	}
	return r.end(ctx, err)
}

// watch watches Deployments and pods until all are ready or a cause is final.
func (r *Rollout) watch(ctx context.Context) error {
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	over := false
	follow := func(ctx context.Context, res kube.Resource, version string, take func(kube.Event) error) error {
		err := r.Client.Follow(ctx, res, kube.Selection{Namespace: r.Namespace}, version, func(e kube.Event) (_ bool, err error) {
			r.mu.Lock()
			defer r.mu.Unlock()
			if over {
				return true, nil
			}
			if err = take(e); err == nil {
				over, err = r.judge(ctx)
			}
			return over, err
		})
		r.mu.Lock()
		defer r.mu.Unlock()
		if over {
			cancel() // stop the other watch
			return nil
		}
		return err
	}
	g, gctx := errgroup.WithContext(inner)
	g.Go(func() error { return follow(gctx, deployments(), r.version, r.deploymentChanged) })
	if !r.podsHidden {
		g.Go(func() error { return follow(gctx, pods(), r.podVersion, r.podChanged) })
	}
	return g.Wait()
}

// settle removes the Deployments that have become ready from pending.
func (r *Rollout) settle() {
	var rest []string
	for _, name := range r.pending {
		d := r.deployments[name]
		if d == nil || !Rolled(d) {
			rest = append(rest, name)
			continue
		}
		if r.Ready != nil {
			r.Ready(name)
		}
	}
	r.pending = rest
}

// judge finds the causes of pending Deployments and reports whether the wait is
// over.
func (r *Rollout) judge(ctx context.Context) (bool, error) {
	r.settle()
	var rest []string
	for _, name := range r.pending {
		cause, err := r.cause(ctx, name)
		if err != nil {
			return false, err
		}
		t := Trouble{name, cause}
		if cause.Final || r.AnyCause && !cause.Vague {
			r.failed = append(r.failed, t)
			continue
		}
		rest = append(rest, name)
		if kind := cmp.Or(cause.kind, cause.Message); !cause.Vague && r.told[name] != kind {
			r.told[name] = kind
			if r.Trouble != nil {
				r.Trouble(t)
			}
		}
	}
	r.pending = rest
	return len(rest) == 0 || !r.AnyCause && len(r.failed) > 0, nil
}

// end returns the error of a wait that is over.
func (r *Rollout) end(ctx context.Context, err error) error {
	if err != nil && ctx.Err() == nil {
		return err
	}
	if ctx.Err() != nil {
		if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return ctx.Err()
		}
		// Find the causes of a timeout with a timeout of its own.
		late, cancel := context.WithTimeout(context.WithoutCancel(ctx), afterthought)
		defer cancel()
		ctx, err = late, ctx.Err()
		for _, name := range r.pending {
			cause, causeErr := r.cause(ctx, name)
			if causeErr != nil {
				cause = Cause{Message: causeErr.Error()}
			}
			r.failed = append(r.failed, Trouble{name, cause})
		}
	}
	if len(r.failed) == 0 {
		return err
	}
	newWorkloads(r.Client).enrich(ctx, r.Namespace, r.failed)
	return &NotReadyError{Namespace: r.Namespace, Troubles: r.failed, Err: err}
}

func (r *Rollout) listPods(ctx context.Context) error {
	version, err := r.Client.List(ctx, pods(), kube.Selection{Namespace: r.Namespace}, r.takePod)
	if apierrors.IsForbidden(err) {
		r.podsHidden = true // Deployments still report their readiness
		return nil
	}
	r.podVersion = version
	return err
}

func (r *Rollout) takeDeployment(o controllers.Object) error {
	d := &appsv1.Deployment{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o, d); err != nil {
		return fmt.Errorf("reading Deployment %s: %w", controllers.Name(o), err)
	}
	r.deployments[d.Name] = d
	return nil
}

func (r *Rollout) takePod(o controllers.Object) error {
	p := &corev1.Pod{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o, p); err != nil {
		return fmt.Errorf("reading Pod %s: %w", controllers.Name(o), err)
	}
	r.pods[p.Name] = p
	return nil
}

func (r *Rollout) deploymentChanged(e kube.Event) error {
	if e.Deleted {
		delete(r.deployments, controllers.Name(e.Object))
		return nil
	}
	return r.takeDeployment(e.Object)
}

func (r *Rollout) podChanged(e kube.Event) error {
	if e.Deleted {
		delete(r.pods, controllers.Name(e.Object))
		return nil
	}
	return r.takePod(e.Object)
}
