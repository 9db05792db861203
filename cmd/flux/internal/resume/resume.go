// Package resume implements the resume command.
package resume

import (
	"context"
	"errors"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/command"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/kinds"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/reconciler"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/report"
	"github.com/fluxkit/flux/internal/kube/objref"
	"github.com/fluxkit/flux/pkg/controllers"
)

type options struct {
	targets kinds.TargetOptions
	wait    bool
	format  string
}

// NewCommand returns the resume command.
func NewCommand(a *app.App) *cobra.Command {
	o := &options{}
	cmd := kinds.NewCommand(a, kinds.Verb{
		Name: "resume", Applies: controllers.Resume,
		Short: "Resume suspended resources and wait until they are reconciled",
		Of:    "Resume suspended %s objects and wait until they are reconciled",
		OfKind: []kinds.Example{
			{For: reconciled, Text: `  # Resume an object and wait until it is reconciled
  flux resume %[1]s %[2]s`},
			{For: kinds.Unless(reconciled), Text: `  # Resume an object
  flux resume %[1]s %[2]s`},
			{Text: `  # Resume all objects in a namespace
  flux resume %[1]s --all -n apps`},
			{For: reconciled, Text: `  # Resume the objects with a label in all namespaces, without waiting
  flux resume %[1]s -l team=blue -A --wait=false`},
			{For: kinds.Unless(reconciled), Text: `  # Resume the objects with a label in all namespaces
  flux resume %[1]s -l team=blue -A`},
			{Text: `  # Print the result for each object
  flux resume %[1]s --all -o json | jq -r '.[] | select(.error) | .name'`},
		},
		Examples: `  # Resume objects of several kinds
  flux resume ks/my-app hr/my-app

  # Resume all suspended objects in the cluster
  flux resume all -A`,
		Flags: func(fs *pflag.FlagSet) {
			o.targets.Add(fs, "resume")
			fs.BoolVar(&o.wait, "wait", true, "wait until each object is reconciled")
			command.AddOutput(fs, &o.format, "print the result for each object", "json", "yaml", "name")
		},
		Run: func(cmd *cobra.Command, s kinds.Selection) error { return run(a, cmd, o, s) },
	})
	return cmd
}

// reconciled reports whether a resumed object of the kind is reconciled.
func reconciled(k controllers.Kind) bool { return k.Has(controllers.Reconcile) }

func run(a *app.App, cmd *cobra.Command, o *options, s kinds.Selection) error {
	if err := o.targets.With(s).Check(cmd, s); err != nil {
		return err
	}
	client, err := a.Client()
	if err != nil {
		return err
	}
	ctx, cancel := a.WithTimeout(cmd.Context())
	defer cancel()
	c, err := kinds.Targets(ctx, a, cmd, o.targets, s)
	if err != nil {
		return err
	}
	if c.Listed {
		c.Targets = slices.DeleteFunc(c.Targets, func(t objref.Target) bool { return !t.Kind.Suspension.Is(t.Object) })
		if len(c.Targets) == 0 && c.Incomplete == nil {
			a.UI.Success("no %s is suspended", suspendable(s))
		}
	}
	r := reconciler.New(cmd.Context(), reconciler.NewEnv(a, client, c.Share), reconciler.Options{Resume: true, Wait: o.wait})
	failed := r.Run(ctx, c.Targets)
	if cmd.Context().Err() != nil {
		return context.Cause(cmd.Context())
	}
	return errors.Join(failed, c.Incomplete, printResumed(a, o.format, r))
}

// suspendable returns the noun for a selected object in messages.
func suspendable(s kinds.Selection) string {
	if s.Several() {
		return "object"
	}
	return s.Kinds[0].Noun()
}

// printResumed prints the outcome of each object, and whether it was resumed.
func printResumed(a *app.App, format string, r *reconciler.Reconciler) error {
	outcomes := r.Outcomes()
	var resumed []objref.Target
	for i, result := range r.Results() {
		outcomes[i].Result = report.ResultFailed
		if result.Last != nil && !result.Target.Kind.Suspension.Is(result.Last) {
			outcomes[i].Result = report.ResultResumed
			resumed = append(resumed, result.Target)
		}
	}
	if format == "name" {
		return report.PrintNames(a, resumed)
	}
	return report.PrintOutcomes(a, format, outcomes)
}
