package bootstrap

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/controllers"
)

// survey is the state of the cluster before bootstrap changes it. An object
// that does not exist is nil.
type survey struct {
	secret, pullSecret controllers.Object
	source, sync       controllers.Object
	crd, fluxNamespace controllers.Object
	// deployments maps the name of each Deployment in the namespace to the
	// tool that manages it.
	deployments map[string]string
}

// survey reads the state of the cluster, and returns an error if Flux cannot be
// installed on it.
func (r *run) survey(ctx context.Context) error {
	g, gctx := errgroup.WithContext(ctx)
	get := func(into *controllers.Object, res kube.Resource, namespace, name string) {
		g.Go(func() error {
			o, err := r.client.Get(gctx, res, namespace, name)
			if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
				return nil // checkPermissions lists all missing permissions in one error
			}
			if err != nil {
				return fmt.Errorf("reading %s %q: %w", res.Kind, name, err)
			}
			*into = o
			return nil
		})
	}
	f, ns := &r.found, r.namespace()
	get(&f.secret, secretResource(), ns, r.plan.Sync.SecretName)
	get(&f.source, kube.Of(kind("GitRepository")), ns, ns)
	get(&f.sync, kube.Of(kind("Kustomization")), ns, ns)
	get(&f.fluxNamespace, kube.ResourceFor(coreKind("Namespace")), "", ns)
	get(&f.crd, kube.ResourceFor(schema.FromAPIVersionAndKind("apiextensions.k8s.io/v1", "CustomResourceDefinition")), "", kind("GitRepository").CRD())
	g.Go(func() (err error) {
		f.deployments, err = r.deployments(gctx)
		return err
	})
	if p := r.plan.PullSecret; p != nil {
		get(&f.pullSecret, secretResource(), ns, p.GetName())
	}
	if err := g.Wait(); err != nil {
		return err
	}
	return r.checkOwnership()
}

func (r *run) deployments(ctx context.Context) (map[string]string, error) {
	managers := map[string]string{}
	_, err := r.client.List(ctx, kube.ResourceFor(schema.FromAPIVersionAndKind("apps/v1", "Deployment")), kube.Selection{Namespace: r.namespace()}, func(o controllers.Object) error {
		managers[controllers.Name(o)] = kube.Label(o, kube.ManagedByLabel)
		return nil
	})
	if err != nil && !apierrors.IsForbidden(err) {
		return nil, fmt.Errorf("listing the Deployments in namespace %q: %w", r.namespace(), err)
	}
	return managers, nil
}

// checkPermissions returns an error that lists the permissions that the user
// lacks.
func (r *run) checkPermissions(ctx context.Context) error {
	return r.client.Access().Check(ctx, r.permissions())
}

// checkVersion returns an error if the cluster's Kubernetes is too old for Flux.
func (r *run) checkVersion(ctx context.Context) error {
	server, err := r.client.Discovery().ServerVersion(ctx)
	if err != nil {
		return err
	}
	ok, err := kube.Supports(server, controllers.MinKubernetes)
	if err != nil || ok {
		return err
	}
	return failure("upgrade the cluster, or install an older Flux with --manifests",
		"Kubernetes %s is too old for Flux %s, which requires %s", server, controllers.Distribution, controllers.MinKubernetes)
}

// permissions returns the permissions that bootstrap needs on the cluster.
func (r *run) permissions() []kube.Permission {
	var all []kube.Permission
	objects := append(r.plan.Components.Unstructured(), secretObject(r.namespace()))
	for _, name := range []string{"GitRepository", "Kustomization"} {
		objects = append(objects, r.syncObject(name, nil))
	}
	for _, o := range objects {
		res := kube.ResourceFor(o.GroupVersionKind())
		verbs := []string{"create", "patch"}
		switch res.Kind {
		case "Deployment", "CustomResourceDefinition", "GitRepository", "Kustomization":
			verbs = append(verbs, "get", "list", "watch")
		case "Secret":
			verbs = append(verbs, "get")
		}
		for _, verb := range verbs {
			p := kube.Permission{Verb: verb, Group: res.Group, Resource: res.Resource, Namespace: o.GetNamespace()}
			if !slices.Contains(all, p) {
				all = append(all, p)
			}
		}
	}
	return all
}

// checkOwnership returns an error if another tool, or another path of a
// repository, manages the Flux on the cluster: the two would overwrite each
// other's changes.
func (r *run) checkOwnership() error {
	for _, o := range []controllers.Object{r.found.crd, r.found.fluxNamespace} {
		if (controllers.Path{"metadata.deletionTimestamp"}).String(o) != "" {
			return failure("run 'flux uninstall', which reports the finalizers that block it, then run the command again",
				"an earlier uninstall has not finished: %s is being deleted", controllers.Name(o))
		}
	}
	if r.plan.Force {
		return r.checkSyncObject()
	}
	if manager := kube.Label(r.found.crd, kube.ManagedByLabel); otherManager(manager) {
		return failure(fmt.Sprintf("upgrade it with %s, or take ownership with --force", manager), "Flux on this cluster is managed by %s", manager)
	}
	for _, name := range r.plan.Components.Components {
		if manager := r.found.deployments[name]; otherManager(manager) {
			return failure(fmt.Sprintf("remove it with %s, or take ownership with --force", manager), "Deployment %s/%s is managed by %s", r.namespace(), name, manager)
		}
	}
	return r.checkSyncObject()
}

