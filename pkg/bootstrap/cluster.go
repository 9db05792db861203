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

// survey is what the cluster has before anything is changed. An object that it
// does not have is nil.
type survey struct {
	secret, pullSecret controllers.Object
	source, sync       controllers.Object
	definition, home   controllers.Object
	// deployments are those in the namespace by name, the word of each being
	// the tool that manages it.
	deployments map[string]string
}

// survey finds out what is on the cluster and refuses one that cannot take Flux.
func (r *run) survey(ctx context.Context) error {
	g, gctx := errgroup.WithContext(ctx)
	get := func(into *controllers.Object, res kube.Resource, namespace, name string) {
		g.Go(func() error {
			o, err := r.client.Get(gctx, res, namespace, name)
			if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
				return nil // what may not be read, Allowed names together with all else that is missing
			}
			if err != nil {
				return fmt.Errorf("looking for %s %q: %w", res.Kind, name, err)
			}
			*into = o
			return nil
		})
	}
	f, ns := &r.found, r.namespace()
	get(&f.secret, secretResource(), ns, r.plan.Sync.SecretName)
	get(&f.source, kube.Of(kind("GitRepository")), ns, ns)
	get(&f.sync, kube.Of(kind("Kustomization")), ns, ns)
	get(&f.home, kube.Guess(coreKind("Namespace")), "", ns)
	get(&f.definition, kube.Guess(schema.FromAPIVersionAndKind("apiextensions.k8s.io/v1", "CustomResourceDefinition")), "", kind("GitRepository").CRD())
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
	return r.unclaimed()
}

func (r *run) deployments(ctx context.Context) (map[string]string, error) {
	managers := map[string]string{}
	_, err := r.client.List(ctx, kube.Guess(schema.FromAPIVersionAndKind("apps/v1", "Deployment")), kube.Selection{Namespace: r.namespace()}, func(o controllers.Object) error {
		managers[controllers.Name(o)] = kube.Label(o, kube.ManagedByLabel)
		return nil
	})
	if err != nil && !apierrors.IsForbidden(err) {
		return nil, fmt.Errorf("listing the Deployments in namespace %q: %w", r.namespace(), err)
	}
	return managers, nil
}

// permitted asks the server for everything that is going to be done.
func (r *run) permitted(ctx context.Context) error {
	return r.client.Allowed(ctx, r.permissions())
}

func (r *run) supported(ctx context.Context) error {
	server, err := r.client.ServerVersion(ctx)
	if err != nil {
		return err
	}
	ok, err := kube.Supports(server, controllers.MinKubernetes)
	if err != nil || ok {
		return err
	}
	return failure("upgrade the cluster, or install an older Flux with --manifests",
		"Kubernetes %s is too old for Flux %s, which needs %s", server, controllers.Distribution, controllers.MinKubernetes)
}

