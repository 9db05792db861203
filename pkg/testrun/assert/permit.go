package assert

import (
	"context"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/testrun/policy"
)

// permit allows ImageUpdateAutomations to push to the served repository, if a test expects a
// commit. All others remain suspended.
func (r *Runner) permit(ctx context.Context) {
	expected := false
	for _, t := range r.tests {
		for _, s := range t.Steps {
			for _, e := range s.Expect {
				expected = expected || e.Committed != nil
			}
		}
	}
	k, _ := controllers.FindKind("ImageUpdateAutomation")
	if !expected {
		return
	}
	r.hub.wait.Go(func() {
		// Without the image controllers, the assertions fail.
		_ = r.Client.WithServedVersion(ctx, k, func(resource kube.Resource) error {
			return r.Client.Follow(ctx, resource, kube.Selection{}, "", func(e kube.Event) (bool, error) {
				if !e.Deleted && controllers.Annotation(e.Object, policy.PushAnnotation) != r.Permission {
					r.hub.wait.Go(func() { r.permitOne(ctx, resource, k, e.Object) })
				}
				return false, nil
			})
		})
	})
}

// permitOne allows an automation to push once its source exists and is the served repository.
func (r *Runner) permitOne(ctx context.Context, resource kube.Resource, k controllers.Kind, o controllers.Object) {
	for _, source := range k.SourceOf(o) {
		of, _ := source.Flux()
		own := false
		err := r.Client.WithServedVersion(ctx, of, func(resource kube.Resource) error {
			return r.Client.Follow(ctx, resource, kube.Selection{Namespace: source.Namespace, Name: source.Name}, "", func(e kube.Event) (bool, error) {
				own = (controllers.Path{"spec.url"}).String(e.Object) == r.Repository.URL
				return true, nil
			})
		})
		if err != nil || !own {
			return
		}
		// If this fails, the automation remains suspended, and the assertion fails.
		_, _ = r.Client.MergePatch(ctx, resource, controllers.Namespace(o), controllers.Name(o), map[string]any{
			"metadata": map[string]any{"annotations": map[string]any{policy.PushAnnotation: r.Permission, policy.SuspendAnnotation: nil}}, "spec": map[string]any{"suspend": false},
		})
	}
}
