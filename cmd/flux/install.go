package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/internal/redact"
	"github.com/fluxkit/flux/manifests"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diagnose"
)

type installOptions struct {
	*manifestFlags
	export bool
	format string
}

func newInstall(a *app) *cobra.Command {
	o := &installOptions{manifestFlags: newManifestFlags()}
	cmd := &cobra.Command{
		Use:   "install",
		Short: "Install or upgrade Flux without a Git repository",
		Long: `Install or upgrade the controllers of Flux on a cluster, and wait until they
are ready. Nothing is changed on the cluster before the flags, the version of
Kubernetes and your permissions have been found right.

With -o json or yaml, standard output has a list of all objects with kind,
namespace, name and result: created, configured or unchanged.`,
		Example: `  # Install Flux, or upgrade what is there
  flux install

  # With the controllers for image updates
  flux install --components-extra=image-reflector-controller,image-automation-controller

  # From a registry of your own that asks for credentials
  flux install --registry=registry.example.com/flux --image-pull-secret=registry --registry-creds=- < credentials

  # Write the manifests to a file; this needs no cluster
  flux install --export > flux-system.yaml`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.install(cmd, o) },
	}
	o.add(cmd.Flags())
	cmd.Flags().BoolVar(&o.export, "export", false, "print the manifests instead of installing them")
	cmd.Flags().StringVarP(&o.format, "output", "o", "", "print the result for each object: json or yaml")
	completeReportFormat(cmd)
	return cmd
}

func (a *app) install(cmd *cobra.Command, o *installOptions) error {
	if err := o.check(); err != nil {
		return err
	}
	if !o.export {
		a.ui.Generate("generating manifests")
	}
	set, err := o.set(a, cmd)
	if err != nil {
		return err
	}
	secret, err := o.pullSecret(a.in, set.Namespace)
	if err != nil {
		return err
	}
	if o.export {
		return a.exportManifests(set)
	}
	a.ui.Success("manifests build completed")
	client, err := a.cluster()
	if err != nil {
		return err
	}
	ctx, cancel := a.bounded(cmd.Context())
	defer cancel()
	objects := set.Unstructured()
	if secret != nil {
		objects = append(objects, secret)
	}
	if err := a.installable(ctx, client, set.Namespace, objects, o); err != nil {
		return err
	}
	applied, err := a.applyInstallation(ctx, client, set, objects, o.format != "")
	if o.format == "" {
		return err
	}
	return errors.Join(a.encode(o.format, applied), err)
}

func (o *installOptions) check() error {
	if o.export && o.format != "" {
		return errors.New("--export and --output are mutually exclusive")
	}
	return checkReportFormat(o.format)
}

// applyInstallation applies the objects, waits for the controllers and returns
// the results where these are asked for: they cost a request for each object.
func (a *app) applyInstallation(ctx context.Context, client *kube.Client, set *manifests.Set, objects []*unstructured.Unstructured, results bool) ([]changeResult, error) {
	a.ui.Action("installing components in %s namespace", set.Namespace)
	var applied []changeResult
	var err error
	if results {
		applied, err = applyWithResults(ctx, client, objects)
	} else {
		err = client.Apply(ctx, objects)
	}
	if err != nil {
		return applied, err
	}
	if a.global.verbose {
		for _, object := range objects {
			a.ui.Success("%s applied", kube.Describe(object))
		}
	}
	a.ui.Waiting("verifying installation")
	if err := a.waitForControllers(ctx, client, set.Namespace, set.Components); err != nil {
		return applied, err
	}
	a.ui.Success("install finished")
	return applied, nil
}

// applyWithResults returns what has been done to the objects, in their order,
// also where one of them fails; those behind it are then left out.
func applyWithResults(ctx context.Context, client *kube.Client, objects []*unstructured.Unstructured) ([]changeResult, error) {
	var mu sync.Mutex
	done := map[*unstructured.Unstructured]string{}
	err := client.ApplyEach(ctx, objects, func(o *unstructured.Unstructured, u kube.Upserted) {
		result := resultConfigured
		switch {
		case u.Before == nil:
			result = resultCreated
		case len(u.Changes()) == 0:
			result = resultUnchanged
		}
		mu.Lock()
		defer mu.Unlock()
		done[o] = result
	})
	results := []changeResult{}
	for _, o := range objects {
		if result, ok := done[o]; ok {
			results = append(results, changeResult{Kind: o.GetKind(), Namespace: o.GetNamespace(), Name: o.GetName(), Result: result})
		}
	}
	return results, err
}

func (a *app) exportManifests(set *manifests.Set) error {
	text, err := set.YAML()
	if err != nil {
		return err
	}
	return a.document(string(text))
}

// installable finds out, before anything is changed, whether the cluster can
// take the objects: the user's permissions, all that are missing at once, its
// version, and what is there already.
func (a *app) installable(ctx context.Context, client *kube.Client, namespace string, objects []*unstructured.Unstructured, o *installOptions) error {
	verbs := []string{"create", "patch"}
	if o.format != "" {
		verbs = append(verbs, "get")
	}
	if err := client.Allowed(ctx, permissionsFor(objects, verbs)); err != nil {
		return err
	}
	var installed, home controllers.Object
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() error { return supported(gctx, client) })
	g.Go(func() (err error) {
		installed, err = find(gctx, client, crdResource(), definition)
		return err
	})
	g.Go(func() (err error) {
		home, err = find(gctx, client, builtin("v1", "Namespace"), namespace)
		return err
	})
	if err := g.Wait(); err != nil {
		return err
	}
	for _, existing := range []controllers.Object{installed, home} {
		if (controllers.Path{"metadata.deletionTimestamp"}).String(existing) != "" {
			return hinted("finish it with 'flux uninstall', which says what holds it up, then install again",
				"an earlier removal is not finished: %s is being deleted", controllers.Name(existing))
		}
	}
	return a.unmanaged(ctx, installed, o.force)
}

