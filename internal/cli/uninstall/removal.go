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

	"github.com/fluxkit/flux/internal/cli/app"
	"github.com/fluxkit/flux/internal/cli/clierr"
	"github.com/fluxkit/flux/internal/cli/installation"
	"github.com/fluxkit/flux/internal/cli/report"
	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/controllers"
)

const (
	// removedAtOnce is the maximum number of concurrent deletions and patches.
	removedAtOnce = 16
	// lastLook is the maximum time to find the remaining objects after the
	// timeout.
	lastLook = 5 * time.Second
)

// removal executes a plan.
type removal struct {
	app    *app.App
	client *kube.Client
	plan   *plan
	// done has the results so far.
	done []report.ChangeResult
}

// failed records a target that is not deleted.
func (r *removal) failed(t target, why string) {
	result := t.result(report.ResultFailed)
	result.Error = why
	r.done = append(r.done, result)
}

func (r *removal) run(ctx context.Context) error {
	steps := []func(context.Context) error{r.components, r.finalizers, r.definitions, r.namespace}
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// components deletes the controllers, waits until their pods are deleted, and
// then deletes the other components. A running controller would add its
// finalizers again, or fail without its permissions.
func (r *removal) components(ctx context.Context) error {
	r.app.UI.Action("deleting components in %s namespace", r.plan.namespace)
	i := slices.IndexFunc(r.plan.components, func(t target) bool { return t.resource.Kind != "Deployment" })
	if i < 0 {
		i = len(r.plan.components)
	}
	if err := r.controllers(ctx, r.plan.components[:i]); err != nil {
		return err
	}
	return r.delete(ctx, r.plan.components[i:])
}

func (r *removal) controllers(ctx context.Context, deployments []target) error {
	if err := r.delete(ctx, deployments); err != nil {
		return err
	}
	r.app.UI.Waiting("waiting for the controllers to stop")
	for {
		if err := r.end(ctx, deployments); err != nil {
			return err
		}
		left, err := r.client.WaitDeleted(ctx, installation.BuiltIn("v1", "Pod"), r.pods(deployments), anything)
		if err == nil {
			return nil
		}
		if !errors.Is(err, kube.ErrAppeared) {
			return r.left(ctx, err, left, func(_ context.Context, pod controllers.Object) string {
				return fmt.Sprintf("Pod/%s/%s is still running on node %s; only the Deployments were removed: run the command again when the pod is deleted",
					controllers.Namespace(pod), controllers.Name(pod), controllers.Path{"spec.nodeName"}.String(pod))
			})
		}
		// kustomize-controller may have applied its own Deployment again before it stopped.
		again, err := targets(ctx, r.client, installation.BuiltIn("apps/v1", "Deployment"), selectionOf(installation.BuiltIn("apps/v1", "Deployment"), r.plan.namespace))
		if err != nil {
			return err
		}
		if err := r.delete(ctx, again); err != nil {
			return err
		}
	}
}

// end deletes the objects that the Deployments own. The garbage collector deletes
// them as well, but minutes later if CRDs have changed recently, because it
// discovers all kinds again. Without permission, end waits for it.
func (r *removal) end(ctx context.Context, deployments []target) error {
	for _, owned := range []kube.Resource{installation.BuiltIn("apps/v1", "ReplicaSet"), installation.BuiltIn("v1", "Pod")} {
		err := r.client.RemoveAll(ctx, owned, r.pods(deployments))
		if err != nil && !apierrors.IsForbidden(err) {
			return err
		}
	}
	return nil
}

// pods selects the ReplicaSets and pods of the controllers, including those of
// Deployments that an interrupted run has deleted.
func (r *removal) pods(deployments []target) kube.Selection {
	names := controllers.Names(func(controllers.Controller) bool { return true })
	for _, t := range deployments {
		if name := controllers.Name(t.object); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return kube.Selection{Namespace: r.plan.namespace, Labels: "app in (" + strings.Join(names, ",") + ")"}
}

func (r *removal) delete(ctx context.Context, list []target) error {
	done, err := r.each(ctx, list, func(ctx context.Context, t target) (string, error) {
		return "deleted", r.remove(ctx, t)
	})
	for i, t := range list {
		if done[i] == "" {
			r.failed(t, "not deleted")
			continue
		}
		r.done = append(r.done, t.result(report.ResultDeleted))
	}
	return err
}

func (r *removal) remove(ctx context.Context, t target) error {
	return r.client.Remove(ctx, t.resource, controllers.Namespace(t.object), controllers.Name(t.object))
}

// each calls do for several objects concurrently and reports them in order. It
// returns the result for each object, "" on failure.
func (r *removal) each(ctx context.Context, list []target, do func(context.Context, target) (string, error)) ([]string, error) {
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
			r.app.UI.Success("%s %s", t, done[i])
		}
	}
	return done, err
}

