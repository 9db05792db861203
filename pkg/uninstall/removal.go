package uninstall

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/controllers"
)

const (
	// removedAtOnce is the maximum number of concurrent deletions and patches.
	removedAtOnce = 16
	// remainingTimeout is the maximum time for finding the remaining objects after the timeout.
	remainingTimeout = 5 * time.Second
)

// Progress receives the progress of a removal.
type Progress interface {
	Action(format string, args ...any)
	Waiting(format string, args ...any)
	Success(format string, args ...any)
	Warning(format string, args ...any)
}

// Result is the result for an object.
type Result struct {
	Target
	// Failure is the reason why the object is not deleted, "" for a deleted one.
	Failure string
}

// RemainingError is returned for objects that were not deleted in time.
type RemainingError struct {
	// Objects describes the objects and why they are not deleted.
	Objects []string
	// Err is the context error.
	Err error
}

func (e *RemainingError) Error() string { return strings.Join(e.Objects, "; ") }

// Unwrap returns Err.
func (e *RemainingError) Unwrap() error { return e.Err }

// removal executes a plan.
type removal struct {
	progress Progress
	client   *kube.Client
	plan     *Plan
	// done holds the results so far.
	done []Result
}

// Run removes the objects of a plan and waits until they are deleted. It returns
// the results so far with an error.
func Run(ctx context.Context, client *kube.Client, plan *Plan, progress Progress) ([]Result, error) {
	r := &removal{progress: progress, client: client, plan: plan}
	for _, step := range []func(context.Context) error{r.components, r.finalizers, r.crds, r.namespace} {
		if err := step(ctx); err != nil {
			return r.done, err
		}
	}
	return r.done, nil
}

// components deletes the controllers, waits until their pods are deleted, and
// then deletes the other components. A running controller would add its
// finalizers again, or fail without its permissions.
func (r *removal) components(ctx context.Context) error {
	r.progress.Action("deleting components in %s namespace", r.plan.Namespace)
	i := slices.IndexFunc(r.plan.Components, func(t Target) bool { return t.Resource.Kind != "Deployment" })
	if i < 0 {
		i = len(r.plan.Components)
	}
	if err := r.controllers(ctx, r.plan.Components[:i]); err != nil {
		return err
	}
	return r.delete(ctx, r.plan.Components[i:])
}

// controllers deletes the controllers' Deployments until neither Deployments nor pods remain:
// kustomize-controller can apply its own and the other Deployments again before it stops.
func (r *removal) controllers(ctx context.Context, deployments []Target) error {
	if err := r.delete(ctx, deployments); err != nil {
		return err
	}
	r.progress.Waiting("waiting for the controllers to stop")
	pods := r.pods(deployments)
	for {
		left, err := r.stop(ctx, pods)
		if err != nil && !errors.Is(err, kube.ErrAppeared) {
			return remaining(ctx, err, left, func(_ context.Context, pod controllers.Object) string {
				return fmt.Sprintf("Pod/%s/%s is still running on node %s; only the Deployments were removed: run the command again when the pod is deleted",
					controllers.Namespace(pod), controllers.Name(pod), controllers.Path{"spec.nodeName"}.String(pod))
			})
		}
		stopped := err == nil
		again, err := targets(ctx, r.client, kube.BuiltIn("apps/v1", "Deployment"), selectionOf(kube.BuiltIn("apps/v1", "Deployment"), r.plan.Namespace))
		if err != nil {
			return err
		}
		again = slices.DeleteFunc(again, func(t Target) bool { return kube.Terminating(t.Object) })
		if stopped && len(again) == 0 {
			return nil
		}
		if err := r.delete(ctx, again); err != nil {
			return err
		}
	}
}

// stop deletes the ReplicaSets and pods of the controllers and waits until they
// are deleted. The garbage collector deletes them as well, but minutes later if
// CRDs have changed recently, because it discovers all kinds again. Without
// permission, stop waits for the garbage collector. It returns kube.ErrAppeared
// if a pod was created in the meantime.
func (r *removal) stop(ctx context.Context, pods kube.Selection) ([]controllers.Object, error) {
	forbidden := false
	for _, owned := range []kube.Resource{kube.BuiltIn("apps/v1", "ReplicaSet"), kube.BuiltIn("v1", "Pod")} {
		err := r.client.RemoveAll(ctx, owned, pods)
		if err != nil && !apierrors.IsForbidden(err) {
			return nil, err
		}
		forbidden = forbidden || err != nil
	}
	if forbidden {
		return r.client.WaitDeleted(ctx, kube.BuiltIn("v1", "Pod"), pods, anything)
	}
	return kube.WaitTerminated(ctx, r.client, kube.BuiltIn("v1", "Pod"), pods)
}

