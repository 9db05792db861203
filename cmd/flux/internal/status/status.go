// Package status implements the status command.
package status

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/clierr"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/command"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/complete"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/report"
	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/internal/kube/objref"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diagnose"
	"github.com/fluxkit/flux/pkg/diagnose/observe"
	"github.com/fluxkit/flux/pkg/tree"
)

// NewCommand returns the status command.
func NewCommand(a *app.App) *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use:   "status [kind] name",
		Short: "Show a resource, its sources, inventory and events on one screen",
		Long: `Show a Flux resource on one screen: its readiness, the root cause and the fix if
it is not ready, its sources, the last and the next reconciliation, its
dependencies and dependents, its inventory and its last events.

A name alone means the Kustomization of that name or, if there is none, the
HelmRelease, or else a resource of any other kind of Flux.

Objects in the inventory that were changed outside Flux (drift), that another
resource applies as well or that have values encrypted by SOPS are not
reported: flux why checks them. What could not be checked is listed.`,
		Annotations: command.Exits{
			clierr.ExitSuccess:      "the resource is ready, nothing blocks new changes, and all objects in its inventory exist",
			clierr.ExitFailed:       "the resource is not ready, new changes are blocked, or an object in its inventory does not exist",
			clierr.ExitUndetermined: "undetermined: the resource does not exist, relevant objects could not be read, or the command line is invalid",
		}.Annotations(),
		Example: `  flux status my-app
  flux status kustomization my-app -n apps
  flux status hr/my-app -n apps

  # Show an image update automation with its policies and repositories
  flux status image update my-app

  # Print the applied revision
  flux status my-app -o json | jq -r '.object.revision'`,
		Args:              statusArgs,
		ValidArgsFunction: completeStatus(a),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.Interruptible(cmd, func() error { return run(a, cmd, format, args) })
		},
	}
	command.AddOutput(cmd.Flags(), &format, "output format", "json", "yaml")
	return cmd
}

func statusArgs(_ *cobra.Command, args []string) error {
	switch {
	case len(args) == 0:
		return hint.Errorf("flux status my-app", "a name is required")
	case len(args) > 3:
		return hint.Errorf("flux status kustomization my-app", "only one resource can be given")
	}
	return nil
}

// statusKinds returns the kinds that a bare name is searched in, the most
// common first.
func statusKinds() []controllers.Kind {
	kinds := objref.ApplicationKinds()
	for _, k := range controllers.Kinds {
		if !slices.ContainsFunc(kinds, func(first controllers.Kind) bool { return first.Kind == k.Kind }) {
			kinds = append(kinds, k)
		}
	}
	return kinds
}

// statusSubject parses NAME, KIND NAME or KIND/NAME. A bare name may match
// several kinds.
func statusSubject(cmd *cobra.Command, args []string) ([]controllers.Kind, objref.Ref, error) {
	if len(args) == 1 && args[0] != "" && !strings.Contains(args[0], "/") {
		return statusKinds(), objref.Ref{Name: args[0]}, nil
	}
	ref, err := objref.ParseCommandLine(cmd.CommandPath(), args)
	if err != nil {
		return nil, ref, err
	}
	k, err := ref.Kind()
	return []controllers.Kind{k}, ref, err
}

func completeStatus(a *app.App) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 || strings.Contains(toComplete, "/") {
			return complete.Object(a)(cmd, args, toComplete)
		}
		var all []string
		for _, k := range objref.ApplicationKinds() {
			names, _ := complete.Names(a, k)(cmd, nil, toComplete)
			all = append(all, names...)
		}
		return append(all, complete.KindWords(controllers.Kinds, toComplete)...), cobra.ShellCompDirectiveNoFileComp
	}
}

