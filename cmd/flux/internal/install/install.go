// Package install implements the install command.
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

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/command"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/installflags"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/report"
	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/internal/secrets/redact"
	"github.com/fluxkit/flux/manifests"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diagnose/rollout"
)

type options struct {
	*installflags.Manifests
	export bool
	format string
}

// NewCommand returns the install command.
func NewCommand(a *app.App) *cobra.Command {
	o := &options{Manifests: installflags.NewManifests()}
	cmd := &cobra.Command{
		Use:   "install",
		Short: "Install or upgrade Flux without a Git repository",
		Long: `Install or upgrade the Flux controllers on a cluster and wait until they are
ready. The flags, the Kubernetes version and your permissions are checked before
the cluster is changed.

Versions:
  --version selects the Flux version. The versions listed by "flux version
  --embedded" are built in. Manifests of other versions are downloaded from the
  releases of the Flux project, and their checksum is verified; latest is the
  newest release. Without access to the releases, --manifests installs rendered
  manifests.

Output:
  -o json and -o yaml print a list of all objects with kind, namespace, name and
  result: created, configured or unchanged.`,
		Example: `  # Install or upgrade Flux
  flux install

  # Install the image automation controllers as well
  flux install --components-extra=image-reflector-controller,image-automation-controller

  # Install the embedded patch version of Flux 2.9
  flux install --version=2.9

  # Pull the images from a private registry
  flux install --registry=registry.example.com/flux --image-pull-secret=registry --registry-creds=- < credentials

  # Write the manifests to a file, without access to a cluster
  flux install --export > flux-system.yaml`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return run(a, cmd, o) },
	}
	o.Add(cmd.Flags())
	cmd.Flags().BoolVar(&o.export, "export", false, "print the manifests instead of installing them")
	command.AddOutput(cmd.Flags(), &o.format, "print the result for each object", "json", "yaml")
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
	if err := installable(ctx, a, client, set, objects, o); err != nil {
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
	return nil
}

// apply applies the objects and waits for the controllers. It returns the results only if
// results is set, because each one requires an API request.
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

// applyWithResults returns the results in the order of the objects, up to the
// first that fails.
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

// installable checks the permissions, the Kubernetes version and the current installation before
// the cluster is changed. Missing permissions are reported together, and downgrades are rejected.
func installable(ctx context.Context, a *app.App, client *kube.Client, set *manifests.Set, objects []*unstructured.Unstructured, o *options) error {
	verbs := []string{"create", "patch"}
	if o.format != "" {
		verbs = append(verbs, "get")
	}
	if err := client.Access().Check(ctx, kube.ApplyPermissions(objects, verbs, map[string][]string{
		"Deployment": {"list", "watch"}, "CustomResourceDefinition": {"list", "watch"}, "Namespace": {"list"},
	})); err != nil {
		return err
	}
	var installed, home controllers.Object
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() error { return supported(gctx, client, set) })
	g.Go(func() (err error) {
		installed, err = client.Find(gctx, kube.CRDs(), kube.InstalledCRD)
		return err
	})
	g.Go(func() (err error) {
		home, err = client.Find(gctx, kube.BuiltIn("v1", "Namespace"), set.Namespace)
		return err
	})
	if err := g.Wait(); err != nil {
		return err
	}
	for _, existing := range []controllers.Object{installed, home} {
		if kube.Terminating(existing) {
			return hint.Errorf("run 'flux uninstall', which reports the blocking finalizers, then install again",
				"an earlier removal is incomplete: %s is being deleted", controllers.Name(existing))
		}
	}
	if err := unmanaged(ctx, a, installed, o.Force); err != nil {
		return err
	}
	return set.CheckDowngrade(ctx, client, installed)
}

func supported(ctx context.Context, client *kube.Client, set *manifests.Set) error {
	server, err := client.Discovery().ServerVersion(ctx)
	if err != nil {
		return err
	}
	return set.CheckKubernetes(server)
}

// unmanaged returns an error if a repository or another tool manages Flux, because it would revert
// the changes.
func unmanaged(ctx context.Context, a *app.App, crd controllers.Object, force bool) error {
	if crd == nil || force {
		return nil
	}
	installed := kube.Label(crd, kube.VersionLabel)
	if kube.Label(crd, kube.BootstrapLabel) != "" {
		return hint.Errorf("upgrade Flux with 'flux bootstrap', or use --force",
			"Flux %s was bootstrapped from a Git repository", installed)
	}
	manager := kube.Label(crd, kube.ManagedByLabel)
	if manager == "" || manager == "flux" {
		return nil
	}
	if !a.UI.Interactive() {
		return hint.Errorf("upgrade Flux with that tool, or use --force", "Flux %s on this cluster is managed by %s", installed, manager)
	}
	yes, err := a.Confirm(ctx, fmt.Sprintf("Flux %s on this cluster is managed by %s. Install over it?", installed, manager))
	if err == nil && !yes {
		err = errors.New("nothing was installed")
	}
	return err
}

// waitForControllers waits until the Deployments are ready and reports each one,
// with the cause if it is not ready.
func waitForControllers(ctx context.Context, a *app.App, client *kube.Client, namespace string, names []string) error {
	waiter := &rollout.Waiter{
		Client: client, Namespace: namespace, Names: slices.Sorted(slices.Values(names)),
		Ready:   func(name string) { a.UI.Success("%s: deployment ready", name) },
		Problem: func(p rollout.Problem) { a.UI.Warning("%s: %s", p.Name, redact.Text(p.Message)) },
	}
	err := waiter.Wait(ctx)
	var notReady *rollout.NotReadyError
	if errors.As(err, &notReady) {
		return installflags.ReportNotReady(a, notReady)
	}
	return err
}
