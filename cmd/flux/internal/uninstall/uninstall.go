// Package uninstall implements the uninstall command.
package uninstall

import (
	"context"
	"errors"
	"slices"

	"github.com/spf13/cobra"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/clierr"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/command"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/installflags"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/report"
	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/internal/terminal/ui"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/uninstall"
)

type options struct {
	keepNamespace, dryRun, yes bool
	format                     string
}

// NewCommand returns the uninstall command.
func NewCommand(a *app.App) *cobra.Command {
	o := &options{}
	cmd := &cobra.Command{
		Use:   "uninstall",
		Short: "Uninstall Flux and its resources; workloads are kept",
		Long: `Remove the Flux controllers, the Flux resources in all namespaces, the CRDs and
the namespace, and wait until they are deleted. Resources that Flux has deployed
are kept.

Output:
  -o json and -o yaml print a list of the objects with kind, namespace, name and
  result: deleted, or failed with an error. With --dry-run, each object has the
  field dryRun.`,
		Example: `  # Show what would be removed
  flux uninstall --dry-run

  # Uninstall without a prompt
  flux uninstall --yes

  # Keep the namespace and the other objects in it
  flux uninstall --namespace=infra --keep-namespace`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return run(a, cmd, o) },
	}
	cmd.Flags().BoolVar(&o.keepNamespace, "keep-namespace", false, "keep the namespace and the other objects in it")
	cmd.Flags().BoolVar(&o.dryRun, "dry-run", false, "show what would be removed without removing it")
	command.AddYes(cmd.Flags(), &o.yes, "skip the confirmation")
	command.AddOutput(cmd.Flags(), &o.format, "print the result for each object", "json", "yaml")
	return cmd
}

func run(a *app.App, cmd *cobra.Command, o *options) error {
	client, namespace, err := a.Connect(cmd)
	if err != nil {
		return err
	}
	result := func(done []report.ChangeResult, err error) error {
		if o.format == "" {
			return err
		}
		return errors.Join(a.Encode(o.format, done), err)
	}
	plan, err := findPlan(cmd.Context(), a, client, namespace, o.keepNamespace)
	if err != nil {
		return err
	}
	if plan.Empty() {
		a.UI.Success("Flux is not installed in namespace %q: nothing to remove", namespace)
		return result([]report.ChangeResult{}, hintInstalled(cmd.Context(), a, client, namespace))
	}
	if err := plan.Allowed(); err != nil {
		return err
	}
	if o.dryRun {
		dryRun(a, plan)
		return result(planned(plan), nil)
	}
	if !o.yes {
		if err := confirm(cmd.Context(), a, plan); err != nil {
			return err
		}
	}
	// The time of the prompt does not count towards --timeout.
	ctx, cancel := a.WithTimeout(cmd.Context())
	defer cancel()
	if err := client.Access().Check(ctx, plan.Permissions()); err != nil {
		return err
	}
	done, err := uninstall.Run(ctx, client, plan, a.UI)
	var remaining *uninstall.RemainingError
	if errors.As(err, &remaining) {
		for _, o := range remaining.Objects {
			a.UI.Failure("%s", o)
		}
		a.UI.Failure("%s waiting for deletions", &clierr.TimeoutError{After: a.Global.Timeout})
		err = clierr.ErrReported
	}
	if err == nil {
		a.UI.Success("uninstall finished")
	}
	return result(changes(done), err)
}

// changes returns the results for -o json and yaml.
func changes(results []uninstall.Result) []report.ChangeResult {
	all := []report.ChangeResult{}
	for _, r := range results {
		c := report.ChangeResult{Kind: r.Resource.Kind, Namespace: controllers.Namespace(r.Object), Name: controllers.Name(r.Object), Result: report.ResultDeleted, Error: r.Failure}
		if r.Failure != "" {
			c.Result = report.ResultFailed
		}
		all = append(all, c)
	}
	return all
}

// planned returns the results of a dry run.
func planned(plan *uninstall.Plan) []report.ChangeResult {
	var results []uninstall.Result
	for _, t := range plan.All() {
		results = append(results, uninstall.Result{Target: t})
	}
	all := changes(results)
	for i := range all {
		all[i].DryRun = true
	}
	return all
}

// hintInstalled prints the namespace of Flux if it is another one.
func hintInstalled(ctx context.Context, a *app.App, client *kube.Client, namespace string) error {
	ctx, cancel := a.WithTimeout(ctx)
	defer cancel()
	crd, err := client.Find(ctx, kube.CRDs(), kube.InstalledCRD)
	if hint := installflags.ElsewhereHint(crd, namespace); hint != "" {
		a.UI.Line("  %s", hint)
	}
	return err
}

func findPlan(ctx context.Context, a *app.App, client *kube.Client, namespace string, keepNamespace bool) (*uninstall.Plan, error) {
	ctx, cancel := a.WithTimeout(ctx)
	defer cancel()
	return uninstall.NewPlan(ctx, client, namespace, keepNamespace)
}

// confirm lists the objects to remove and asks for confirmation.
func confirm(ctx context.Context, a *app.App, plan *uninstall.Plan) error {
	a.UI.Action("these objects will be removed from the cluster; resources that Flux has deployed are kept")
	for _, t := range slices.Concat(plan.Components, plan.Objects, plan.CRDs) {
		a.UI.Line("  %s", t)
	}
	if plan.RemovesNamespace() {
		a.UI.Line("  Namespace/%s and everything in it", plan.Namespace)
	}
	plan.WarnOfFinalizers(a.UI)
	yes, err := a.Confirm(ctx, "Remove these objects?")
	if errors.Is(err, ui.ErrNoTerminal) {
		return hint.Errorf("skip the prompt with --yes; nothing was removed", "no terminal to confirm the removal of Flux")
	}
	if err != nil {
		return err
	}
	if !yes {
		return errors.New("nothing was removed")
	}
	return nil
}

// dryRun prints the results of a removal without executing it.
func dryRun(a *app.App, plan *uninstall.Plan) {
	a.UI.Action("deleting components in %s namespace", plan.Namespace)
	for _, t := range plan.Components {
		a.UI.Success("%s deleted (dry run)", t)
	}
	a.UI.Action("deleting toolkit.fluxcd.io finalizers in all namespaces")
	for _, t := range plan.Objects {
		if t.Held() {
			a.UI.Success("%s finalizers deleted (dry run)", t)
		} else {
			a.UI.Success("%s deleted with its CRD (dry run)", t)
		}
	}
	a.UI.Action("deleting toolkit.fluxcd.io custom resource definitions")
	for _, t := range plan.CRDs {
		a.UI.Success("%s deleted (dry run)", t)
	}
	if plan.RemovesNamespace() {
		a.UI.Success("Namespace/%s deleted (dry run)", plan.Namespace)
	}
	plan.WarnOfFinalizers(a.UI)
	a.UI.Success("uninstall finished")
}
