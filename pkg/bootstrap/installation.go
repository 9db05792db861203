package bootstrap

import (
	"context"
	"maps"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/controllers"
)

// installation applies Flux to the cluster and waits until the cluster has
// applied the commit of this run.
type installation struct {
	plan     *Plan
	progress Progress
	cluster  *cluster
	commits  *commits
	files    *files
	access   *access
	// token is the value of the annotation that requests reconciliations.
	token string
	// revision is the revision of the artifact that source-controller fetched.
	revision string
	// warned holds the controller problems that were already reported.
	warnings sync.Mutex
	warned   []string
}

// upToDate reports whether the cluster has already applied the newest commit,
// which has all manifests of this run, and still has every controller.
func (i *installation) upToDate() bool {
	for _, name := range i.plan.Components.Components {
		if _, exists := i.cluster.deployments[name]; !exists {
			return false
		}
	}
	return isReady("GitRepository", i.cluster.source) && isReady("Kustomization", i.cluster.sync) &&
		controllers.Path{"status.lastAppliedRevision"}.String(i.cluster.sync) == i.commits.repository.headRevision()
}

// prerequisites returns the namespace and the CRDs, which have to exist before
// the other objects.
func (i *installation) prerequisites() ([]*unstructured.Unstructured, error) {
	objects, err := i.files.build()
	return slices.DeleteFunc(objects, func(o *unstructured.Unstructured) bool { return !kube.IsPrerequisite(o) }), err
}

// applyPrerequisites applies the namespace and the CRDs.
func (i *installation) applyPrerequisites(ctx context.Context) error {
	if i.upToDate() {
		return nil
	}
	i.progress.Action("installing components in %q namespace", i.plan.namespace())
	prerequisites, err := i.prerequisites()
	if err != nil {
		return err
	}
	return kube.ApplyPrerequisites(ctx, i.cluster.client, prerequisites)
}

// waitForCRDs waits until the API server serves the kinds of the CRDs.
// Controllers that start earlier exit.
func (i *installation) waitForCRDs(ctx context.Context) error {
	if i.upToDate() {
		return nil
	}
	prerequisites, err := i.prerequisites()
	if err != nil {
		return err
	}
	return kube.WaitEstablished(ctx, i.cluster.client, prerequisites)
}

// apply applies the components and, concurrently, the GitRepository and the
// Kustomization, which the controllers reconcile as soon as they run.
func (i *installation) apply(ctx context.Context) error {
	if i.upToDate() {
		return i.refreshPullSecret(ctx)
	}
	objects, err := i.files.build()
	if err != nil {
		return err
	}
	var components, sync []*unstructured.Unstructured
	for _, o := range objects {
		switch {
		case i.files.isSync(o):
			sync = append(sync, o)
		case !kube.IsPrerequisite(o):
			components = append(components, o)
		}
	}
	if i.plan.PullSecret != nil {
		components = append(components, i.plan.PullSecret)
	}
	i.progress.Action("applying sync manifests")
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() error { return kube.Apply(gctx, i.cluster.client, components) })
	g.Go(func() error { return kube.Apply(gctx, i.cluster.client, sync) })
	if err := g.Wait(); err != nil {
		return err
	}
	i.progress.Success("installed components")
	i.progress.Success("reconciled components")
	i.progress.Success("reconciled sync configuration")
	return nil
}

// refreshPullSecret applies the image pull Secret if the credentials have
// changed. It is not in the repository, so an up-to-date revision does not
// cover it.
func (i *installation) refreshPullSecret(ctx context.Context) error {
	if p := i.plan.PullSecret; p != nil && !maps.Equal(secretData(i.cluster.pullSecret), textData(p)) {
		if err := kube.Apply(ctx, i.cluster.client, []*unstructured.Unstructured{p}); err != nil {
			return err
		}
		i.progress.Success("reconciled image pull secret %q", i.plan.namespace()+"/"+p.GetName())
	}
	i.progress.Success("reconciled components")
	i.progress.Success("reconciled sync configuration")
	return nil
}

// textData returns the data of a Secret with stringData.
func textData(o *unstructured.Unstructured) map[string]string {
	data, _, err := unstructured.NestedStringMap(o.Object, "stringData")
	if err != nil {
		return nil
	}
	return data
}
