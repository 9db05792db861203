// Package get implements the get command.
package get

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
	"github.com/fluxkit/flux/cmd/flux/internal/get/columns"
	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/internal/kube/objref"
	"github.com/fluxkit/flux/internal/terminal/output"
	"github.com/fluxkit/flux/pkg/controllers"
)

type options struct {
	allNamespaces bool
	labels        string
	status        string
	suspended     bool
	notReady      bool
	failed        bool
	stalled       bool
	kinds         []string
	sortBy        string
	noHeader      bool
	noTrunc       bool
	watch         bool
	showSource    bool
	format        string
}

// NewCommand returns the get command.
func NewCommand(a *app.App) *cobra.Command {
	o := &options{}
	get := func(cmd *cobra.Command, s kinds.Selection) error { return run(a, cmd, o, s) }
	cmd := kinds.NewCommand(a, kinds.Verb{
		Name: "get", Applies: controllers.Get, Plural: true,
		Short: "List Flux resources and their status",
		Of:    "List %s objects and their status",
		OfKind: []kinds.Example{
			{Text: `  # List two objects, then show their changes
  flux get %[1]s %[2]s %[3]s --watch`},
			{For: controllers.Kind.HasConditions, Text: `  # List the objects of all namespaces that failed, with age and source
  flux get %[1]s -A --failed -o wide`},
			{For: showsSource, Text: `  # Add the source of each object
  flux get %[1]s -A --show-source`},
			{For: controllers.Kind.HasConditions, Text: `  # Print the message of the Ready condition
  flux get %[1]s %[2]s -o jsonpath='{.status.conditions[?(@.type=="Ready")].message}'`},
			{For: kinds.Unless(controllers.Kind.HasConditions), Text: `  # List the objects of all namespaces with their age
  flux get %[1]s -A -o wide`},
		},
		Flags: o.add,
		KindFlags: func(k controllers.Kind, fs *pflag.FlagSet) {
			if showsSource(k) {
				fs.BoolVar(&o.showSource, "show-source", false, "add the source of each object")
			}
		},
		Examples: `  # List all objects in the cluster
  flux get all -A

  # List objects of several kinds
  flux get ks,hr -n apps
  flux get ks/my-app hr/my-app source/git/my-app`,
		Run: get, Every: listedByAll,
	})
	cmd.Long = help
	for _, c := range cmd.Commands() {
		if family := controllers.Family(familyWord(c)); len(family) > 1 {
			everything := allCommand("List the "+c.Name()+" of all kinds", c.Name()+" all",
				func(cmd *cobra.Command) error {
					return get(cmd, kinds.Selection{Kinds: family, Every: true, Word: familyWord(c)})
				})
			c.AddCommand(everything)
			o.addKinds(c, family)
			o.addKinds(everything, family)
		}
	}
	everything := allCommand("List the objects of all kinds", "all",
		func(cmd *cobra.Command) error {
			return get(cmd, kinds.Selection{Kinds: listedByAll(), Every: true, Word: "Flux"})
		})
	cmd.AddCommand(everything)
	o.addKinds(cmd, controllers.Known)
	o.addKinds(everything, controllers.Known)
	o.complete(cmd)
	return cmd
}

// showsSource reports whether the kind has the flag --show-source, as in Flux 2.9.
func showsSource(k controllers.Kind) bool { return k.Applies() && k.Source != nil }

const help = `List Flux resources and their status: of one kind, of several kinds such as
ks,hr, of a family ("sources", "images") or of all kinds.

Selection:
  Select objects by KIND NAME, KIND/NAME or KIND/NAMESPACE/NAME. An object is
  listed if it matches all filters. --not-ready includes objects that are still
  reconciling; --failed does not. See "flux help selectors".

Output:
  On a terminal, several kinds share one table, failures first; in a pipe, each
  kind has a separate table, as in Flux 2.9. On a narrow terminal, messages are
  truncated and less important columns are omitted, unless --no-trunc is set.
  -o json, yaml and name print objects while they are listed, unless --sort-by
  is set. Templates keep all objects in memory.

Watch:
  --watch lists the objects, then prints a row for each change until it is
  interrupted. It reconnects after lost connections; --timeout limits only the
  first list. On a terminal, the table is updated in place; elsewhere, a row is
  printed if it differs from the previous row of the object. -o json prints one
  object per line, -o yaml one document per object. Deleted objects have the
  message "deleted" or a metadata.deletionTimestamp. Objects that no longer
  match the filters are shown once more.`

