// Package uninstall has the command uninstall.
package uninstall

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fluxkit/flux/internal/cli/app"
	"github.com/fluxkit/flux/internal/cli/clierr"
	"github.com/fluxkit/flux/internal/cli/installation"
	"github.com/fluxkit/flux/internal/cli/report"
	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/internal/ui"
)

type options struct {
	keepNamespace, dryRun, silent bool
	format                        string
}

// NewCommand returns the command uninstall.
func NewCommand(a *app.App) *cobra.Command {
	o := &options{}
	cmd := &cobra.Command{
		Use:   "uninstall",
		Short: "Uninstall Flux and its resources; workloads stay",
		Long: `Remove the controllers of Flux, its objects in all namespaces, its definitions
and its namespace, and wait until they are gone. What Flux has deployed stays.

With -o json or yaml, standard output has a list of the objects with kind,
namespace, name and result: deleted, or failed with an error. With --dry-run
each of them has dryRun, too.`,
		Example: `  # See what would be removed
  flux uninstall --dry-run

  # Remove it without a question
  flux uninstall --silent

  # Keep the namespace and what else is in it
  flux uninstall --namespace=infra --keep-namespace`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return run(a, cmd, o) },
	}
	cmd.Flags().BoolVar(&o.keepNamespace, "keep-namespace", false, "keep the namespace and what else is in it")
	cmd.Flags().BoolVar(&o.dryRun, "dry-run", false, "only show what would be removed")
	cmd.Flags().BoolVarP(&o.silent, "silent", "s", false, "do not ask")
	cmd.Flags().StringVarP(&o.format, "output", "o", "", "print the result for each object: json or yaml")
	report.CompleteFormat(cmd)
	return cmd
}

func run(a *app.App, cmd *cobra.Command, o *options) error {
	if err := report.CheckFormat(o.format); err != nil {
		return err
	}
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
	if plan.empty() {
		a.UI.Success("Flux is not installed in namespace %q: there is nothing to remove", namespace)
		return result([]report.ChangeResult{}, hintInstalled(cmd.Context(), a, client, namespace))
	}
	if err := plan.allowed(); err != nil {
		return err
	}
	if o.dryRun {
		rehearse(a, plan)
		return result(plan.results(), nil)
	}
	if !o.silent {
		if err := confirm(cmd.Context(), a, plan); err != nil {
			return err
		}
	}
	// The time that an answer takes is not the operation's.
	ctx, cancel := a.WithTimeout(cmd.Context())
	defer cancel()
	if err := client.Access().Check(ctx, plan.permissions()); err != nil {
		return err
	}
	r := &removal{app: a, client: client, plan: plan, done: []report.ChangeResult{}}
	if err := r.run(ctx); err != nil {
		return result(r.done, err)
	}
	a.UI.Success("uninstall finished")
	return result(r.done, nil)
}

// hintInstalled tells where Flux is, if it is in another namespace.
func hintInstalled(ctx context.Context, a *app.App, client *kube.Client, namespace string) error {
	ctx, cancel := a.WithTimeout(ctx)
	defer cancel()
	crd, err := installation.Find(ctx, client, installation.CRDs(), installation.CRD)
	if hint := installation.ElsewhereHint(crd, namespace); hint != "" {
		a.UI.Line("  %s", hint)
	}
	return err
}

func findPlan(ctx context.Context, a *app.App, client *kube.Client, namespace string, keepNamespace bool) (*plan, error) {
	ctx, cancel := a.WithTimeout(ctx)
	defer cancel()
	return newPlan(ctx, client, namespace, keepNamespace)
}

// confirm shows what will be removed and asks.
func confirm(ctx context.Context, a *app.App, plan *plan) error {
	a.UI.Action("this will be removed from the cluster; what Flux has deployed stays")
	for _, t := range slices.Concat(plan.components, plan.objects, plan.crds) {
		a.UI.Line("  %s", t)
	}
	if plan.removesNamespace() {
		a.UI.Line("  Namespace/%s, with everything in it", plan.namespace)
	}
	warnOfForeign(a, plan)
	yes, err := a.Confirm(ctx, "Remove all of this?")
	if errors.Is(err, ui.ErrNoTerminal) {
		return clierr.WithHint("remove it without a question: --silent; nothing was removed", "there is no terminal to ask on whether to remove Flux")
	}
	if err != nil {
		return err
	}
	if !yes {
		return errors.New("nothing was removed")
	}
	return nil
}

// protected tells whether a cluster does not work without a namespace, or people do not expect it to go.
func protected(namespace string) bool {
	return namespace == "default" || strings.HasPrefix(namespace, "kube-")
}

// rehearse shows what a removal does, without doing it.
func rehearse(a *app.App, plan *plan) {
	a.UI.Action("deleting components in %s namespace", plan.namespace)
	for _, t := range plan.components {
		a.UI.Success("%s deleted (dry run)", t)
	}
	a.UI.Action("deleting toolkit.fluxcd.io finalizers in all namespaces")
	for _, t := range plan.objects {
		if t.held() {
			a.UI.Success("%s finalizers deleted (dry run)", t)
		} else {
			a.UI.Success("%s deleted with its definition (dry run)", t)
		}
	}
	a.UI.Action("deleting toolkit.fluxcd.io custom resource definitions")
	for _, t := range plan.crds {
		a.UI.Success("%s deleted (dry run)", t)
	}
	if plan.removesNamespace() {
		a.UI.Success("Namespace/%s deleted (dry run)", plan.namespace)
	}
	warnOfForeign(a, plan)
	a.UI.Success("uninstall finished")
}

// warnOfForeign names the objects that others hold: they do not go before
// those others let go.
func warnOfForeign(a *app.App, plan *plan) {
	for _, t := range plan.objects {
		if foreign := t.foreign(); len(foreign) > 0 {
			a.UI.Warning("%s is held by finalizers of others, who have to remove them: %s", t, strings.Join(foreign, ", "))
		}
	}
}
