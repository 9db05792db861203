package main

import (
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
  flux resume %[1]s --all -n apps --wait`,
		flags: func(fs *pflag.FlagSet) {
			o.add(fs, "resume")
			fs.BoolVar(&wait, "wait", false, "wait for every object, also where several are resumed")
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
	targets, err := a.targets(ctx, cmd, o, k, names)
	if err != nil {
		return err
	}
	// Many objects are waited for only when asked to; a named one always is.
	wait = wait || len(names) > 0
	r := a.newReconciler(client, reconcileOptions{})
	return a.each(targets, func(t target) error {
		a.ui.Action("resuming %s %s in %s namespace", k.Noun(), t.name, t.namespace)
		resumed, res, err := r.ask(ctx, t, k.Suspension.Change(false), reconcileOptions{})
		if err != nil {
			return err
		}
		a.ui.Success("%s resumed", k.Noun())
		if !wait || !k.Has(controllers.Reconcile) {
			return nil
		}
		return r.await(ctx, t, res, resumed)
	})
}
