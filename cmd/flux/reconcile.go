package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fluxkit/flux/pkg/controllers"
)

// The annotations by which a reconciliation is asked for (fluxcd/pkg/apis/meta and the helm-controller's API).
const (
	requestAnnotation = "reconcile.fluxcd.io/requestedAt"
	forceAnnotation   = "reconcile.fluxcd.io/forceAt"
	resetAnnotation   = "reconcile.fluxcd.io/resetAt"
)

type reconcileOptions struct {
	targets                  targetOptions
	withSource, force, reset bool
	failed, once, wait       bool
	format                   string
}

func newReconcile(a *app) *cobra.Command {
	o := &reconcileOptions{}
	cmd := a.multiply(verb{
		name: "reconcile", applies: controllers.Reconcile,
		short: "Reconcile objects now and wait for the outcome",
		of:    "Reconcile %s objects now and wait for the outcome",
		example: `  # Reconcile one and wait until it is done
  flux reconcile %[1]s my-app

  # Reconcile several, all of a namespace, or what is not ready anywhere
  flux reconcile %[1]s my-app my-api
  flux reconcile %[1]s --all -n apps
  flux reconcile %[1]s --failed -A

  # Reconcile one that is suspended, and leave it suspended
  flux reconcile %[1]s my-app --once

  # Give it more time than the default five minutes, or do not wait
  flux reconcile %[1]s my-app --timeout 10m
  flux reconcile %[1]s my-app --wait=false

  # The outcome for a script
  flux reconcile %[1]s --all -o json`,
		flags: func(fs *pflag.FlagSet) {
			o.targets.add(fs, "reconcile")
			fs.BoolVar(&o.failed, "failed", false, "reconcile the objects of the namespace that are not ready")
			fs.BoolVar(&o.once, "once", false, "reconcile a suspended object, too, and suspend it again")
			fs.BoolVar(&o.wait, "wait", true, "wait for the outcome")
			addReportFormat(fs, &o.format)
		},
		kindFlags: o.add,
		run: func(cmd *cobra.Command, k controllers.Kind, names []string) error {
			return a.reconcile(cmd, o, k, names)
		},
	})
	completeReportFormat(cmd)
	return cmd
}

func (o *reconcileOptions) add(k controllers.Kind, fs *pflag.FlagSet) {
	if k.Kind == "HelmRelease" {
		fs.BoolVar(&o.force, "force", false, "install or upgrade the release even where nothing has changed")
		fs.BoolVar(&o.reset, "reset", false, "forget earlier failures, so that an exhausted release is tried again")
	}
	switch {
	case k.HasUpstream():
		fs.BoolVar(&o.withSource, "with-source", false, "reconcile what the object takes its content from first, up to the repository")
	case k.Kind == "GitRepository":
		fs.BoolVar(&o.withSource, "with-source", false, "accepted for uniformity: a GitRepository is a source itself")
	}
}

func (o *reconcileOptions) check() error {
	if err := checkReportFormat(o.format); err != nil {
		return err
	}
	if o.once && !o.wait {
		return errors.New("--once has to wait until it can suspend the object again: leave out --wait=false")
	}
	return nil
}

func (a *app) reconcile(cmd *cobra.Command, o *reconcileOptions, k controllers.Kind, names []string) error {
	if err := o.check(); err != nil {
		return err
	}
	client, err := a.cluster()
	if err != nil {
		return err
	}
	ctx, cancel := a.bounded(cmd.Context())
	defer cancel()
	targets := o.targets
	if o.failed {
		if len(names) > 0 {
			return errors.New("give names or --failed, not both")
		}
		targets.all = targets.labels == ""
	}
	c, err := a.choose(ctx, cmd, &targets, k, names)
	if err != nil {
		return err
	}
	if c.listed && len(c.targets) == 0 {
		return noneFound(k, c.namespace)
	}
	c.targets = a.reconcilable(c, k, o)
	r := a.newReconciler(cmd.Context(), client, *o)
	failed := r.run(ctx, c)
	if cmd.Context().Err() != nil {
		return context.Cause(cmd.Context())
	}
	return errors.Join(failed, a.printReport(o.format, r.outcomes()))
}

// reconcilable leaves out of a selection what is suspended, which nobody has
// asked for by name, and with --failed what is ready.
func (a *app) reconcilable(c chosen, k controllers.Kind, o *reconcileOptions) []target {
	if !c.listed {
		return c.targets
	}
	left := slices.DeleteFunc(c.targets, func(t target) bool {
		if o.failed && k.Ready(t.object).Status == "True" {
			return true
		}
		if k.Suspension.Is(t.object) && !o.once {
			a.ui.Warning("%s is suspended and left alone%s", t, noted(t.object))
			return true
		}
		return false
	})
	if len(left) == 0 && o.failed {
		a.ui.Success("no %s has failed", k.Kind)
	}
	return left
}

// suspendedError says that a named object cannot be reconciled as it is.
func suspendedError(t target, o controllers.Object) error {
	return hinted(fmt.Sprintf("flux resume %[1]s %[2]s -n %[3]s, or once: flux reconcile %[1]s %[2]s -n %[3]s --once", t.kind.Noun(), t.name, t.namespace),
		"%s is suspended%s", t, noted(o))
}