func supported(ctx context.Context, client *kube.Client) error {
	server, err := client.ServerVersion(ctx)
	if err != nil {
		return err
	}
	enough, err := kube.Supports(server, controllers.MinKubernetes)
	if err != nil {
		return err
	}
	if !enough {
		return hinted("upgrade the cluster, or install an older Flux with --manifests",
			"Kubernetes %s is too old for Flux %s, which needs %s", server, controllers.Distribution, controllers.MinKubernetes)
	}
	return nil
}

// definition is the CustomResourceDefinition that every installation of Flux
// has; its labels tell who installed it, and where.
const definition = "gitrepositories.source.toolkit.fluxcd.io"

// find returns an object, nil if there is none of that name. It lists, because
// a list that is refused says so in the same words as every other.
func find(ctx context.Context, client *kube.Client, r kube.Resource, name string) (controllers.Object, error) {
	var found controllers.Object
	_, err := client.List(ctx, r, kube.Selection{Name: name}, func(o controllers.Object) error {
		found = o
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("looking for %s %q: %w", r.Kind, name, err)
	}
	return found, nil
}

// unmanaged refuses to install over a Flux that a repository or another tool
// manages: it would change back what is installed here.
func (a *app) unmanaged(ctx context.Context, crd controllers.Object, force bool) error {
	if crd == nil || force {
		return nil
	}
	installed := kube.Label(crd, kube.VersionLabel)
	if kube.Label(crd, kube.BootstrapLabel) != "" {
		return hinted("upgrade it with 'flux bootstrap', or install over it with --force",
			"this cluster has been bootstrapped with Flux %s out of a repository", installed)
	}
	manager := kube.Label(crd, kube.ManagedByLabel)
	if manager == "" || manager == "flux" {
		return nil
	}
	if !a.ui.Interactive() {
		return hinted("upgrade it with that, or install over it with --force", "Flux %s on this cluster is managed by %s", installed, manager)
	}
	yes, err := a.confirm(ctx, fmt.Sprintf("Flux %s on this cluster is managed by %s. Install over it?", installed, manager))
	if err == nil && !yes {
		err = errors.New("nothing was installed")
	}
	return err
}

// elsewhere is a hint at the namespace that Flux is installed in, where that
// is another one than was looked in.
func elsewhere(crd controllers.Object, namespace string) string {
	if instance := kube.Label(crd, kube.InstanceLabel); instance != "" && instance != namespace {
		return fmt.Sprintf("it is installed in namespace %q: add -n %s", instance, instance)
	}
	return ""
}

// permissionsFor are what installing the objects needs: the verbs that apply
// each kind, and those to watch the controllers come up.
func permissionsFor(objects []*unstructured.Unstructured, apply []string) []kube.Permission {
	var all []kube.Permission
	need := func(verb string, r kube.Resource, namespace string) {
		p := kube.Permission{Verb: verb, Group: r.Group, Resource: r.Resource, Namespace: namespace}
		if !slices.Contains(all, p) {
			all = append(all, p)
		}
	}
	for _, o := range objects {
		r := kube.Guess(o.GroupVersionKind())
		verbs := slices.Clone(apply)
		switch r.Kind {
		case "Deployment", "CustomResourceDefinition":
			verbs = append(verbs, "list", "watch")
		case "Namespace":
			verbs = append(verbs, "list")
		}
		for _, verb := range verbs {
			need(verb, r, o.GetNamespace())
		}
	}
	return all
}

// waitForControllers waits until the Deployments are ready, tells of each, and
// says why where one is not.
func (a *app) waitForControllers(ctx context.Context, client *kube.Client, namespace string, names []string) error {
	rollout := &diagnose.Rollout{
		Client: client, Namespace: namespace, Names: slices.Sorted(slices.Values(names)),
		Ready:   func(name string) { a.ui.Success("%s: deployment ready", name) },
		Trouble: func(t diagnose.Trouble) { a.ui.Warning("%s: %s", t.Name, redact.Text(t.Message)) },
	}
	err := rollout.Wait(ctx)
	var notReady *diagnose.NotReadyError
	if errors.As(err, &notReady) {
		return a.reportNotReady(notReady)
	}
	return err
}

// reportNotReady shows which controllers are not ready, and why: a cause that
// several have once.
func (a *app) reportNotReady(e *diagnose.NotReadyError, ways ...string) error {
	told := make([]string, len(e.Troubles))
	for i, t := range e.Troubles {
		told[i] = redact.Text(t.Message)
		a.ui.Failure("%s: deployment not ready: %s", t.Name, told[i])
	}
	if errors.Is(e, context.DeadlineExceeded) {
		a.ui.Failure("not all controllers were ready within --timeout %s", a.global.timeout)
	}
	a.sayCauses(e.Verdict(), told, ways)
	return errReported
}

func crdResource() kube.Resource {
	return builtin("apiextensions.k8s.io/v1", "CustomResourceDefinition")
}
