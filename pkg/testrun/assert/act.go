package assert

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/testrun/fault"
)

// act executes the actions of a step. The caller must always end the faults.
func (r *Runner) act(ctx context.Context, s Step, checks []*check) (end fault.End, err error) {
	push, closed := func(context.Context) error { return nil }, func() error { return nil }
	if s.Commit != nil { // prepared before a fault can stop the Git server
		if push, closed, err = r.Repository.prepare(ctx, s); err != nil {
			return func(context.Context) error { return nil }, fmt.Errorf("committing: %w", err)
		}
	}
	defer func() { err = errors.Join(err, closed()) }()
	if end, err = r.Faults.Begin(ctx, s.Faults); err != nil {
		return end, err
	}
	if s.Commit != nil {
		err = push(ctx)
		if err == nil {
			err = r.fetch(ctx)
		}
		if err != nil {
			return end, fmt.Errorf("committing: %w", err)
		}
	}
	return end, r.change(ctx, s, checks)
}

// change changes objects and requests reconciliations.
func (r *Runner) change(ctx context.Context, s Step, checks []*check) error {
	objects := make([]*unstructured.Unstructured, len(s.Apply))
	for i, o := range s.Apply {
		objects[i] = &unstructured.Unstructured{Object: o}
	}
	if err := r.apply(ctx, objects); err != nil {
		return err
	}
	for _, p := range s.Patch {
		if _, err := r.patch(ctx, p); err != nil {
			return fmt.Errorf("patching %s: %w", p.Object, err)
		}
	}
	for _, ref := range s.Delete {
		err := r.on(ctx, ref, func(resource kube.Resource) error {
			_, err := r.Client.Delete(ctx, resource, ref.Namespace, ref.Name)
			return err
		})
		if err != nil {
			return fmt.Errorf("deleting %s: %w", ref, err)
		}
	}
	for _, c := range checks {
		if c.Corrected != nil {
			if err := r.drift(ctx, c); err != nil {
				return fmt.Errorf("changing %s: %w", c.Corrected.Object, err)
			}
		}
	}
	for _, ref := range s.Reconcile {
		if err := r.request(ctx, ref); err != nil {
			return fmt.Errorf("requesting the reconciliation of %s: %w", ref, err)
		}
	}
	return nil
}

// on calls do with the object's resource.
func (r *Runner) on(ctx context.Context, ref Ref, do func(kube.Resource) error) error {
	if k, ok := ref.flux(); ok {
		return r.Client.WithServedVersion(ctx, k, do)
	}
	resource, err := resolve(ctx, r.Client, ref.GroupVersionKind())
	if err != nil {
		return err
	}
	if resource.ClusterScoped != (ref.Namespace == "") {
		return scopeError(resource, ref)
	}
	return do(resource)
}

// apply applies objects of any kind, Namespaces and CustomResourceDefinitions first.
func (r *Runner) apply(ctx context.Context, objects []*unstructured.Unstructured) error {
	var first, rest []*unstructured.Unstructured
	for _, o := range objects {
		if kube.IsPrerequisite(o) {
			first = append(first, o)
		} else {
			rest = append(rest, o)
		}
	}
	if err := kube.ApplyPrerequisites(ctx, r.Client, first); err != nil {
		return err
	}
	for _, o := range rest {
		ref := Ref{APIVersion: o.GetAPIVersion(), Kind: o.GetKind(), Namespace: o.GetNamespace(), Name: o.GetName()}
		if err := r.on(ctx, ref, func(kube.Resource) error { return kube.Apply(ctx, r.Client, []*unstructured.Unstructured{o}) }); err != nil {
			return err
		}
	}
	return nil
}

func (r *Runner) patch(ctx context.Context, p Patch) (changed controllers.Object, err error) {
	err = r.on(ctx, p.Object, func(resource kube.Resource) (err error) {
		changed, err = r.Client.MergePatch(ctx, resource, p.Object.Namespace, p.Object.Name, p.Merge)
		return err
	})
	return changed, err
}

// drift makes a change that Flux has to correct, and requests the reconciliation of the Flux object
// that has applied the changed object.
func (r *Runner) drift(ctx context.Context, c *check) error {
	var before controllers.Object
	err := r.on(ctx, c.Corrected.Object, func(resource kube.Resource) (err error) {
		before, err = r.Client.Get(ctx, resource, c.Corrected.Object.Namespace, c.Corrected.Object.Name)
		return err
	})
	if err != nil {
		return err
	}
	changed, err := r.patch(ctx, *c.Corrected)
	if err != nil {
		return err
	}
	if len(differing(c.Corrected.Merge, before, changed, "")) == 0 {
		return fmt.Errorf("the patch changes nothing")
	}
	c.drift = &drift{before, changed}
	owner, ok := controllers.Manager(before)
	if !ok {
		return fmt.Errorf("no Flux object has applied it")
	}
	return r.request(ctx, Ref{Kind: owner.Kind, Namespace: owner.Namespace, Name: owner.Name})
}

// request requests the reconciliation of a Flux object.
func (r *Runner) request(ctx context.Context, ref Ref) error {
	return r.on(ctx, ref, func(resource kube.Resource) error {
		_, err := r.Client.Annotate(ctx, resource, ref.Namespace, ref.Name, map[string]any{controllers.RequestAnnotation: r.Now().Format(time.RFC3339Nano)})
		return err
	})
}

// fetch requests the reconciliation of the repository's sources, like a Git host's webhook.
func (r *Runner) fetch(ctx context.Context) error {
	git, _ := controllers.FindKind(controllers.GitRepository)
	var sources []Ref
	err := r.Client.WithServedVersion(ctx, git, func(resource kube.Resource) error {
		_, err := r.Client.List(ctx, resource, kube.Selection{}, func(o controllers.Object) error {
			if (controllers.Path{"spec.url"}).String(o) == r.Repository.URL {
				sources = append(sources, Ref{Kind: git.Kind, Namespace: controllers.Namespace(o), Name: controllers.Name(o)})
			}
			return nil
		})
		return err
	})
	if err != nil {
		return err
	}
	for _, ref := range sources {
		if err := r.request(ctx, ref); err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	return nil
}
