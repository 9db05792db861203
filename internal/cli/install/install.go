// Package install has the command install.
package install

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/internal/cli/app"
	"github.com/fluxkit/flux/internal/cli/clierr"
	"github.com/fluxkit/flux/internal/cli/installation"
	"github.com/fluxkit/flux/internal/cli/report"
	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/internal/redact"
	"github.com/fluxkit/flux/manifests"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diagnose"
)

type options struct {
	*installation.Manifests
	export bool
	format string
}

// NewCommand returns the command install.
func NewCommand(a *app.App) *cobra.Command {
	o := &options{Manifests: installation.NewManifests()}
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
		RunE: func(cmd *cobra.Command, _ []string) error { return run(a, cmd, o) },
	}
	o.Add(cmd.Flags())
	cmd.Flags().BoolVar(&o.export, "export", false, "print the manifests instead of installing them")
	cmd.Flags().StringVarP(&o.format, "output", "o", "", "print the result for each object: json or yaml")
	report.CompleteFormat(cmd)
	return cmd
}

func run(a *app.App, cmd *cobra.Command, o *options) error {
	if err := o.check(); err != nil {
		return err
	}
	if !o.export {
		a.UI.Generate("generating manifests")
	}
	set, err := o.Set(a, cmd)
	if err != nil {
		return err
	}
	secret, err := o.PullSecret(a.Stdin(cmd.Context()), set.Namespace)
	if err != nil {
		return err
	}
	if o.export {
		return exportManifests(a, set)
	}
	a.UI.Success("manifests build completed")
	client, err := a.Client()
	if err != nil {
		return err
	}
	ctx, cancel := a.WithTimeout(cmd.Context())
	defer cancel()
	objects := set.Unstructured()
	if secret != nil {
		objects = append(objects, secret)
	}
	if err := installable(ctx, a, client, set.Namespace, objects, o); err != nil {
		return err
	}
	applied, err := apply(ctx, a, client, set, objects, o.format != "")
	if o.format == "" {
		return err
	}
	return errors.Join(a.Encode(o.format, applied), err)
}

func (o *options) check() error {
	if o.export && o.format != "" {
		return errors.New("--export and --output are mutually exclusive")
	}
	return report.CheckFormat(o.format)
}

// apply applies the objects, waits for the controllers and returns
// the results where these are asked for: they cost a request for each object.
func apply(ctx context.Context, a *app.App, client *kube.Client, set *manifests.Set, objects []*unstructured.Unstructured, results bool) ([]report.ChangeResult, error) {
	a.UI.Action("installing components in %s namespace", set.Namespace)
	var applied []report.ChangeResult
	var err error
	if results {
		applied, err = applyWithResults(ctx, client, objects)
	} else {
		err = kube.Apply(ctx, client, objects)
	}
	if err != nil {
		return applied, err
	}
	if a.Global.Verbose {
		for _, object := range objects {
			a.UI.Success("%s applied", kube.Describe(object))
		}
	}
	a.UI.Waiting("verifying installation")
	if err := waitForControllers(ctx, a, client, set.Namespace, set.Components); err != nil {
		return applied, err
	}
	a.UI.Success("install finished")
	return applied, nil
}

// applyWithResults returns what has been done to the objects, in their order,
// also where one of them fails; those behind it are then left out.
func applyWithResults(ctx context.Context, client *kube.Client, objects []*unstructured.Unstructured) ([]report.ChangeResult, error) {
	var mu sync.Mutex
	done := map[*unstructured.Unstructured]string{}
	err := kube.ApplyEach(ctx, client, objects, func(o *unstructured.Unstructured, u kube.Upserted) {
		result := report.ResultConfigured
		switch {
		case u.Before == nil:
			result = report.ResultCreated
		case len(u.Changes()) == 0:
			result = report.ResultUnchanged
		}
		mu.Lock()
		defer mu.Unlock()
		done[o] = result
	})
	results := []report.ChangeResult{}
	for _, o := range objects {
		if result, ok := done[o]; ok {
			results = append(results, report.ChangeResult{Kind: o.GetKind(), Namespace: o.GetNamespace(), Name: o.GetName(), Result: result})
		}
	}
	return results, err
}

