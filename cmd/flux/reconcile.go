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
		short: "Reconcile resources and wait for the result",
		of:    "Reconcile %s objects and wait for the result",
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
		examples: `  # Reconcile a source and then what uses it
  flux reconcile source/git/my-app ks/my-app

  # Reconcile everything that is not ready: sources first, then by dependency
  flux reconcile all --failed -A`,
		flags: func(fs *pflag.FlagSet) {
			o.targets.add(fs, "reconcile")
			fs.BoolVar(&o.failed, "failed", false, "reconcile the objects of the namespace that are not ready")
			fs.BoolVar(&o.once, "once", false, "reconcile a suspended object, too, and suspend it again")
			fs.BoolVar(&o.wait, "wait", true, "wait for the outcome")
			addReportFormat(fs, &o.format)
		},
		kindFlags: o.add,
		run:       func(cmd *cobra.Command, s selection) error { return a.reconcile(cmd, o, s) },
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
		fs.BoolVar(&o.withSource, "with-source", false, "accepted for compatibility: a GitRepository has no source")
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

func (a *app) reconcile(cmd *cobra.Command, o *reconcileOptions, s selection) error {
	if err := o.check(); err != nil {
		return err
	}
	targets := o.targets
	if o.failed {
		if len(s.objects) > 0 {
			return errors.New("give names or --failed, not both")
		}
		targets.all = targets.labels == ""
	}
	if err := targets.on(s).check(cmd, s); err != nil {
		return err
	}
	client, err := a.cluster()
	if err != nil {
		return err
	}
	ctx, cancel := a.bounded(cmd.Context())
	defer cancel()
	c, err := a.targets(ctx, cmd, targets, s)
	if err != nil {
		return err
	}
	c.targets = a.reconcilable(c, o)
	r := a.newReconciler(cmd.Context(), client, *o)
	failed := r.run(ctx, c)
	if cmd.Context().Err() != nil {
		return context.Cause(cmd.Context())
	}
	return errors.Join(failed, c.incomplete, a.printReport(o.format, r.outcomes()))
}

// reconcilable leaves out of a selection what is suspended, which nobody has
// asked for by name, and with --failed what is ready.
func (a *app) reconcilable(c chosen, o *reconcileOptions) []target {
	if !c.listed {
		return c.targets
	}
	left := slices.DeleteFunc(c.targets, func(t target) bool {
		if o.failed && t.kind.Ready(t.object).Status == "True" {
			return true
		}
		if t.kind.Suspension.Is(t.object) && !o.once {
			a.ui.Warning("%s is suspended and left alone%s", t, noted(t.object))
			return true
		}
		return false
	})
	if len(left) == 0 && o.failed && c.incomplete == nil {
		a.ui.Success("no %s has failed", c.what.one())
	}
	return left
}

// suspendedError says that a named object cannot be reconciled as it is.
func suspendedError(t target, o controllers.Object) error {
	return hinted(fmt.Sprintf("flux resume %[1]s %[2]s -n %[3]s, or once: flux reconcile %[1]s %[2]s -n %[3]s --once", t.kind.Noun(), t.name, t.namespace),
		"%s is suspended%s", t, noted(o))
}
