package bootstrap

import (
	"context"
	"fmt"
	"strings"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/controllers"
)

// cluster holds and checks the cluster state before bootstrap changes it. Objects
// that do not exist are nil. Its methods do not change the cluster.
type cluster struct {
	plan   *Plan
	client *kube.Client

	secret, pullSecret controllers.Object
	source, sync       controllers.Object
	crd, fluxNamespace controllers.Object
	// deployments maps the name of each Deployment in the namespace to the
	// tool that manages it.
	deployments map[string]string
}

// survey reads the state of the cluster, and returns an error if Flux cannot be
// installed on it.
func (c *cluster) survey(ctx context.Context) error {
	g, gctx := errgroup.WithContext(ctx)
	get := func(into *controllers.Object, res kube.Resource, namespace, name string) {
		g.Go(func() error {
			o, err := c.client.Get(gctx, res, namespace, name)
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
	ns := c.plan.namespace()
	get(&c.secret, secretResource(), ns, c.plan.Sync.SecretName)
	get(&c.source, kube.Of(kind("GitRepository")), ns, ns)
	get(&c.sync, kube.Of(kind("Kustomization")), ns, ns)
	get(&c.fluxNamespace, kube.BuiltIn("v1", "Namespace"), "", ns)
	get(&c.crd, kube.CRDs(), "", kind("GitRepository").CRD())
	g.Go(func() (err error) {
		c.deployments, err = c.managers(gctx)
		return err
	})
	if p := c.plan.PullSecret; p != nil {
		get(&c.pullSecret, secretResource(), ns, p.GetName())
	}
	if err := g.Wait(); err != nil {
		return err
	}
	if err := c.checkOwnership(); err != nil {
		return err
	}
	return c.plan.Components.CheckDowngrade(ctx, c.client, c.crd)
}

// managers returns the tool that manages each Deployment in the namespace.
func (c *cluster) managers(ctx context.Context) (map[string]string, error) {
	managers := map[string]string{}
	_, err := c.client.List(ctx, kube.BuiltIn("apps/v1", "Deployment"), kube.Selection{Namespace: c.plan.namespace()}, func(o controllers.Object) error {
		managers[controllers.Name(o)] = kube.Label(o, kube.ManagedByLabel)
		return nil
	})
	if err != nil && !apierrors.IsForbidden(err) {
		return nil, fmt.Errorf("listing the Deployments in namespace %q: %w", c.plan.namespace(), err)
	}
	return managers, nil
}

// checkPermissions returns an error that lists the user's missing permissions.
func (c *cluster) checkPermissions(ctx context.Context) error {
	return c.client.Access().Check(ctx, c.permissions())
}

// checkVersion returns an error if the cluster's Kubernetes is too old for Flux.
func (c *cluster) checkVersion(ctx context.Context) error {
	server, err := c.client.Discovery().ServerVersion(ctx)
	if err != nil {
		return err
	}
	return c.plan.Components.CheckKubernetes(server)
}

// permissions returns the permissions that bootstrap needs on the cluster.
func (c *cluster) permissions() []kube.Permission {
	objects := append(c.plan.Components.Unstructured(), secretObject(c.plan.namespace()))
	for _, name := range []string{"GitRepository", "Kustomization"} {
		objects = append(objects, syncObject(name, c.plan.namespace(), nil))
	}
	read := []string{"get", "list", "watch"}
	return kube.ApplyPermissions(objects, []string{"create", "patch"}, map[string][]string{
		"Deployment": read, "CustomResourceDefinition": read, "GitRepository": read, "Kustomization": read, "Secret": {"get"},
	})
}

// checkOwnership returns an error if another tool, or another path of a
// repository, manages the Flux on the cluster: the two would overwrite each
// other's changes.
func (c *cluster) checkOwnership() error {
	for _, o := range []controllers.Object{c.crd, c.fluxNamespace} {
		if (controllers.Path{"metadata.deletionTimestamp"}).String(o) != "" {
			return hint.Errorf("run 'flux uninstall', which reports the finalizers that block it, then run the command again",
				"an earlier uninstall has not finished: %s is being deleted", controllers.Name(o))
		}
	}
	if c.plan.Force {
		return c.checkSyncObject()
	}
	if manager := kube.Label(c.crd, kube.ManagedByLabel); otherManager(manager) {
		return hint.Errorf(fmt.Sprintf("upgrade it with %s, or take ownership with --force", manager), "Flux on this cluster is managed by %s", manager)
	}
	for _, name := range c.plan.Components.Components {
		if manager := c.deployments[name]; otherManager(manager) {
			return hint.Errorf(fmt.Sprintf("remove it with %s, or take ownership with --force", manager), "Deployment %s/%s is managed by %s", c.plan.namespace(), name, manager)
		}
	}
	return c.checkSyncObject()
}

func otherManager(manager string) bool { return manager != "" && manager != "flux" }

// checkSyncObject returns an error if the cluster's Kustomization applies
// another source or path.
func (c *cluster) checkSyncObject() error {
	if c.sync == nil {
		return nil
	}
	name := c.plan.namespace() + "/" + c.plan.namespace()
	from := controllers.Path{"spec.sourceRef.kind"}.String(c.sync) + "/" + controllers.Path{"spec.sourceRef.name"}.String(c.sync)
	if want := "GitRepository/" + c.plan.namespace(); from != want && !c.plan.Force {
		return hint.Errorf("take ownership with --force, or delete it first", "Kustomization %s already exists and applies %s: bootstrap would change its source to %s", name, from, want)
	}
	at := controllers.Path{"spec.path"}.String(c.sync)
	clean, err := CleanPath(at)
	if err != nil || clean != c.plan.Path {
		return hint.Errorf(hint.Command("set --path=%s, or run 'flux uninstall' first", strings.TrimPrefix(at, "./")),
			"this cluster was bootstrapped from path %q, not from %q", at, "./"+c.plan.Path)
	}
	return nil
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

// kind returns the catalog row of a Flux kind.
func kind(name string) controllers.Kind {
	k, _ := controllers.FindKind(name)
	return k
}
