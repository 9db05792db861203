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
	"github.com/fluxkit/flux/cmd/flux/internal/cli/kinds"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/report"
	"github.com/fluxkit/flux/internal/kube/objref"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diagnose"
	"github.com/fluxkit/flux/pkg/diagnose/observe"
	"github.com/fluxkit/flux/pkg/tree"
)

// NewCommand returns the status command.
func NewCommand(a *app.App) *cobra.Command {
	var format string
	several := &kinds.Several{}
	cmd := &cobra.Command{
		Use:   "status [kind] name ...",
		Short: "Show a resource, its sources, inventory and events on one screen",
		Long: `Show a Flux resource on one screen: its readiness, the root cause and the fix if
it is not ready, its sources, the last and the next reconciliation, its
dependencies and dependents, its inventory and its last events.

Selection:
  NAME alone selects the Kustomization of that name, else the HelmRelease, else
  a resource of any other Flux kind. Select several resources by KIND/NAME, by
  KIND,KIND NAME, by labels (-l), or by kind in all namespaces (-A).

Output:
  Checks that could not run are listed. Use "flux why" to find drift, objects
  that another resource also applies, and values encrypted with SOPS in the
  inventory: flux status does not report them.`,
		Annotations: command.Exits{
			clierr.ExitSuccess:      "the resource is ready, nothing blocks new changes, and all objects in its inventory exist",
			clierr.ExitFailed:       "the resource is not ready, new changes are blocked, or an object in its inventory does not exist",
			clierr.ExitUndetermined: "undetermined: the resource does not exist, relevant objects could not be read, or the command line is invalid",
		}.Annotations(),
		Example: `  # Show a resource
  flux status my-app
  flux status kustomization my-app -n apps
  flux status hr/my-app -n apps

  # Show several resources
  flux status ks/my-app hr/my-app
  flux status ks,hr -l team=blue
  flux status ks -A

  # Show an image update automation with its policies and repositories
  flux status image update my-app

  # Print the applied revision
  flux status my-app -o json | jq -r '.object.revision'`,
		ValidArgsFunction: completeStatus(a),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.Interruptible(cmd, func() error { return run(a, cmd, several, format, args) })
		},
	}
	several.Add(cmd.Flags(), "show")
	command.AddOutput(cmd.Flags(), &format, "output format", "json", "yaml")
	return cmd
}

// subject is a resource on the command line. A name alone may match several kinds.
type subject struct {
	kinds []controllers.Kind
	ref   objref.Ref
}

// statusKinds returns the kinds in which a name without a kind is searched, most common first.
func statusKinds() []controllers.Kind {
	kinds := objref.ApplicationKinds()
	for _, k := range controllers.Known {
		if !slices.ContainsFunc(kinds, func(first controllers.Kind) bool { return first.Kind == k.Kind }) {
			kinds = append(kinds, k)
		}
	}
	return kinds
}

// selected returns the resources that the arguments or the flags select.
func selected(ctx context.Context, a *app.App, cmd *cobra.Command, several *kinds.Several, args []string) ([]subject, error) {
	if !several.Lists() {
		return subjects(cmd, args)
	}
	targets, err := several.InKinds(ctx, a, cmd, args)
	var all []subject
	for _, t := range targets {
		all = append(all, subject{[]controllers.Kind{t.Kind}, objref.Ref{Namespace: t.Namespace, Name: t.Name}})
	}
	return all, err
}

// subjects parses NAME, KIND[,KIND] NAME… or KIND/NAME….
func subjects(cmd *cobra.Command, args []string) ([]subject, error) {
	if len(args) == 1 && args[0] != "" && !strings.Contains(args[0], "/") {
		return []subject{{statusKinds(), objref.Ref{Name: args[0]}}}, nil
	}
	lines, err := objref.CommandLines(cmd.CommandPath(), args, false)
	if err != nil {
		return nil, err
	}
	var all []subject
	for _, line := range lines {
		ref, err := objref.ParseCommandLine(cmd.CommandPath(), line)
		if err != nil {
			return nil, err
		}
		k, err := ref.Kind()
		if err != nil {
			return nil, err
		}
		all = append(all, subject{[]controllers.Kind{k}, ref})
	}
	return all, nil
}