// familyWord returns the family that a command lists.
func familyWord(c *cobra.Command) string {
	if len(c.Aliases) == 0 || !c.HasSubCommands() {
		return "none"
	}
	return c.Aliases[0]
}

func allCommand(short, words string, run func(*cobra.Command) error) *cobra.Command {
	return &cobra.Command{
		Use: "all", Short: short, Args: command.NoSubcommand, ValidArgsFunction: cobra.NoFileCompletions,
		Example: fmt.Sprintf(`  # List the objects of all namespaces
  flux get %[1]s -A

  # List the objects that are not ready in one table
  flux get %[1]s -A --not-ready -o wide

  # List the objects and show their changes
  flux get %[1]s -A --watch`, words),
		RunE: func(cmd *cobra.Command, _ []string) error { return run(cmd) },
	}
}

// listedByAll returns the kinds of `get all`. As in Flux 2.9, ArtifactGenerator and the kinds of
// flux-operator are excluded; their own commands and --kind list them.
func listedByAll() []controllers.Kind {
	return slices.DeleteFunc(slices.Clone(controllers.Kinds), func(k controllers.Kind) bool { return k.Family == "artifact" })
}

func (o *options) add(fs *pflag.FlagSet) {
	fs.BoolVarP(&o.allNamespaces, "all-namespaces", "A", false, "list the objects of all namespaces")
	fs.StringVarP(&o.labels, "label-selector", "l", "", "list the objects with these labels, such as 'team=blue,env in (dev,test)'")
	fs.StringVar(&o.status, "status-selector", "", "list only objects with a condition, e.g. ready=false or ready!=true")
	fs.BoolVar(&o.suspended, "suspended", false, "list only suspended objects; -o wide shows the reason and the author")
	fs.BoolVar(&o.notReady, "not-ready", false, "list only objects that are not ready, including those still reconciling")
	fs.BoolVar(&o.failed, "failed", false, "list only objects whose last reconciliation failed")
	fs.BoolVar(&o.stalled, "stalled", false, "list only stalled objects, which are not retried until the spec or source changes")
	fs.StringVar(&o.sortBy, "sort-by", "", "sort by a column, such as ready or age, or by a JSONPath, such as .metadata.creationTimestamp")
	fs.BoolVar(&o.noHeader, "no-header", false, "omit the header of the table")
	fs.BoolVar(&o.noTrunc, "no-trunc", false, "do not truncate lines or omit columns on a terminal")
	fs.BoolVarP(&o.watch, "watch", "w", false, "list, then show changes until interrupted")
	fs.StringVarP(&o.format, "output", "o", "", "print "+output.Formats)
}

// addKinds adds the flag --kind to a command that lists several kinds.
func (o *options) addKinds(cmd *cobra.Command, rows []controllers.Kind) {
	cmd.Flags().StringSliceVar(&o.kinds, "kind", nil, "list only these kinds, such as ks,hr,gitrepository")
	complete.Flag(cmd, "kind", complete.List(objref.KindWords(rows)))
}

// run lists the selected objects. Without a kind in the arguments, --kind selects
// from all kinds, including those that "all" excludes.
func run(a *app.App, cmd *cobra.Command, o *options, s kinds.Selection) error {
	if len(o.kinds) > 0 {
		rows := s.Kinds
		if s.Word == "Flux" {
			rows = controllers.Known
		}
		picked, err := kinds.Pick(rows, o.kinds)
		if err != nil {
			return err
		}
		s = kinds.Selection{Kinds: picked, Word: s.Word}
	}
	q, err := newQuery(a, cmd, o, s)
	if err != nil {
		return err
	}
	if o.watch {
		return watch(cmd.Context(), a, q)
	}
	ctx, cancel := a.WithTimeout(cmd.Context())
	defer cancel()
	q.stream = streamOf(a, q)
	if q.several {
		return getSeveral(ctx, a, q)
	}
	return getKind(ctx, a, q, s.Kinds[0])
}

func getKind(ctx context.Context, a *app.App, q *query, k controllers.Kind) error {
	l := q.list(ctx, k)
	if l.err != nil {
		return l.err
	}
	if l.found == 0 && len(q.objects) == 0 && !q.printsObjects() {
		return fmt.Errorf("no %s", kinds.None(k.Kind, q.options.labels, q.namespace, 0))
	}
	if err := printKind(a, q, l); err != nil {
		return err
	}
	return reportMissing(a, q, l)
}

// reportMissing reports the named objects that were not found.
func reportMissing(a *app.App, q *query, l listing) error {
	missing := q.missing(l)
	for _, t := range missing {
		a.Report(&objref.NotFoundError{Target: t})
	}
	if len(missing) > 0 {
		return clierr.ErrReported
	}
	return nil
}

