// Package resume implements the resume command.
package resume

import (
	"context"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/kinds"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/requests"
	"github.com/fluxkit/flux/internal/kube/objref"
	"github.com/fluxkit/flux/pkg/controllers"
)

// NewCommand returns the resume command.
func NewCommand(a *app.App) *cobra.Command {
	wait := true
	return kinds.NewCommand(a, kinds.Verb{
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
			fs.BoolVar(&wait, "wait", true, "wait until each object is reconciled")
		},
		Action: &kinds.Action{
			Selects: "resume", Output: "print the result for each object", Formats: []string{"json", "yaml", "name"},
			Do: func(ctx context.Context, act *kinds.Act) error { return resume(ctx, act, wait) },
		},
	})
}

// reconciled reports whether a resumed object of the kind is reconciled.
func reconciled(k controllers.Kind) bool { return k.Has(controllers.Reconcile) }

func resume(ctx context.Context, act *kinds.Act, wait bool) error {
	if act.Listed {
		act.Targets = slices.DeleteFunc(act.Targets, func(t objref.Target) bool { return !t.Kind.Suspension.Is(t.Object) })
		if len(act.Targets) == 0 && act.Incomplete == nil {
			act.App.UI.Success("no %s is suspended", suspendable(act.What))
		}
	}
	return requests.Run(ctx, act, requests.Options{Resume: true, Wait: wait})
}

// suspendable returns the noun for a selected object in messages.
func suspendable(s kinds.Selection) string {
	if s.Several() {
		return "object"
	}
	return s.Kinds[0].Noun()
}
