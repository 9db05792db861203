// Package status implements the status command.
package status

import (
	"cmp"
	"context"
	"errors"
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
		Use:   "status [kind] name ...",
		Short: "Show a resource, its sources, inventory and events on one screen",
		Long: `Show a Flux resource on one screen: its readiness, the root cause and the fix if
it is not ready, its sources, the last and the next reconciliation, its
dependencies and dependents, its inventory and its last events.

Selection:
  NAME alone selects the Kustomization of that name, else the HelmRelease, else
  a resource of any other Flux kind. Select several resources by KIND/NAME, or
  by KIND,KIND NAME.

Output:
  Use "flux why" to find objects in the inventory that were changed outside Flux
  (drift), are also applied by another resource, or contain values encrypted
  with SOPS: they are not reported. Checks that were not possible are listed.`,
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
	if len(args) == 0 {
		return hint.Errorf("flux status my-app", "a name is required")
	}
	return nil
}

// subject is a resource on the command line. A name alone may match several kinds.
type subject struct {
	kinds []controllers.Kind
	ref   objref.Ref
}

// statusKinds returns the kinds that a bare name is searched in, the most
// common first.
func statusKinds() []controllers.Kind {
	kinds := objref.ApplicationKinds()
	for _, k := range controllers.Known {
		if !slices.ContainsFunc(kinds, func(first controllers.Kind) bool { return first.Kind == k.Kind }) {
			kinds = append(kinds, k)
		}
	}
	return kinds
}

// subjects parses NAME, KIND[,KIND] NAME… or KIND/NAME….
func subjects(cmd *cobra.Command, args []string) ([]subject, error) {
	if len(args) == 1 && args[0] != "" && !strings.Contains(args[0], "/") {
		return []subject{{statusKinds(), objref.Ref{Name: args[0]}}}, nil
	}
	lines, err := commandLines(args)
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

// commandLines splits arguments into those of each resource.
func commandLines(args []string) ([][]string, error) {
	kindWords := strings.Split(args[0], ",")
	var lines [][]string
	switch isKind := len(controllers.KindsNamed(kindWords[0])) > 0; {
	case strings.Contains(args[0], "/"):
		for _, arg := range args {
			lines = append(lines, []string{arg})
		}
		return lines, nil
	case len(args) == 1:
		return [][]string{args}, nil
	case !isKind && len(kindWords) == 1 && objref.DidYouMean(args[0]) == "":
		return nil, hint.Errorf("write KIND/NAME for several resources: flux status ks/"+strings.Join(args, " ks/"), "'%s' is not a recognized Flux kind", args[0])
	case len(args) < 3 && len(kindWords) == 1, len(controllers.KindsNamed(args[0]+" "+args[1])) > 0:
		return [][]string{args}, nil
	}
	for _, name := range args[1:] {
		for _, word := range kindWords {
			lines = append(lines, []string{word, name})
		}
	}
	return lines, nil
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
		return append(all, complete.KindWords(controllers.Known, toComplete)...), cobra.ShellCompDirectiveNoFileComp
	}
}

func run(a *app.App, cmd *cobra.Command, format string, args []string) error {
	all, err := subjects(cmd, args)
	if err != nil {
		return err
	}
	client, namespace, err := a.Connect(cmd)
	if err != nil {
		return err
	}
	ctx, cancel := a.WithTimeout(cmd.Context())
	defer cancel()
	var reports []statusReport
	var failed error
	for i, one := range all {
		line := a.UI.Progress(a.Now, "reading %s", one.ref.Name)
		s, err := readSituation(ctx, report.Diagnoser(a, client), one.kinds, one.ref.NamespaceOr(namespace), one.ref.Name)
		line.Done()
		if interrupted := context.Cause(cmd.Context()); interrupted != nil {
			return interrupted // a report of what was read until then could name another root cause
		}
		switch {
		case err != nil && (len(all) == 1 || clierr.Unreachable(err)):
			return err
		case err != nil:
			a.Report(err)
			failed = worse(failed, &clierr.ExitCodeError{Code: clierr.ExitUndetermined})
			continue
		}
		s.commits = report.UnappliedCommits(ctx, s.Result.Facts)
		if format != "" {
			reports = append(reports, statusReportOf(s))
		} else if err := page(a, i, s); err != nil {
			return err
		}
		failed = worse(failed, s.determined(nil))
	}
	return errors.Join(encode(a, format, reports, len(all)), failed)
}

// page prints the screen of a resource, with an empty line before all but the first.
func page(a *app.App, i int, s situation) error {
	if i > 0 {
		if err := a.Printf("\n"); err != nil {
			return err
		}
	}
	return printSituation(a, s)
}

// encode prints the report of one resource, or those of several as a list.
func encode(a *app.App, format string, reports []statusReport, selected int) error {
	switch {
	case format == "" || selected == 1 && len(reports) == 0:
		return nil
	case selected == 1:
		return a.Encode(format, reports[0])
	}
	return a.Encode(format, reports)
}

// worse returns the error that decides the exit code: a resource that is not ready takes precedence over one that is
// undetermined.
func worse(a, b error) error {
	var code *clierr.ExitCodeError
	if a == nil || errors.As(b, &code) && code.Code == clierr.ExitFailed {
		return cmp.Or(b, a)
	}
	return a
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