func otherManager(manager string) bool { return manager != "" && manager != "flux" }

// checkSyncObject returns an error if the cluster's Kustomization applies
// another source or path.
func (r *run) checkSyncObject() error {
	if r.found.sync == nil {
		return nil
	}
	name := r.namespace() + "/" + r.namespace()
	from := controllers.Path{"spec.sourceRef.kind"}.String(r.found.sync) + "/" + controllers.Path{"spec.sourceRef.name"}.String(r.found.sync)
	if want := "GitRepository/" + r.namespace(); from != want && !r.plan.Force {
		return failure("take ownership with --force, or delete it first", "Kustomization %s already exists and applies %s: bootstrap would change its source to %s", name, from, want)
	}
	at := controllers.Path{"spec.path"}.String(r.found.sync)
	clean, err := CleanPath(at)
	if err != nil || clean != r.plan.Path {
		return failure(fmt.Sprintf("set --path=%s, or run 'flux uninstall' first", strings.TrimPrefix(at, "./")),
			"this cluster was bootstrapped from path %q, not from %q", at, "./"+r.plan.Path)
	}
	return nil
}

// upToDate reports whether the cluster has already applied the newest commit,
// which has all manifests of this run, and still has every controller.
func (r *run) upToDate() bool {
	for _, name := range r.plan.Components.Components {
		if _, exists := r.found.deployments[name]; !exists {
			return false
		}
	}
	return isReady("GitRepository", r.found.source) && isReady("Kustomization", r.found.sync) &&
		controllers.Path{"status.lastAppliedRevision"}.String(r.found.sync) == r.headRevision()
}

// headRevision returns the newest commit of the branch as a Flux revision.
func (r *run) headRevision() string { return r.plan.Branch + "@sha1:" + r.clone.Head() }

// prerequisites returns the namespace and the CRDs, which have to exist before
// the other objects.
func (r *run) prerequisites() ([]*unstructured.Unstructured, error) {
	objects, err := r.build()
	return slices.DeleteFunc(objects, func(o *unstructured.Unstructured) bool { return !kube.IsPrerequisite(o) }), err
}

func (r *run) installPrerequisites(ctx context.Context) error {
	if r.upToDate() {
		return nil
	}
	r.progress.Action("installing components in %q namespace", r.namespace())
	prerequisites, err := r.prerequisites()
	if err != nil {
		return err
	}
	return kube.ApplyPrerequisites(ctx, r.client, prerequisites)
}

// waitForCRDs waits until the API server serves the kinds of the CRDs.
// Controllers that start earlier exit.
func (r *run) waitForCRDs(ctx context.Context) error {
	if r.upToDate() {
		return nil
	}
	prerequisites, err := r.prerequisites()
	if err != nil {
		return err
	}
	return kube.WaitEstablished(ctx, r.client, prerequisites)
}

// install applies the components and, concurrently, the GitRepository and the
// Kustomization, which the controllers reconcile as soon as they run.
func (r *run) install(ctx context.Context) error {
	if r.upToDate() {
		return r.refreshPullSecret(ctx)
	}
	objects, err := r.build()
	if err != nil {
		return err
	}
	var components, sync []*unstructured.Unstructured
	for _, o := range objects {
		switch {
		case r.isSync(o):
			sync = append(sync, o)
		case !kube.IsPrerequisite(o):
			components = append(components, o)
		}
	}
	if r.plan.PullSecret != nil {
		components = append(components, r.plan.PullSecret)
	}
	r.progress.Action("applying sync manifests")
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() error { return kube.Apply(gctx, r.client, components) })
	g.Go(func() error { return kube.Apply(gctx, r.client, sync) })
	if err := g.Wait(); err != nil {
		return err
	}
	r.progress.Success("installed components")
	r.progress.Success("reconciled components")
	r.progress.Success("reconciled sync configuration")
	return nil
}

// refreshPullSecret applies the image pull Secret if the credentials have
// changed. It is not in the repository, so an up-to-date revision does not
// cover it.
func (r *run) refreshPullSecret(ctx context.Context) error {
	if p := r.plan.PullSecret; p != nil && !maps.Equal(secretData(r.found.pullSecret), textData(p)) {
		if err := kube.Apply(ctx, r.client, []*unstructured.Unstructured{p}); err != nil {
			return err
		}
		r.progress.Success("reconciled image pull secret %q", r.namespace()+"/"+p.GetName())
	}
	r.progress.Success("reconciled components")
	r.progress.Success("reconciled sync configuration")
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

func coreKind(name string) schema.GroupVersionKind {
	return schema.FromAPIVersionAndKind("v1", name)
}

func secretObject(namespace string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(coreKind("Secret"))
	o.SetNamespace(namespace)
	return o
}