// printKind prints one named object as an object, and others as a list.
func printKind(a *app.App, q *query, l listing) error {
	switch {
	case l.found == 0 && len(q.objects) > 0:
		return nil
	case q.stream != nil:
		return q.stream.close()
	case q.printsObjects():
		return q.printObjects(a, l.entries, q.single())
	case len(l.entries) == 0:
		a.UI.Line("No %s.", kinds.None(l.kind.Kind, q.options.labels, q.namespace, l.found))
	}
	return show(a, q, tableOf(columnsOf(q, l.kind), l.entries))
}

// printObjects prints a single object, or else a list.
func (q *query) printObjects(a *app.App, entries []entry, single bool) error {
	w := a.Output(q.options.format)
	if q.custom != nil {
		return q.custom.Print(w, rowsOf(entries))
	}
	return output.PrintObjects(w, q.options.format, objectsOf(entries), single, app.Templates(a))
}

func show(a *app.App, q *query, t output.Table) error {
	return a.Table(t, app.TableStyle{NoHeader: q.options.noHeader, NoTrunc: q.options.noTrunc, Fold: q.wide()})
}

// getSeveral lists several kinds. Kinds that the cluster does not serve are skipped unless they are
// specified. It fails at the end if a kind could not be listed.
func getSeveral(ctx context.Context, a *app.App, q *query) error {
	var there []listing
	var failed error
	var errs []error
	absent, found := 0, 0
	for _, l := range q.listAll(ctx) {
		switch {
		case l.err == nil:
			found += l.found
			if len(l.entries) > 0 {
				there = append(there, l)
			}
			failed = errors.Join(failed, reportMissing(a, q, l))
		case q.mayBeAbsent(l.err):
			absent++
		case q.stream != nil && q.stream.Failure() != nil:
			return q.stream.Failure()
		case ctx.Err() != nil || clierr.Unreachable(l.err):
			return l.err
		default:
			errs = append(errs, l.err)
		}
	}
	if app.ReportLists(a, errs); len(errs) > 0 {
		failed = clierr.ErrReported
	}
	switch {
	case absent == len(q.kinds) && !q.options.watch && kinds.Optional(ctx, q.client, q.kinds): // not a failure, as in Flux 2.9
		a.Report(kinds.NotServed(q.kinds))
	case absent == len(q.kinds):
		return kinds.NotServed(q.kinds)
	case len(there) == 0 && failed == nil && !q.printsObjects():
		a.UI.Line("No %s.", kinds.None("", q.options.labels, q.namespace, found)) // not a failure, as in Flux 2.9
	}
	if err := printAll(a, q, there); err != nil {
		return err
	}
	return failed
}

// mayBeAbsent reports whether an error means that the cluster does not serve a kind that the user
// did not specify.
func (q *query) mayBeAbsent(err error) bool {
	var absent *kube.MissingKindError
	return errors.As(err, &absent) && q.every
}

func printAll(a *app.App, q *query, listings []listing) error {
	if q.stream != nil {
		return q.stream.close()
	}
	if q.printsObjects() {
		return q.printObjects(a, q.merge(listings), false)
	}
	if q.flat() && len(listings) > 0 {
		return show(a, q, tableOf(columnsOf(q, q.kinds[0]), q.merge(listings)))
	}
	for _, l := range listings {
		if err := show(a, q, tableOf(columnsOf(q, l.kind), l.entries)); err != nil {
			return err
		}
		if err := a.Printf("\n"); err != nil {
			return err
		}
	}
	return nil
}

// complete adds completions to the flags of get.
func (o *options) complete(cmd *cobra.Command) {
	complete.Flag(cmd, "output", complete.Format)
	complete.Flag(cmd, "status-selector", cobra.FixedCompletions([]string{
		"ready=false", "ready=true", "ready=unknown", "ready!=true", "reconciling=true", "stalled=true",
		"healthy=false", "released=false", "remediated=true",
	}, cobra.ShellCompDirectiveNoFileComp))
	complete.Flag(cmd, "sort-by", sortCompletion)
}

// sortCompletion completes the columns of the listed kind, or of all kinds.
func sortCompletion(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	table := columns.Table{Kinds: controllers.Known, Several: true}
	for _, k := range controllers.Known {
		if cmd.Name() == k.Plural && (k.Family == "" || cmd.Parent().HasAlias(k.Family)) {
			table.Kinds, table.Several = []controllers.Kind{k}, false
		}
	}
	return table.Words(), cobra.ShellCompDirectiveNoFileComp
}
