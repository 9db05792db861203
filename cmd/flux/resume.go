package main

import (
	"context"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fluxkit/flux/pkg/controllers"
)

func newResume(a *app) *cobra.Command {
	o := &targetOptions{}
	var wait bool
	return a.multiply(verb{
		name: "resume", applies: controllers.Resume,
		short: "Resume suspended objects and wait until they are reconciled",
		of:    "Resume suspended %s objects",
		example: `  # Resume one and wait until it is reconciled
  flux resume %[1]s my-app

  # Resume all of a namespace and wait for each
  flux resume %[1]s --all -n apps --wait

  # Resume those of a team everywhere
  flux resume %[1]s -l team=blue -A`,
		flags: func(fs *pflag.FlagSet) {
			o.add(fs, "resume")
			fs.BoolVar(&wait, "wait", false, "wait for every object, also where they are not named")
		},
		run: func(cmd *cobra.Command, k controllers.Kind, names []string) error {
			return a.resume(cmd, o, wait, k, names)
		},
	})
}

func (a *app) resume(cmd *cobra.Command, o *targetOptions, wait bool, k controllers.Kind, names []string) error {
	client, err := a.cluster()
	if err != nil {
		return err
	}
	ctx, cancel := a.bounded(cmd.Context())
	defer cancel()
	c, err := a.choose(ctx, cmd, o, k, names)
	if err != nil {
		return err
	}
	if c.listed && len(c.targets) == 0 {
		return noneFound(k, c.namespace)
	}
	if c.listed {
		c.targets = slices.DeleteFunc(c.targets, func(t target) bool { return !k.Suspension.Is(t.object) })
		if len(c.targets) == 0 {
			a.ui.Success("no %s is suspended", k.Noun())
			return nil
		}
	}
	// Many objects are waited for only when asked to; a named one always is.
	wait = k.Has(controllers.Reconcile) && (wait || len(names) > 0)
	r := a.newReconciler(cmd.Context(), client, reconcileOptions{wait: wait})
	r.resuming = true
	failed := r.run(ctx, c)
	if cmd.Context().Err() != nil {
		return context.Cause(cmd.Context())
	}
	return failed
}

// resumption is the patch that ends a suspension and forgets why it was.
func resumption(k controllers.Kind) map[string]any {
	change := k.Suspension.Change(false)
	annotate(change, map[string]any{controllers.SuspendReasonAnnotation: nil, controllers.SuspendedByAnnotation: nil})
	return change
}
