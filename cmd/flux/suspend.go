package main

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/controllers"
)

func newSuspend(a *app) *cobra.Command {
	o := &targetOptions{}
	return a.multiply(verb{
		name: "suspend", applies: controllers.Suspend,
		short: "Suspend objects, so that their controllers leave them alone",
		of:    "Suspend %s objects",
		example: `  # Suspend one, or several
  flux suspend %[1]s my-app
  flux suspend %[1]s my-app my-api

  # Suspend all of a namespace
  flux suspend %[1]s --all -n apps`,
		flags: func(fs *pflag.FlagSet) { o.add(fs, "suspend") },
		run: func(cmd *cobra.Command, k controllers.Kind, names []string) error {
			return a.suspend(cmd, o, k, names)
		},
	})
}

func (a *app) suspend(cmd *cobra.Command, o *targetOptions, k controllers.Kind, names []string) error {
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
	return a.each(targets, func(t target) error {
		a.ui.Action("suspending %s %s in %s namespace", k.Noun(), t.name, t.namespace)
		err := client.With(ctx, t.kind, func(r kube.Resource) error {
			_, err := client.Merge(ctx, r, t.namespace, t.name, k.Suspension.Change(true))
			return err
		})
		if err != nil {
			return missing(err, t)
		}
		a.ui.Success("%s suspended", k.Noun())
		return nil
	})
}
