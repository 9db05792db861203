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
	// removedAtOnce bounds the deletions and patches that are under way together.
	removedAtOnce = 16
	// lastLook is how long finding out what is left may take when time is up.
	lastLook = 5 * time.Second
)

// removal carries out a plan.
type removal struct {
	app    *app.App
	client *kube.Client
	plan   *plan
	// done are the results so far.
	done []report.ChangeResult
}

// failed notes a target that is not gone.
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

// components removes the controllers, waits until none of them works any more,
// and then removes what they worked with. A controller that still runs would
// put its finalizers back, or take the loss of its rights for a failure.
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
	r.app.UI.Waiting("waiting for the controllers to end")
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
				return fmt.Sprintf("Pod/%s/%s has not ended on node %s; nothing but the Deployments was removed, run this again when it is gone",
					controllers.Namespace(pod), controllers.Name(pod), controllers.Path{"spec.nodeName"}.String(pod))
			})
		}
		// The kustomize-controller may have applied its own Deployment once more while it ended.
		again, err := targets(ctx, r.client, installation.BuiltIn("apps/v1", "Deployment"), selectionOf(installation.BuiltIn("apps/v1", "Deployment"), r.plan.namespace))
		if err != nil {
			return err
		}
		if err := r.delete(ctx, again); err != nil {
			return err
		}
	}
}

// end deletes what the Deployments own. Kubernetes' garbage collector would do
// it too, but minutes later where definitions have come or gone lately, since
// it first reads every kind anew. Who may not delete them waits for it.
func (r *removal) end(ctx context.Context, deployments []target) error {
	for _, owned := range []kube.Resource{installation.BuiltIn("apps/v1", "ReplicaSet"), installation.BuiltIn("v1", "Pod")} {
		err := r.client.RemoveAll(ctx, owned, r.pods(deployments))
		if err != nil && !apierrors.IsForbidden(err) {
			return err
		}
	}
	return nil
}

// pods selects the ReplicaSets and pods of controllers, also of Deployments that are gone
// already because an earlier run was interrupted.
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
			r.failed(t, "it has not been deleted")
			continue
		}
		r.done = append(r.done, t.result(report.ResultDeleted))
	}
	return err
}

func (r *removal) remove(ctx context.Context, t target) error {
	return r.client.Remove(ctx, t.resource, controllers.Namespace(t.object), controllers.Name(t.object))
}

// each works on several objects at once and reports them in order. It returns
// what do has returned for each, "" where it has failed.
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

// finalizers lets go of the objects, so that they go without taking along what
// Flux has deployed. It looks for them anew: the controllers may have made
// some, and set finalizers, after the plan was made.
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
	for _, t := range r.plan.objects { // they go with their definitions
		if gone[t.resource.GroupResource().String()] {
			r.done = append(r.done, t.result(report.ResultDeleted))
		} else {
			r.failed(t, "its CustomResourceDefinition has not been deleted")
		}
	}
	r.done = append(r.done, crds...)
	return err
}

// deleteForGood deletes objects of one kind that go only after others, and
// reports them when they are really gone.
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
			r.failed(t, "it is not known to be gone")
		}
		return err
	}
	for _, t := range list {
		if slices.ContainsFunc(left, func(o controllers.Object) bool { return controllers.Name(o) == controllers.Name(t.object) }) {
			r.failed(t, "it is being deleted and not gone yet")
			continue
		}
		r.app.UI.Success("%s deleted", t)
		r.done = append(r.done, t.result(report.ResultDeleted))
	}
	return r.left(ctx, err, left, describe)
}

// holders says which objects keep a definition from going, and by what.
func (r *removal) holders(ctx context.Context, crd controllers.Object) string {
	text := "CustomResourceDefinition/" + controllers.Name(crd) + " is left"
	for _, t := range r.plan.objects {
		if t.resource.Resource+"."+t.resource.Group != controllers.Name(crd) {
			continue
		}
		o, err := r.client.Get(ctx, t.resource, controllers.Namespace(t.object), controllers.Name(t.object))
		if err != nil {
			continue // it is gone, or cannot be asked: the others still tell
		}
		if finalizers := kube.Finalizers(o); len(finalizers) > 0 {
			text += fmt.Sprintf("; %s is held by the finalizers %s", t, strings.Join(finalizers, ", "))
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

// remains says what keeps a namespace from going, in the server's words.
func remains(_ context.Context, namespace controllers.Object) string {
	text := "Namespace/" + controllers.Name(namespace) + " is left"
	for _, typ := range []string{"NamespaceContentRemaining", "NamespaceFinalizersRemaining", "NamespaceDeletionContentFailure", "NamespaceDeletionDiscoveryFailure"} {
		if c, ok := controllers.FindCondition(namespace, typ); ok && c.Status == "True" {
			text += "; " + c.Message
		}
	}
	return text
}

// left reports what time has run out for.
func (r *removal) left(ctx context.Context, err error, objects []controllers.Object, describe func(context.Context, controllers.Object) string) error {
	if !errors.Is(err, context.DeadlineExceeded) || len(objects) == 0 {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastLook)
	defer cancel()
	for _, o := range objects {
		r.app.UI.Failure("%s", describe(ctx, o))
	}
	r.app.UI.Failure("not everything was gone within --timeout %s", r.app.Global.Timeout)
	return clierr.ErrReported
}

func anything(controllers.Object) bool { return true }
