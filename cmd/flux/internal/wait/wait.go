// Package wait implements the wait command.
package wait

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/clierr"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/command"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/complete"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/kinds"
	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/reconcile"
)

type options struct {
	state    string
	revision string
	children bool
}

// NewCommand returns the wait command.
func NewCommand(a *app.App) *cobra.Command {
	o := &options{}
	cmd := kinds.NewCommand(a, kinds.Verb{
		Name: "wait", Applies: controllers.Get,
		Short: "Wait until resources are ready, suspended or deleted",
		Of:    "Wait until %s objects are ready, suspended or deleted",
		OfKind: []kinds.Example{
			{For: controllers.Kind.HasConditions, Text: `  # Wait at most ten minutes until an object is ready
  flux wait %[1]s %[2]s --timeout 10m`},
			{For: hasRevision, Text: `  # Wait until it is ready at a revision
  flux wait %[1]s %[2]s --revision %[4]s`},
			{For: controllers.Kind.Applies, Text: `  # Also wait for the Kustomizations and HelmReleases that it applies
  flux wait %[1]s %[2]s --children`},
			{For: controllers.Kind.HasConditions, Text: `  # Wait for all objects in a namespace, or in the cluster
  flux wait %[1]s --all -n apps
  flux wait %[1]s --all -A`},
			{Text: `  # Wait until an object is deleted
  flux wait %[1]s %[2]s --for deleted`},
			{For: kinds.Unless(controllers.Kind.HasConditions), Text: `  # Wait until all objects in a namespace are deleted
  flux wait %[1]s --all -n apps --for deleted`},
			{Text: `  # Print the outcome as JSON
  flux wait %[1]s %[2]s -o json`},
		},
		Flags: func(fs *pflag.FlagSet) {
			fs.StringVar(&o.state, "for", reconcile.Ready, "state to wait for: ready, suspended or deleted")
		},
		KindFlags: o.addOfKind,
		Examples: `  # Wait until objects of several kinds are ready
  flux wait source/git/my-app ks/my-app --timeout 10m

  # Wait until everything in the cluster is ready
  flux wait all -A`,
		Action: &kinds.Action{
			Selects: "wait for", Output: "also print the outcome for each object", Formats: []string{"json", "yaml"},
			Check: o.check, Do: o.wait,
		},
	})
	complete.Flag(cmd, "for", cobra.FixedCompletions([]string{reconcile.Ready, reconcile.Suspended, reconcile.Deleted}, cobra.ShellCompDirectiveNoFileComp))
	cmd.Annotations = command.Exits{
		clierr.ExitSuccess: "all objects have reached the state",
		clierr.ExitFailed: "the timeout is exceeded, or an object cannot reach the state because it is stalled (not retried until something changes), " +
			"suspended, or does not exist",
	}.Annotations()
	cmd.Long = `Wait until objects are ready, suspended or deleted. The state of each object is
printed when it changes, on a terminal in one line with the elapsed time.

Failures:
  A failure does not end the wait if another attempt will follow, because the
  controller retries, or because a new source revision, a reconciliation request
  or a change of the owner has not been attempted yet. With --revision, failures
  of other revisions are ignored.

` + kinds.Help
	return cmd
}

// hasRevision reports whether the kind has an example revision.
func hasRevision(k controllers.Kind) bool {
	_, ok := reconcile.RevisionPath(k)
	return ok && k.Examples.Revision != ""
}

func (o *options) addOfKind(k controllers.Kind, fs *pflag.FlagSet) {
	if _, ok := reconcile.RevisionPath(k); ok {
		fs.StringVar(&o.revision, "revision", "", "revision to wait for, e.g. main@sha1:6f9a1b2c or a commit")
	}
	if k.Applies() {
		fs.BoolVar(&o.children, "children", false, "also wait for the Kustomizations and HelmReleases that it applies, recursively")
	}
}

func (o *options) check(act *kinds.Act) error {
	act.MayBeEmpty = o.state == reconcile.Deleted
	if act.Selection.Every && o.state == reconcile.Suspended {
		act.Selection.Kinds = slices.DeleteFunc(act.Selection.Kinds, func(k controllers.Kind) bool { return !k.Suspension.Possible() })
	}
	switch {
	case !slices.Contains([]string{reconcile.Ready, reconcile.Suspended, reconcile.Deleted}, o.state):
		near := hint.Nearest{Word: o.state}
		for _, state := range []string{reconcile.Ready, reconcile.Suspended, reconcile.Deleted} {
			near.Try("--for="+state, []string{state})
		}
		err := fmt.Errorf("invalid --for %q: must be ready, suspended or deleted", o.state)
		if state := near.Best(); state != "" {
			return hint.Errorf("did you mean "+state+"?", "%w", err)
		}
		return err
	case o.state != reconcile.Ready && (o.revision != "" || o.children):
		return errors.New("--revision and --children require --for ready")
	}
	for _, k := range act.Selection.Kinds {
		_, ok := reconcile.RevisionPath(k)
		switch {
		case o.revision != "" && !ok:
			return fmt.Errorf("--revision does not apply to %s", k.Kind)
		case o.state == reconcile.Suspended && !k.Suspension.Possible():
			return fmt.Errorf("%s objects cannot be suspended", k.Kind)
		}
	}
	return nil
}

func (o *options) wait(ctx context.Context, act *kinds.Act) error {
	if err := listNamed(ctx, act); err != nil {
		return err
	}
	w := &waiter{act: act, options: o, failures: map[string]error{}}
	err := w.run(ctx)
	act.Outcomes(w.outcomes(), nil)
	return err
}

// listNamed reads many named objects of a kind and namespace with one list, so that a single watch
// starting at the version of the list covers them. Objects that are not in the list are read by
// name.
func listNamed(ctx context.Context, act *kinds.Act) error {
	if act.Listed {
		return nil
	}
	named := map[kinds.KindNamespace][]int{}
	for i, t := range act.Targets {
		p := kinds.KindNamespace{Kind: t.Kind.CRD(), Namespace: t.Namespace}
		named[p] = append(named[p], i)
	}
	for at, indexes := range named {
		if len(indexes) < reconcile.ShareFrom {
			continue
		}
		l := kinds.ListTargets(ctx, act.Client, act.Targets[indexes[0]].Kind, kube.Selection{Namespace: at.Namespace})
		if l.Err != nil {
			return l.Err
		}
		act.Lists = append(act.Lists, l)
		found := map[string]controllers.Object{}
		for _, t := range l.Targets {
			found[t.Name] = t.Object
		}
		for _, i := range indexes {
			act.Targets[i].Object = found[act.Targets[i].Name]
		}
	}
	return nil
}