// pods selects the ReplicaSets and pods of the controllers, including those of
// Deployments that an interrupted run has deleted.
func (r *removal) pods(deployments []Target) kube.Selection {
	names := controllers.Names(func(controllers.Controller) bool { return true })
	for _, t := range deployments {
		if name := controllers.Name(t.Object); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return kube.Selection{Namespace: r.plan.Namespace, Labels: "app in (" + strings.Join(names, ",") + ")"}
}

func (r *removal) delete(ctx context.Context, list []Target) error {
	done, err := r.each(ctx, list, func(ctx context.Context, t Target) (string, error) {
		return "deleted", r.remove(ctx, t)
	})
	for i, t := range list {
		if done[i] == "" {
			r.done = append(r.done, Result{t, "not deleted"})
			continue
		}
		r.done = append(r.done, Result{Target: t})
	}
	return err
}

func (r *removal) remove(ctx context.Context, t Target) error {
	return r.client.Remove(ctx, t.Resource, controllers.Namespace(t.Object), controllers.Name(t.Object))
}

// each calls do for several objects concurrently and reports them in order. It
// returns the result for each object, "" on failure.
func (r *removal) each(ctx context.Context, list []Target, do func(context.Context, Target) (string, error)) ([]string, error) {
	done := make([]string, len(list))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(removedAtOnce)
	for i, t := range list {
		g.Go(func() (err error) {
			said, err := do(ctx, t)
			if err == nil {
				done[i] = said
			}
			return err
		})
	}
	err := g.Wait()
	for i, t := range list {
		if done[i] != "" {
			r.progress.Success("%s %s", t, done[i])
		}
	}
	return done, err
}

// finalizers removes the finalizers of the objects, so that they are deleted
// without the resources that Flux has deployed. It lists the objects again,
// because the controllers may have created objects and finalizers after the plan.
func (r *removal) finalizers(ctx context.Context) error {
	r.progress.Action("deleting toolkit.fluxcd.io finalizers in all namespaces")
	now := &Plan{Namespace: r.plan.Namespace}
	if err := now.findCRDs(ctx, r.client); err != nil {
		return err
	}
	r.plan.CRDs, r.plan.Objects = now.CRDs, now.Objects
	r.plan.WarnOfFinalizers(r.progress)
	_, err := r.each(ctx, r.plan.Objects, func(ctx context.Context, t Target) (string, error) {
		if !t.Held() {
			return "", nil
		}
		return "finalizers deleted", r.client.RemoveFinalizers(ctx, t.Resource, t.Object)
	})
	return err
}

func (r *removal) crds(ctx context.Context) error {
	r.progress.Action("deleting toolkit.fluxcd.io custom resource definitions")
	before := r.done
	r.done = nil
	err := r.deleteForGood(ctx, r.plan.CRDs, selectionOf(kube.CRDs(), r.plan.Namespace), isFluxCRD, r.holders)
	crds, gone := r.done, map[string]bool{}
	for _, crd := range crds {
		gone[controllers.Name(crd.Object)] = crd.Failure == ""
	}
	r.done = before
	for _, t := range r.plan.Objects { // deleted with their CRDs
		if gone[t.Resource.GroupResource().String()] {
			r.done = append(r.done, Result{Target: t})
		} else {
			r.done = append(r.done, Result{t, "its CustomResourceDefinition was not deleted"})
		}
	}
	r.done = append(r.done, crds...)
	return err
}

// deleteForGood deletes objects of one kind and waits until they are deleted.
func (r *removal) deleteForGood(ctx context.Context, list []Target, s kube.Selection, keep func(controllers.Object) bool,
	describe func(context.Context, controllers.Object) string) error {
	if len(list) == 0 {
		return nil
	}
	_, err := r.each(ctx, list, func(ctx context.Context, t Target) (string, error) { return "", r.remove(ctx, t) })
	var left []controllers.Object
	if err == nil {
		left, err = r.client.WaitDeleted(ctx, list[0].Resource, s, keep)
	}
	if err != nil && len(left) == 0 {
		for _, t := range list {
			r.done = append(r.done, Result{t, "deletion not confirmed"})
		}
		return err
	}
	for _, t := range list {
		if slices.ContainsFunc(left, func(o controllers.Object) bool { return controllers.Name(o) == controllers.Name(t.Object) }) {
			r.done = append(r.done, Result{t, "still being deleted"})
			continue
		}
		r.progress.Success("%s deleted", t)
		r.done = append(r.done, Result{Target: t})
	}
	return remaining(ctx, err, left, describe)
}

// holders describes the objects that block the deletion of a CRD, and their
// finalizers.
func (r *removal) holders(ctx context.Context, crd controllers.Object) string {
	text := "CustomResourceDefinition/" + controllers.Name(crd) + " remaining"
	for _, t := range r.plan.Objects {
		if t.Resource.Resource+"."+t.Resource.Group != controllers.Name(crd) {
			continue
		}
		o, err := r.client.Get(ctx, t.Resource, controllers.Namespace(t.Object), controllers.Name(t.Object))
		if err != nil {
			continue // deleted or unreadable; other objects may be the reason
		}
		if finalizers := kube.Finalizers(o); len(finalizers) > 0 {
			text += fmt.Sprintf("; %s has the finalizers %s", t, strings.Join(finalizers, ", "))
		}
	}
	return text
}

func (r *removal) namespace(ctx context.Context) error {
	if !r.plan.RemovesNamespace() {
		return nil
	}
	return r.deleteForGood(ctx, []Target{r.plan.namespaceTarget()}, kube.Selection{Name: r.plan.Namespace}, anything, remains)
}

// remains returns the API server's message about the deletion of a namespace.
func remains(_ context.Context, namespace controllers.Object) string {
	text := "Namespace/" + controllers.Name(namespace) + " remaining"
	for _, typ := range []string{"NamespaceContentRemaining", "NamespaceFinalizersRemaining", "NamespaceDeletionContentFailure", "NamespaceDeletionDiscoveryFailure"} {
		if c, ok := controllers.FindCondition(namespace, typ); ok && c.Status == "True" {
			text += "; " + c.Message
		}
	}
	return text
}

// remaining returns the error for objects that were not deleted in time.
func remaining(ctx context.Context, err error, objects []controllers.Object, describe func(context.Context, controllers.Object) string) error {
	if !errors.Is(err, context.DeadlineExceeded) || len(objects) == 0 {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), remainingTimeout)
	defer cancel()
	e := &RemainingError{Err: err}
	for _, o := range objects {
		e.Objects = append(e.Objects, describe(ctx, o))
	}
	return e
}

func anything(controllers.Object) bool { return true }
