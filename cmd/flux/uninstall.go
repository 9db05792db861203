package main

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/internal/ui"
)

type uninstallOptions struct {
	keepNamespace, dryRun, silent bool
	format                        string
}

func newUninstall(a *app) *cobra.Command {
	o := &uninstallOptions{}
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
		RunE: func(cmd *cobra.Command, _ []string) error { return a.uninstall(cmd, o) },
	}
	cmd.Flags().BoolVar(&o.keepNamespace, "keep-namespace", false, "keep the namespace and what else is in it")
	cmd.Flags().BoolVar(&o.dryRun, "dry-run", false, "only show what would be removed")
	cmd.Flags().BoolVarP(&o.silent, "silent", "s", false, "do not ask")
	cmd.Flags().StringVarP(&o.format, "output", "o", "", "print the result for each object: json or yaml")
	completeReportFormat(cmd)
	return cmd
}

func (a *app) uninstall(cmd *cobra.Command, o *uninstallOptions) error {
	if err := checkReportFormat(o.format); err != nil {
		return err
	}
	client, namespace, err := a.place(cmd)
	if err != nil {
		return err
	}
	report := func(done []changeResult, err error) error {
		if o.format == "" {
			return err
		}
		return errors.Join(a.encode(o.format, done), err)
	}
	plan, err := a.planRemoval(cmd.Context(), client, namespace, o.keepNamespace)
	if err != nil {
		return err
	}
	if plan.empty() {
		a.ui.Success("Flux is not installed in namespace %q: there is nothing to remove", namespace)
		return report([]changeResult{}, a.hintInstalled(cmd.Context(), client, namespace))
	}
	if err := plan.allowed(); err != nil {
		return err
	}
	if o.dryRun {
		a.rehearse(plan)
		return report(plan.results(), nil)
	}
	if !o.silent {
		if err := a.confirmRemoval(cmd.Context(), plan); err != nil {
			return err
		}
	}
	// The time that an answer takes is not the operation's.
	ctx, cancel := a.bounded(cmd.Context())
	defer cancel()
	if err := client.Allowed(ctx, plan.permissions()); err != nil {
		return err
	}
	r := &removal{app: a, client: client, plan: plan, done: []changeResult{}}
	if err := r.run(ctx); err != nil {
		return report(r.done, err)
	}
	a.ui.Success("uninstall finished")
	return report(r.done, nil)
}

// hintInstalled tells where Flux is, if it is in another namespace.
func (a *app) hintInstalled(ctx context.Context, client *kube.Client, namespace string) error {
	ctx, cancel := a.bounded(ctx)
	defer cancel()
	crd, err := find(ctx, client, crdResource(), definition)
	if hint := elsewhere(crd, namespace); hint != "" {
		a.ui.Line("  %s", hint)
	}
	return err
}

func (a *app) planRemoval(ctx context.Context, client *kube.Client, namespace string, keepNamespace bool) (*removalPlan, error) {
	ctx, cancel := a.bounded(ctx)
	defer cancel()
	return newRemovalPlan(ctx, client, namespace, keepNamespace)
}

// confirmRemoval shows what will be removed and asks.
func (a *app) confirmRemoval(ctx context.Context, plan *removalPlan) error {
	a.ui.Action("this will be removed from the cluster; what Flux has deployed stays")
	for _, t := range slices.Concat(plan.components, plan.objects, plan.crds) {
		a.ui.Line("  %s", t)
	}
	if plan.removesNamespace() {
		a.ui.Line("  Namespace/%s, with everything in it", plan.namespace)
	}
	a.warnOfForeign(plan)
	yes, err := a.confirm(ctx, "Remove all of this?")
	if errors.Is(err, ui.ErrNoTerminal) {
		return hinted("remove it without a question: --silent; nothing was removed", "there is no terminal to ask on whether to remove Flux")
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
func (a *app) rehearse(plan *removalPlan) {
	a.ui.Action("deleting components in %s namespace", plan.namespace)
	for _, t := range plan.components {
		a.ui.Success("%s deleted (dry run)", t)
	}
	a.ui.Action("deleting toolkit.fluxcd.io finalizers in all namespaces")
	for _, t := range plan.objects {
		if t.held() {
			a.ui.Success("%s finalizers deleted (dry run)", t)
		} else {
			a.ui.Success("%s deleted with its definition (dry run)", t)
		}
	}
	a.ui.Action("deleting toolkit.fluxcd.io custom resource definitions")
	for _, t := range plan.crds {
		a.ui.Success("%s deleted (dry run)", t)
	}
	if plan.removesNamespace() {
		a.ui.Success("Namespace/%s deleted (dry run)", plan.namespace)
	}
	a.warnOfForeign(plan)
	a.ui.Success("uninstall finished")
}

// warnOfForeign names the objects that others hold: they do not go before
// those others let go.
func (a *app) warnOfForeign(plan *removalPlan) {
	for _, t := range plan.objects {
		if foreign := t.foreign(); len(foreign) > 0 {
			a.ui.Warning("%s is held by finalizers of others, who have to remove them: %s", t, strings.Join(foreign, ", "))
		}
	}
}
