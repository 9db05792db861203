// Package reconcile implements the reconcile command.
package reconcile

import (
	"context"
	"errors"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/kinds"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/report"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/requests"
	"github.com/fluxkit/flux/internal/kube/objref"
	"github.com/fluxkit/flux/pkg/controllers"
)

type options struct {
	requests.Options
	failed bool
}

// NewCommand returns the reconcile command.
func NewCommand(a *app.App) *cobra.Command {
	o := &options{}
	return kinds.NewCommand(a, kinds.Verb{
		Name: "reconcile", Applies: controllers.Reconcile,
		Short: "Reconcile resources and wait for the result",
		Of:    "Reconcile %s objects and wait for the result",
		OfKind: []kinds.Example{
			{Text: `  # Reconcile an object and wait for the result
  flux reconcile %[1]s %[2]s`},
			{For: controllers.Kind.HasUpstream, Text: `  # Reconcile its upstream objects first, such as its source
  flux reconcile %[1]s %[2]s --with-source`},
			{For: func(k controllers.Kind) bool { return k.Release }, Text: `  # Upgrade even if nothing has changed, or retry after all retries are exhausted
  flux reconcile %[1]s %[2]s --force
  flux reconcile %[1]s %[2]s --reset`},
			{Text: `  # Reconcile several objects, all in a namespace, or all that are not ready
  flux reconcile %[1]s %[2]s %[3]s
  flux reconcile %[1]s --all -n apps
  flux reconcile %[1]s --failed -A`},
			{Text: `  # Reconcile a suspended object and suspend it again
  flux reconcile %[1]s %[2]s --once`},
			{Text: `  # Increase the timeout, or do not wait
  flux reconcile %[1]s %[2]s --timeout 10m
  flux reconcile %[1]s %[2]s --wait=false`},
			{Text: `  # Print the outcomes as JSON
  flux reconcile %[1]s --all -o json`},
		},
		Examples: `  # Reconcile a source and then a Kustomization that uses it
  flux reconcile source/git/my-app ks/my-app

  # Reconcile all objects that are not ready, sources and dependencies first
  flux reconcile all --failed -A`,
		Flags: func(fs *pflag.FlagSet) {
			fs.BoolVar(&o.failed, "failed", false, "reconcile the objects of the namespace that are not ready")
			fs.BoolVar(&o.Once, "once", false, "also reconcile suspended objects, and suspend them again")
			fs.BoolVar(&o.Wait, "wait", true, "wait for the result")
		},
		KindFlags: func(k controllers.Kind, fs *pflag.FlagSet) { addKindFlags(o, k, fs) },
		Action: &kinds.Action{
			Selects: "reconcile", Output: "also print the outcome for each object", Formats: []string{"json", "yaml"},
			Check: o.check, Do: o.reconcile,
		},
	})
}

func addKindFlags(o *options, k controllers.Kind, fs *pflag.FlagSet) {
	if k.Release {
		fs.BoolVar(&o.Force, "force", false, "install or upgrade the release even if nothing has changed")
		fs.BoolVar(&o.Reset, "reset", false, "reset the failure counts, to retry a release whose retries are exhausted")
	}
	switch {
	case k.HasUpstream():
		fs.BoolVar(&o.WithSource, "with-source", false, "reconcile the upstream sources first, up to the repository")
	case k.Family == "source" && k.Word == "git":
		fs.BoolVar(&o.WithSource, "with-source", false, "accepted for compatibility: a GitRepository has no source")
	}
}

func (o *options) check(act *kinds.Act) error {
	switch {
	case o.Once && !o.Wait:
		return errors.New("--once and --wait=false are mutually exclusive: the object is suspended again after the result")
	case o.failed && len(act.Selection.Objects) > 0:
		return errors.New("names and --failed are mutually exclusive")
	case o.failed:
		act.Options.All = act.Options.Labels == ""
	}
	return nil
}

func (o *options) reconcile(ctx context.Context, act *kinds.Act) error {
	act.Targets = o.reconcilable(act)
	return requests.Run(ctx, act, o.Options)
}

// reconcilable returns the targets without suspended objects and, with --failed, without ready
// ones. Named objects are always included.
func (o *options) reconcilable(act *kinds.Act) []objref.Target {
	if !act.Listed {
		return act.Targets
	}
	left := slices.DeleteFunc(act.Targets, func(t objref.Target) bool {
		if o.failed && t.Kind.Ready(t.Object).Status == "True" {
			return true
		}
		if t.Kind.Suspension.Is(t.Object) && !o.Once {
			act.App.UI.Warning("%s is suspended and is not reconciled%s", t, report.SuspendNote(t.Object))
			return true
		}
		return false
	})
	if len(left) == 0 && o.failed && act.Incomplete == nil {
		act.App.UI.Success("no %s has failed", act.Selection.One())
	}
	return left
}