// finalizers removes the finalizers of the objects, so that they are deleted
// without the resources that Flux has deployed. It lists the objects again,
// because the controllers may have created objects and finalizers after the plan.
func (r *removal) finalizers(ctx context.Context) error {
	r.app.UI.Action("deleting toolkit.fluxcd.io finalizers in all namespaces")
	now := &plan{namespace: r.plan.namespace}
	if err := now.findDefinitions(ctx, r.client); err != nil {
		return err
	}
	r.plan.crds, r.plan.objects = now.crds, now.objects
	warnOfForeign(r.app, r.plan)
	_, err := r.each(ctx, r.plan.objects, func(ctx context.Context, t target) (string, error) {
		if !t.held() {
			return "", nil
		}
		return "finalizers deleted", r.client.RemoveFinalizers(ctx, t.resource, t.object)
	})
	return err
}

func (r *removal) definitions(ctx context.Context) error {
	r.app.UI.Action("deleting toolkit.fluxcd.io custom resource definitions")
	before := r.done
	r.done = nil
	err := r.deleteForGood(ctx, r.plan.crds, selectionOf(installation.CRDs(), r.plan.namespace), ownDefinition, r.holders)
	crds, gone := r.done, map[string]bool{}
	for _, crd := range crds {
		gone[crd.Name] = crd.Result == report.ResultDeleted
	}
	r.done = before
	for _, t := range r.plan.objects { // deleted with their CRDs
		if gone[t.resource.GroupResource().String()] {
			r.done = append(r.done, t.result(report.ResultDeleted))
		} else {
			r.failed(t, "its CustomResourceDefinition was not deleted")
		}
	}
	r.done = append(r.done, crds...)
	return err
}

// deleteForGood deletes objects of one kind and waits until they are deleted.
func (r *removal) deleteForGood(ctx context.Context, list []target, s kube.Selection, keep func(controllers.Object) bool,
	describe func(context.Context, controllers.Object) string) error {
	if len(list) == 0 {
		return nil
	}
	_, err := r.each(ctx, list, func(ctx context.Context, t target) (string, error) { return "", r.remove(ctx, t) })
	var left []controllers.Object
	if err == nil {
		left, err = r.client.WaitDeleted(ctx, list[0].resource, s, keep)
	}
	if err != nil && len(left) == 0 {
		for _, t := range list {
			r.failed(t, "deletion not confirmed")
		}
		return err
	}
	for _, t := range list {
		if slices.ContainsFunc(left, func(o controllers.Object) bool { return controllers.Name(o) == controllers.Name(t.object) }) {
			r.failed(t, "still being deleted")
			continue
		}
		r.app.UI.Success("%s deleted", t)
		r.done = append(r.done, t.result(report.ResultDeleted))
	}
	return r.left(ctx, err, left, describe)
}

// holders describes the objects that block the deletion of a CRD, and their
// finalizers.
func (r *removal) holders(ctx context.Context, crd controllers.Object) string {
	text := "CustomResourceDefinition/" + controllers.Name(crd) + " remaining"
	for _, t := range r.plan.objects {
		if t.resource.Resource+"."+t.resource.Group != controllers.Name(crd) {
			continue
		}
		o, err := r.client.Get(ctx, t.resource, controllers.Namespace(t.object), controllers.Name(t.object))
		if err != nil {
			continue // deleted, or not readable; other objects may explain it
		}
		if finalizers := kube.Finalizers(o); len(finalizers) > 0 {
			text += fmt.Sprintf("; %s has the finalizers %s", t, strings.Join(finalizers, ", "))
		}
	}
	return text
}

func (r *removal) namespace(ctx context.Context) error {
	if !r.plan.removesNamespace() {
		return nil
	}
	namespace := target{installation.BuiltIn("v1", "Namespace"), r.plan.namespaceObject}
	return r.deleteForGood(ctx, []target{namespace}, kube.Selection{Name: r.plan.namespace}, anything, remains)
}

// remains returns the message of the API server about the deletion of a
// namespace.
func remains(_ context.Context, namespace controllers.Object) string {
	text := "Namespace/" + controllers.Name(namespace) + " remaining"
	for _, typ := range []string{"NamespaceContentRemaining", "NamespaceFinalizersRemaining", "NamespaceDeletionContentFailure", "NamespaceDeletionDiscoveryFailure"} {
		if c, ok := controllers.FindCondition(namespace, typ); ok && c.Status == "True" {
			text += "; " + c.Message
		}
	}
	return text
}

// left reports the objects that were not deleted in time.
func (r *removal) left(ctx context.Context, err error, objects []controllers.Object, describe func(context.Context, controllers.Object) string) error {
	if !errors.Is(err, context.DeadlineExceeded) || len(objects) == 0 {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastLook)
	defer cancel()
	for _, o := range objects {
		r.app.UI.Failure("%s", describe(ctx, o))
	}
	r.app.UI.Failure("timed out after %s waiting for deletions", r.app.Global.Timeout)
	return clierr.ErrReported
}

func anything(controllers.Object) bool { return true }
