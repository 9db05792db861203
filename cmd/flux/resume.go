package main

import (
	"context"
	"errors"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fluxkit/flux/pkg/controllers"
)

type resumeOptions struct {
	targets targetOptions
	wait    bool
	format  string
}

func newResume(a *app) *cobra.Command {
	o := &resumeOptions{}
	cmd := a.multiply(verb{
		name: "resume", applies: controllers.Resume,
		short: "Resume suspended resources and wait until they are reconciled",
		of:    "Resume suspended %s objects and wait until they are reconciled",
		example: `  # Resume one and wait until it is reconciled
  flux resume %[1]s my-app

  # Resume all of a namespace
  flux resume %[1]s --all -n apps

  # Resume those of a team everywhere, without waiting
  flux resume %[1]s -l team=blue -A --wait=false

  # Print the result for each object
  flux resume %[1]s --all -o json | jq -r '.[] | select(.error) | .name'`,
		examples: `  # Resume objects of several kinds
  flux resume ks/my-app hr/my-app

  # Resume everything that is suspended in the cluster
  flux resume all -A`,
		flags: func(fs *pflag.FlagSet) {
			o.targets.add(fs, "resume")
			fs.BoolVar(&o.wait, "wait", true, "wait until each object is reconciled")
			addResultFormat(fs, &o.format)
		},
		run: func(cmd *cobra.Command, s selection) error { return a.resume(cmd, o, s) },
	})
	completeResultFormat(cmd)
	return cmd
}

func (a *app) resume(cmd *cobra.Command, o *resumeOptions, s selection) error {
	if err := checkResultFormat(o.format); err != nil {
		return err
	}
	if err := o.targets.on(s).check(cmd, s); err != nil {
		return err
	}
	client, err := a.cluster()
	if err != nil {
		return err
	}
	ctx, cancel := a.bounded(cmd.Context())
	defer cancel()
	c, err := a.targets(ctx, cmd, o.targets, s)
	if err != nil {
		return err
	}
	if c.listed {
		c.targets = slices.DeleteFunc(c.targets, func(t target) bool { return !t.kind.Suspension.Is(t.object) })
		if len(c.targets) == 0 && c.incomplete == nil {
			a.ui.Success("no %s is suspended", s.suspendable())
		}
	}
	r := a.newReconciler(cmd.Context(), client, reconcileOptions{wait: o.wait})
	r.resuming = true
	failed := r.run(ctx, c)
	if cmd.Context().Err() != nil {
		return context.Cause(cmd.Context())
	}
	return errors.Join(failed, c.incomplete, a.printResumed(o.format, r))
}

// suspendable is how messages call what could have been suspended.
func (s selection) suspendable() string {
	if s.several() {
		return "object"
	}
	return s.kinds[0].Noun()
}

// printResumed writes what has become of each object, and whether it was resumed.
func (a *app) printResumed(format string, r *reconciler) error {
	outcomes := r.outcomes()
	var resumed []target
	for i, n := range r.order {
		outcomes[i].Result = resultFailed
		if n.last != nil && !n.kind.Suspension.Is(n.last) {
			outcomes[i].Result = resultResumed
			resumed = append(resumed, n.target)
		}
	}
	if format == "name" {
		return a.printNames(resumed)
	}
	return a.printReport(format, outcomes)
}

// resumption is the patch that ends a suspension and forgets why it was.
func resumption(k controllers.Kind) map[string]any {
	change := k.Suspension.Change(false)
	annotate(change, map[string]any{controllers.SuspendReasonAnnotation: nil, controllers.SuspendedByAnnotation: nil})
	return change
}
