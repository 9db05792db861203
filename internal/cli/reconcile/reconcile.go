// Package reconcile has the command reconcile.
package reconcile

import (
	"context"
	"errors"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fluxkit/flux/internal/cli/app"
	"github.com/fluxkit/flux/internal/cli/kinds"
	"github.com/fluxkit/flux/internal/cli/objref"
	"github.com/fluxkit/flux/internal/cli/reconciler"
	"github.com/fluxkit/flux/internal/cli/report"
	"github.com/fluxkit/flux/pkg/controllers"
)

// NewCommand returns the command reconcile.
func NewCommand(a *app.App) *cobra.Command {
	o := &reconciler.Options{}
	cmd := kinds.NewCommand(a, kinds.Verb{
		Name: "reconcile", Applies: controllers.Reconcile,
		Short: "Reconcile resources and wait for the result",
		Of:    "Reconcile %s objects and wait for the result",
		Example: `  # Reconcile one and wait until it is done
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
		Examples: `  # Reconcile a source and then what uses it
  flux reconcile source/git/my-app ks/my-app

  # Reconcile everything that is not ready: sources first, then by dependency
  flux reconcile all --failed -A`,
		Flags: func(fs *pflag.FlagSet) {
			o.Targets.Add(fs, "reconcile")
			fs.BoolVar(&o.Failed, "failed", false, "reconcile the objects of the namespace that are not ready")
			fs.BoolVar(&o.Once, "once", false, "reconcile a suspended object, too, and suspend it again")
			fs.BoolVar(&o.Wait, "wait", true, "wait for the outcome")
			report.AddFormat(fs, &o.Format)
		},
		KindFlags: func(k controllers.Kind, fs *pflag.FlagSet) { addKindFlags(o, k, fs) },
		Run:       func(cmd *cobra.Command, s kinds.Selection) error { return run(a, cmd, o, s) },
	})
	report.CompleteFormat(cmd)
	return cmd
}

func addKindFlags(o *reconciler.Options, k controllers.Kind, fs *pflag.FlagSet) {
	if k.Kind == "HelmRelease" {
		fs.BoolVar(&o.Force, "force", false, "install or upgrade the release even where nothing has changed")
		fs.BoolVar(&o.Reset, "reset", false, "forget earlier failures, so that an exhausted release is tried again")
	}
	switch {
	case k.HasUpstream():
		fs.BoolVar(&o.WithSource, "with-source", false, "reconcile what the object takes its content from first, up to the repository")
	case k.Kind == "GitRepository":
		fs.BoolVar(&o.WithSource, "with-source", false, "accepted for compatibility: a GitRepository has no source")
	}
}

func check(o *reconciler.Options) error {
	if err := report.CheckFormat(o.Format); err != nil {
		return err
	}
	if o.Once && !o.Wait {
		return errors.New("--once has to wait until it can suspend the object again: leave out --wait=false")
	}
	return nil
}

func run(a *app.App, cmd *cobra.Command, o *reconciler.Options, s kinds.Selection) error {
	if err := check(o); err != nil {
		return err
	}
	targets := o.Targets
	if o.Failed {
		if len(s.Objects) > 0 {
			return errors.New("give names or --failed, not both")
		}
		targets.All = targets.Labels == ""
	}
	if err := targets.With(s).Check(cmd, s); err != nil {
		return err
	}
	client, err := a.Client()
	if err != nil {
		return err
	}
	ctx, cancel := a.WithTimeout(cmd.Context())
	defer cancel()
	c, err := kinds.Targets(ctx, a, cmd, targets, s)
	if err != nil {
		return err
	}
	c.Targets = reconcilable(a, c, o)
	r := reconciler.New(cmd.Context(), a, client, *o)
	failed := r.Run(ctx, c)
	if cmd.Context().Err() != nil {
		return context.Cause(cmd.Context())
	}
	return errors.Join(failed, c.Incomplete, report.PrintOutcomes(a, o.Format, r.Outcomes()))
}

// reconcilable leaves out of a selection what is suspended, which nobody has
// asked for by name, and with --failed what is ready.
func reconcilable(a *app.App, c kinds.Chosen, o *reconciler.Options) []objref.Target {
	if !c.Listed {
		return c.Targets
	}
	left := slices.DeleteFunc(c.Targets, func(t objref.Target) bool {
		if o.Failed && t.Kind.Ready(t.Object).Status == "True" {
			return true
		}
		if t.Kind.Suspension.Is(t.Object) && !o.Once {
			a.UI.Warning("%s is suspended and left alone%s", t, report.SuspendNote(t.Object))
			return true
		}
		return false
	})
	if len(left) == 0 && o.Failed && c.Incomplete == nil {
		a.UI.Success("no %s has failed", c.What.One())
	}
	return left
}