func exportManifests(a *app.App, set *manifests.Set) error {
	text, err := set.YAML()
	if err != nil {
		return err
	}
	return a.Document(string(text))
}

// installable finds out, before anything is changed, whether the cluster can
// take the objects: the user's permissions, all that are missing at once, its
// version, and what is there already.
func installable(ctx context.Context, a *app.App, client *kube.Client, namespace string, objects []*unstructured.Unstructured, o *options) error {
	verbs := []string{"create", "patch"}
	if o.format != "" {
		verbs = append(verbs, "get")
	}
	if err := client.Access().Check(ctx, permissionsFor(objects, verbs)); err != nil {
		return err
	}
	var installed, home controllers.Object
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() error { return supported(gctx, client) })
	g.Go(func() (err error) {
		installed, err = installation.Find(gctx, client, installation.CRDs(), installation.CRD)
		return err
	})
	g.Go(func() (err error) {
		home, err = installation.Find(gctx, client, installation.BuiltIn("v1", "Namespace"), namespace)
		return err
	})
	if err := g.Wait(); err != nil {
		return err
	}
	for _, existing := range []controllers.Object{installed, home} {
		if (controllers.Path{"metadata.deletionTimestamp"}).String(existing) != "" {
			return clierr.WithHint("finish it with 'flux uninstall', which says what holds it up, then install again",
				"an earlier removal is not finished: %s is being deleted", controllers.Name(existing))
		}
	}
	return unmanaged(ctx, a, installed, o.Force)
}

func supported(ctx context.Context, client *kube.Client) error {
	server, err := client.Discovery().ServerVersion(ctx)
	if err != nil {
		return err
	}
	enough, err := kube.Supports(server, controllers.MinKubernetes)
	if err != nil {
		return err
	}
	if !enough {
		return clierr.WithHint("upgrade the cluster, or install an older Flux with --manifests",
			"Kubernetes %s is too old for Flux %s, which needs %s", server, controllers.Distribution, controllers.MinKubernetes)
	}
	return nil
}

// unmanaged refuses to install over a Flux that a repository or another tool
// manages: it would change back what is installed here.
func unmanaged(ctx context.Context, a *app.App, crd controllers.Object, force bool) error {
	if crd == nil || force {
		return nil
	}
	installed := kube.Label(crd, kube.VersionLabel)
	if kube.Label(crd, kube.BootstrapLabel) != "" {
		return clierr.WithHint("upgrade it with 'flux bootstrap', or install over it with --force",
			"this cluster has been bootstrapped with Flux %s out of a repository", installed)
	}
	manager := kube.Label(crd, kube.ManagedByLabel)
	if manager == "" || manager == "flux" {
		return nil
	}
	if !a.UI.Interactive() {
		return clierr.WithHint("upgrade it with that, or install over it with --force", "Flux %s on this cluster is managed by %s", installed, manager)
	}
	yes, err := a.Confirm(ctx, fmt.Sprintf("Flux %s on this cluster is managed by %s. Install over it?", installed, manager))
	if err == nil && !yes {
		err = errors.New("nothing was installed")
	}
	return err
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
		r := kube.ResourceFor(o.GroupVersionKind())
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
func waitForControllers(ctx context.Context, a *app.App, client *kube.Client, namespace string, names []string) error {
	rollout := &diagnose.Rollout{
		Client: client, Namespace: namespace, Names: slices.Sorted(slices.Values(names)),
		Ready:   func(name string) { a.UI.Success("%s: deployment ready", name) },
		Trouble: func(t diagnose.Trouble) { a.UI.Warning("%s: %s", t.Name, redact.Text(t.Message)) },
	}
	err := rollout.Wait(ctx)
	var notReady *diagnose.NotReadyError
	if errors.As(err, &notReady) {
		return installation.ReportNotReady(a, notReady)
	}
	return err
}