func run(a *app.App, cmd *cobra.Command, format string, args []string) error {
	kinds, ref, err := statusSubject(cmd, args)
	if err != nil {
		return err
	}
	client, namespace, err := a.Connect(cmd)
	if err != nil {
		return err
	}
	ctx, cancel := a.WithTimeout(cmd.Context())
	defer cancel()
	line := a.UI.Progress(a.Now, "reading %s", ref.Name)
	s, err := readSituation(ctx, report.Diagnoser(a, client), kinds, ref.NamespaceOr(namespace), ref.Name)
	line.Done()
	if interrupted := context.Cause(cmd.Context()); interrupted != nil {
		return interrupted // a report of what was read until then could name another root cause
	}
	if err != nil {
		return err
	}
	s.commits = report.UnappliedCommits(ctx, s.Result.Facts)
	if format != "" {
		err = a.Encode(format, statusReportOf(s))
	} else {
		err = printSituation(a, s)
	}
	return s.determined(err)
}

// situation has the data of the status screen.
type situation struct {
	diagnose.Surroundings
	outcome tree.Outcome
	timing  tree.Schedule
	tree    *tree.Node // nil if it could not be read
	commits report.Unapplied
	unknown []string // the parts that could not be read
}

// well reports whether the object is ready and nothing blocks its changes.
func (s situation) well() bool { return s.outcome.Status == "True" && len(s.Result.Causes) == 0 }

// determined returns the error that sets the exit code: 1 if the object is not
// well, 2 if a part could not be checked.
func (s situation) determined(err error) error {
	if err = answered(err, s.well()); err == nil && len(s.unknown) > 0 {
		return &clierr.ExitCodeError{Code: clierr.ExitUndetermined}
	}
	return err
}

// readSituation finds the object, the most common kinds first, and then reads
// everything else concurrently.
func readSituation(ctx context.Context, d diagnose.Diagnoser, kinds []controllers.Kind, namespace, name string) (situation, error) {
	var s situation
	k, o, err := likeliest(ctx, d, kinds, namespace, name)
	if err != nil {
		return s, err
	}
	var built *tree.Tree
	var noTree error
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() (err error) {
		s.Surroundings, err = d.Around(ctx, k, o)
		return err
	})
	if k.Inventory != nil {
		g.Go(func() error {
			root := k.ID(namespace, name)
			built, noTree = tree.Build(ctx, d.Client, root, tree.Options{Status: true, Root: o})
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return s, err
	}
	if built != nil {
		s.tree = built.Root
		s.Surroundings.AddInventory(d, s.tree)
	}
	s.unknown = append(s.unknown, s.Result.Unknown...)
	s.unknown = append(s.unknown, unseen(built, noTree, s.NoEvents)...)
	s.outcome = s.Link.Outcome()
	s.timing = s.Link.Schedule()
	return s, nil
}

// likeliest reads the object from the first kind that has one.
func likeliest(ctx context.Context, d diagnose.Diagnoser, kinds []controllers.Kind, namespace, name string) (controllers.Kind, controllers.Object, error) {
	first := min(len(kinds), len(objref.ApplicationKinds()))
	k, o, err := d.Find(ctx, kinds[:first], namespace, name)
	if apierrors.IsNotFound(err) && len(kinds) > first {
		k, o, err = d.Find(ctx, kinds[first:], namespace, name)
	}
	if apierrors.IsNotFound(err) {
		err = notFoundOf(kinds, namespace, name)
	}
	return k, o, err
}

func notFoundOf(kinds []controllers.Kind, namespace, name string) error {
	return &objref.NotFoundError{Target: objref.Target{Kind: kinds[0], Namespace: namespace, Name: name}, Others: kinds[1:]}
}

// unseen describes the parts of the tree and the events that could not be
// read.
func unseen(t *tree.Tree, noTree, noEvents error) []string {
	var all []string
	if noTree != nil {
		all = append(all, observe.Unread("the inventory", noTree))
	}
	if t != nil && noTree == nil {
		for _, gap := range t.Gaps {
			all = append(all, observe.Unread(gap.Resource, gap.Err))
		}
	}
	if noEvents != nil {
		all = append(all, observe.Unread("events", noEvents))
	}
	return all
}

// answered returns the error that sets the exit code of a command that printed
// its output.
func answered(err error, well bool) error {
	if err == nil && !well {
		return &clierr.ExitCodeError{Code: clierr.ExitFailed}
	}
	return err
}