// permissions are what bootstrap needs in the cluster.
func (r *run) permissions() []kube.Permission {
	var all []kube.Permission
	objects := append(r.plan.Components.Unstructured(), secretObject(r.namespace()))
	for _, name := range []string{"GitRepository", "Kustomization"} {
		objects = append(objects, r.syncObject(name, nil))
	}
	for _, o := range objects {
		res := kube.Guess(o.GroupVersionKind())
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

// unclaimed refuses a cluster whose Flux belongs to something else: another
// tool, or another folder of a repository. Both would fight over it.
func (r *run) unclaimed() error {
	for _, o := range []controllers.Object{r.found.definition, r.found.home} {
		if (controllers.Path{"metadata.deletionTimestamp"}).String(o) != "" {
			return failure("finish it with 'flux uninstall', which says what holds it up, then run the command again",
				"an earlier removal is not finished: %s is being deleted", controllers.Name(o))
		}
	}
	if r.plan.Force {
		return r.unfollowed()
	}
	if manager := kube.Label(r.found.definition, kube.ManagedByLabel); foreign(manager) {
		return failure("upgrade it with that, or take it over with --force", "Flux on this cluster is managed by %s", manager)
	}
	for _, name := range r.plan.Components.Components {
		if manager := r.found.deployments[name]; foreign(manager) {
			return failure("remove it with that, or take it over with --force", "Deployment %s/%s is managed by %s", r.namespace(), name, manager)
		}
	}
	return r.unfollowed()
}

func foreign(manager string) bool { return manager != "" && manager != "flux" }

// unfollowed refuses to overwrite a Kustomization that applies something else.
func (r *run) unfollowed() error {
	if r.found.sync == nil {
		return nil
	}
	name := r.namespace() + "/" + r.namespace()
	from := controllers.Path{"spec.sourceRef.kind"}.String(r.found.sync) + "/" + controllers.Path{"spec.sourceRef.name"}.String(r.found.sync)
	if want := "GitRepository/" + r.namespace(); from != want && !r.plan.Force {
		return failure("take it over with --force, or remove it first", "Kustomization %s is there and applies %s: bootstrap would have it apply %s", name, from, want)
	}
	at := controllers.Path{"spec.path"}.String(r.found.sync)
	clean, err := CleanPath(at)
	if err != nil || clean != r.plan.Path {
		return failure(fmt.Sprintf("give --path=%s, or remove Flux from the cluster first with flux uninstall", strings.TrimPrefix(at, "./")),
			"this cluster has been bootstrapped from folder %q and not from %q", at, "./"+r.plan.Path)
	}
	return nil
}

// follows tells whether the cluster is already where this run would bring it:
// it has applied the newest commit, which holds all that is to be installed,
// and nobody has removed a controller since.
func (r *run) follows() bool {
	for _, name := range r.plan.Components.Components {
		if _, there := r.found.deployments[name]; !there {
			return false
		}
	}
	return isReady(r.found.source) && isReady(r.found.sync) &&
		controllers.Path{"status.lastAppliedRevision"}.String(r.found.sync) == r.newest()
}

// newest is how Flux writes the newest commit of the branch.
func (r *run) newest() string { return r.plan.Branch + "@sha1:" + r.clone.Head() }

// definitions are the namespace and the definitions, on which the rest stands.
func (r *run) definitions() ([]*unstructured.Unstructured, error) {
	objects, err := r.build()
	return slices.DeleteFunc(objects, func(o *unstructured.Unstructured) bool { return !kube.Definition(o) }), err
}

func (r *run) installDefinitions(ctx context.Context) error {
	if r.follows() {
		return nil
	}
	r.say.Action("installing components in %q namespace", r.namespace())
	definitions, err := r.definitions()
	if err != nil {
		return err
	}
	return r.client.Define(ctx, definitions)
}

// awaitDefinitions waits on the server, which takes its time until it serves a
// new kind: controllers end when they start before that.
func (r *run) awaitDefinitions(ctx context.Context) error {
	if r.follows() {
		return nil
	}
	definitions, err := r.definitions()
	if err != nil {
		return err
	}
	return r.client.Served(ctx, definitions)
}

// install applies the components and, at the same time, what makes the cluster
// follow the repository: the controllers, once they run, find their work waiting.
func (r *run) install(ctx context.Context) error {
	if r.follows() {
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
		case !kube.Definition(o):
			components = append(components, o)
		}
	}
	if r.plan.PullSecret != nil {
		components = append(components, r.plan.PullSecret)
	}
	r.say.Action("applying sync manifests")
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() error { return r.client.Apply(gctx, components) })
	g.Go(func() error { return r.client.Apply(gctx, sync) })
	if err := g.Wait(); err != nil {
		return err
	}
	r.say.Success("installed components")
	r.say.Success("reconciled components")
	r.say.Success("reconciled sync configuration")
	return nil
}

// refreshPullSecret writes the registry's credentials where they have changed:
// they are not in the repository.
func (r *run) refreshPullSecret(ctx context.Context) error {
	if p := r.plan.PullSecret; p != nil && !maps.Equal(secretData(r.found.pullSecret), textData(p)) {
		if err := r.client.Apply(ctx, []*unstructured.Unstructured{p}); err != nil {
			return err
		}
		r.say.Success("reconciled image pull secret %q", r.namespace()+"/"+p.GetName())
	}
	r.say.Success("reconciled components")
	r.say.Success("reconciled sync configuration")
	return nil
}

// textData is what a Secret that is written as text will hold.
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