func completeStatus(a *app.App) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 || strings.ContainsAny(toComplete, "/,") {
			return complete.Subjects(a)(cmd, args, toComplete)
		}
		var all []string
		for _, k := range objref.ApplicationKinds() {
			names, _ := complete.Names(a, k)(cmd, nil, toComplete)
			all = append(all, names...)
		}
		return append(all, complete.KindWords(controllers.Known, toComplete)...), cobra.ShellCompDirectiveNoFileComp
	}
}

func run(a *app.App, cmd *cobra.Command, several *kinds.Several, format string, args []string) error {
	a.SaveMemory()
	ctx, cancel := a.WithTimeout(cmd.Context())
	defer cancel()
	all, incomplete := selected(ctx, a, cmd, several, args)
	if len(all) == 0 {
		return incomplete
	}
	client, namespace, err := a.Connect(cmd)
	if err != nil {
		return err
	}
	var failed error
	if incomplete != nil {
		failed = &clierr.ExitCodeError{Code: clierr.ExitUndetermined} // reported
	}
	line := a.UI.Progress(a.Now, "reading %s", all[0].ref.Name)
	defer line.Done()
	return kinds.Reporter[situation]{
		Format: format, Listed: several.Lists() || len(all) > 1,
		Read: func(i int) (situation, error) {
			s, err := readSituation(ctx, report.Diagnoser(a, client), all[i].kinds, all[i].ref.NamespaceOr(namespace), all[i].ref.Name)
			if err == nil {
				s.commits = report.UnappliedCommits(ctx, s.Result.Facts)
			}
			return s, err
		},
		Print: func(_ int, s situation) error {
			line.Done()
			return printSituation(a, s)
		},
		Encoded: func(_ int, s situation) any {
			line.Done()
			return statusReportOf(s)
		},
		Exit: func(s situation) error { return s.determined(nil) },
	}.Run(cmd.Context(), a, len(all), failed)
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

// determined returns the error that sets the exit code: 1 if there is a problem, 2 if a part could
// not be checked.
func (s situation) determined(err error) error {
	if err = exitError(err, s.well()); err == nil && len(s.unknown) > 0 {
		return &clierr.ExitCodeError{Code: clierr.ExitUndetermined}
	}
	return err
}

// readSituation finds the object, searching the most common kinds first, and then reads everything
// else concurrently.
func readSituation(ctx context.Context, d diagnose.Diagnoser, kinds []controllers.Kind, namespace, name string) (situation, error) {
	var s situation
	k, o, err := likeliest(ctx, d, kinds, namespace, name)
	if err != nil {
		return s, err
	}
	var built *tree.Tree
	var noTree error
	g, reading := errgroup.WithContext(ctx)
	g.Go(func() (err error) {
		s.Surroundings, err = d.Around(reading, k, o)
		return err
	})
	if k.Inventory != nil {
		g.Go(func() error {
			root := k.ID(namespace, name)
			built, noTree = tree.Build(reading, d.Client, root, tree.Options{Status: true, Root: o})
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return s, err
	}
	if built != nil {
		s.tree = built.Root
		s.Surroundings.AddInventory(ctx, d, s.tree)
	}
	s.unknown = append(s.unknown, s.Result.Unknown...)
	s.unknown = append(s.unknown, unseen(built, noTree, s.NoEvents)...)
	s.outcome = s.Link.Outcome()
	s.timing = s.Link.Schedule()
	return s, nil
}

// likeliest reads the object of the most common kind with this name.
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

// exitError returns the error that sets the exit code of a command that printed
// its output.
func exitError(err error, well bool) error {
	if err == nil && !well {
		return &clierr.ExitCodeError{Code: clierr.ExitFailed}
	}
	return err
}
