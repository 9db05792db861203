// Package resume implements the resume command.
package resume

import (
	"context"
	"errors"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/clierr"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/kinds"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/requests"
	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/internal/kube/objref"
	"github.com/fluxkit/flux/pkg/controllers"
)

// NewCommand returns the resume command.
func NewCommand(a *app.App) *cobra.Command {
	wait, expired := true, false
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
  flux resume all -A

  # Resume the objects whose suspension has expired
  flux resume --expired -A --wait=false`,
		Flags: func(fs *pflag.FlagSet) {
			fs.BoolVar(&wait, "wait", true, "wait until each object is reconciled")
			fs.BoolVar(&expired, "expired", false, "resume only objects whose suspension has expired, of the specified kinds or all kinds")
		},
		Action: &kinds.Action{
			Selects: "resume", Output: "print the result for each object", Formats: []string{"json", "yaml", "name"},
			Check: func(act *kinds.Act) error {
				if expired {
					return selectExpired(act)
				}
				return nil
			},
			Do: func(ctx context.Context, act *kinds.Act) error {
				if expired {
					return resumeExpired(ctx, act, wait)
				}
				return resume(ctx, act, wait)
			},
		},
	})
}

// reconciled reports whether a resumed object of the kind is reconciled.
func reconciled(k controllers.Kind) bool { return k.Has(controllers.Reconcile) }

func resume(ctx context.Context, act *kinds.Act, wait bool) error {
	if act.Listed {
		act.Targets = slices.DeleteFunc(act.Targets, func(t objref.Target) bool { return !t.Kind.Suspension.Is(t.Object) })
		if len(act.Targets) == 0 && act.Incomplete == nil {
			act.App.UI.Success("no %s is suspended", suspendable(act.Selection))
		}
	}
	return requests.Run(ctx, act, requests.Options{Resume: true, Wait: wait})
}

// selectExpired selects all objects in the scope of --expired. Without a kind, these include the kinds of
// flux-operator, whose suspensions would otherwise never expire.
func selectExpired(act *kinds.Act) error {
	if len(act.Selection.Objects) > 0 {
		return hint.Errorf("specify only kinds, such as ks,hr, or none", "names and --expired are mutually exclusive")
	}
	if act.Selection.Word == kinds.EveryWord {
		act.Selection.Kinds = slices.DeleteFunc(slices.Clone(controllers.Known), func(k controllers.Kind) bool { return !k.Has(controllers.Resume) })
	}
	act.Options.All, act.MayBeEmpty = true, true
	return nil
}

// resumeExpired resumes the listed objects whose suspension has expired. It fails for objects that were
// changed since, because another user may have extended the suspension.
func resumeExpired(ctx context.Context, act *kinds.Act, wait bool) error {
	now := act.App.Now()
	var invalid error
	act.Targets = slices.DeleteFunc(act.Targets, func(t objref.Target) bool {
		over, err := t.Kind.Suspension.Expired(t.Object, now)
		if err != nil {
			act.App.UI.Failure("%s: %s", t, err)
			invalid = clierr.ErrReported
		}
		return !over
	})
	if len(act.Targets) == 0 && act.Incomplete == nil && invalid == nil {
		act.App.UI.Success("no suspension has expired")
	}
	return errors.Join(requests.Run(ctx, act, requests.Options{Resume: true, Unchanged: true, Wait: wait}), invalid)
}

// suspendable returns the noun for a selected object in messages.
func suspendable(s kinds.Selection) string {
	if s.Several() {
		return "object"
	}
	return s.Kinds[0].Noun()
}
