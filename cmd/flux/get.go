package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/internal/output"
	"github.com/fluxkit/flux/pkg/controllers"
)

type getOptions struct {
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

func newGet(a *app) *cobra.Command {
	o := &getOptions{}
	get := func(cmd *cobra.Command, s selection) error { return a.get(cmd, o, s) }
	cmd := a.multiply(verb{
		name: "get", applies: controllers.Get, plural: true,
		short: "List Flux resources and their status",
		of:    "List %s objects and their status",
		example: `  # Those of one namespace
  flux get %[1]s -n apps

  # Those that failed, everywhere, with age and source
  flux get %[1]s -A --failed -o wide

  # Two of them, and then every change
  flux get %[1]s my-app my-api --watch

  # One of them, as a script reads it
  flux get %[1]s my-app -o jsonpath='{.status.conditions[?(@.type=="Ready")].message}'`,
		flags: o.add,
		kindFlags: func(k controllers.Kind, fs *pflag.FlagSet) {
			if k.Kind == "Kustomization" || k.Kind == "HelmRelease" {
				fs.BoolVar(&o.showSource, "show-source", false, "show where the object takes its content from")
			}
		},
		examples: `  # Everything in the cluster
  flux get all -A

  # Objects of several kinds
  flux get ks,hr -n apps
  flux get ks/my-app hr/my-app source/git/my-app`,
		run: get, every: listedByAll,
	})
	cmd.Long = getHelp
	for _, c := range cmd.Commands() {
		if family := controllers.Family(familyWord(c)); len(family) > 1 {
			everything := allCommand("List the "+c.Name()+" of all kinds", c.Name()+" all",
				func(cmd *cobra.Command) error {
					return get(cmd, selection{kinds: family, every: true, word: familyWord(c)})
				})
			c.AddCommand(everything)
			o.addKinds(c, family)
			o.addKinds(everything, family)
		}
	}
	everything := allCommand("List the objects of all kinds", "all",
		func(cmd *cobra.Command) error {
			return get(cmd, selection{kinds: listedByAll(), every: true, word: "Flux"})
		})
	cmd.AddCommand(everything)
	o.addKinds(cmd, controllers.Kinds)
	o.addKinds(everything, controllers.Kinds)
	o.complete(cmd)
	return cmd
}

const getHelp = `List objects and their status, of one kind, of several kinds such as ks,hr, of a
family ("sources", "images") or of all. Select objects by KIND NAME, KIND/NAME or
KIND/NAMESPACE/NAME.

An object is listed if it matches all filters. --not-ready lists every object that
is not ready; --failed leaves out objects that are not reconciled yet or are being
reconciled.

--watch lists the objects and then shows a row for every change, until it is
interrupted. It reconnects after lost connections; --timeout bounds only the first
list. On a terminal the table changes in place; elsewhere a row is printed only if it differs
from the previous row of the object. A deleted object has the message "deleted",
in JSON and YAML a metadata.deletionTimestamp. An object that no longer matches
the filters is shown once more. -o json prints one object per line, -o yaml one
document per object.

Objects are printed while they are listed with -o json and -o yaml. --sort-by, -o
name and templates need all objects of the answer in memory.

On a narrow terminal messages are cut and less important columns are left out
(--no-trunc keeps everything). Colours mark objects that are not ready; NO_COLOR
turns them off.`

// familyWord is the family that a command holds the kinds of.
func familyWord(c *cobra.Command) string {
	if len(c.Aliases) == 0 || !c.HasSubCommands() {
		return "none"
	}
	return c.Aliases[0]
}

func allCommand(short, words string, run func(*cobra.Command) error) *cobra.Command {
	return &cobra.Command{
		Use: "all", Short: short, Args: noSubcommand, ValidArgsFunction: cobra.NoFileCompletions,
		Example: fmt.Sprintf(`  # In every namespace
  flux get %[1]s -A

  # What is not ready, in one table
  flux get %[1]s -A --not-ready -o wide

  # Everything that happens from now on
  flux get %[1]s -A --watch`, words),
		RunE: func(cmd *cobra.Command, _ []string) error { return run(cmd) },
	}
}

// listedByAll leaves out artifact generators, which `get all` of Flux 2.9
// does not list; `get artifacts generators` and --kind do.
func listedByAll() []controllers.Kind {
	return slices.DeleteFunc(slices.Clone(controllers.Kinds), func(k controllers.Kind) bool { return k.Family == "artifact" })
}

func (o *getOptions) add(fs *pflag.FlagSet) {
	fs.BoolVarP(&o.allNamespaces, "all-namespaces", "A", false, "list the objects of all namespaces")
	fs.StringVarP(&o.labels, "label-selector", "l", "", "list the objects with these labels, such as 'team=blue,env in (dev,test)'")
	fs.StringVar(&o.status, "status-selector", "", "list the objects in a condition, such as ready=false or ready!=true")
	fs.BoolVar(&o.suspended, "suspended", false, "list only suspended objects; -o wide shows the reason and the author")
	fs.BoolVar(&o.notReady, "not-ready", false, "list only objects that are not ready, whatever the reason")
	fs.BoolVar(&o.failed, "failed", false, "list only objects of which a controller says that they are not ready")
	fs.BoolVar(&o.stalled, "stalled", false, "list only objects that a controller has given up until they change")
	fs.StringVar(&o.sortBy, "sort-by", "", "sort by a column, such as ready or age, or by a JSONPath, such as .metadata.creationTimestamp")
	fs.BoolVar(&o.noHeader, "no-header", false, "leave out the table's header")
	fs.BoolVar(&o.noTrunc, "no-trunc", false, "on a terminal: show whole lines and all columns")
	fs.BoolVarP(&o.watch, "watch", "w", false, "list, then show changes until interrupted")
	fs.StringVarP(&o.format, "output", "o", "", "print "+output.Formats)
}

// addKinds gives a command that lists several kinds the flag that picks some.
func (o *getOptions) addKinds(cmd *cobra.Command, rows []controllers.Kind) {
	cmd.Flags().StringSliceVar(&o.kinds, "kind", nil, "list only these kinds, such as ks,hr,gitrepository")
	completeFlag(cmd, "kind", listCompletion(kindWords(rows)))
}

// get lists what is selected. --kind picks from all kinds where none is named,
// also from those that "all" leaves out.
func (a *app) get(cmd *cobra.Command, o *getOptions, s selection) error {
	if len(o.kinds) > 0 {
		rows := s.kinds
		if s.word == "Flux" {
			rows = controllers.Kinds
		}
		picked, err := pickKinds(rows, o.kinds)
		if err != nil {
			return err
		}
		s = selection{kinds: picked, word: s.word}
	}
	q, err := a.query(cmd, o, s)
	if err != nil {
		return err
	}
	if o.watch {
		return a.watch(cmd.Context(), q)
	}
	ctx, cancel := a.bounded(cmd.Context())
	defer cancel()
	q.stream = a.streamOf(q)
	if q.several {
		return a.getSeveral(ctx, q)
	}
	return a.getKind(ctx, q, s.kinds[0])
}

func (a *app) getKind(ctx context.Context, q *query, k controllers.Kind) error {
	l := q.list(ctx, k)
	if l.err != nil {
		return l.err
	}
	if l.found == 0 && len(q.objects) == 0 && !q.printsObjects() {
		return fmt.Errorf("no %s objects found in %s", k.Kind, q.where())
	}
	if l.found > 0 || len(q.objects) == 0 {
		if err := a.printKind(q, l); err != nil {
			return err
		}
	}
	return a.reportMissing(q, l)
}

// reportMissing names the objects that were asked for and are not there.
func (a *app) reportMissing(q *query, l listing) error {
	missing := q.missing(l)
	for _, t := range missing {
		a.report(&notFoundError{target: t})
	}
	if len(missing) > 0 {
		return errReported
	}
	return nil
}

// printKind prints a single named object by itself, and all else as a list.
func (a *app) printKind(q *query, l listing) error {
	if q.stream != nil {
		return q.stream.close()
	}
	if q.printsObjects() {
		single := q.single()
		return output.PrintObjects(a.answer(q.options.format), q.options.format, objectsOf(l.entries), single, output.NoHeader(q.options.noHeader))
	}
	return a.show(q, tableOf(q.columns(l.kind), l.entries))
}

// show prints a table: for people on a terminal, as scripts know it elsewhere.
func (a *app) show(q *query, t output.Table) error {
	if screen, ok := a.screen(q.options.noTrunc); ok {
		screen.Fold = q.wide()
		return t.Show(a.out, !q.options.noHeader, screen)
	}
	return t.Write(a.out, !q.options.noHeader)
}

// getSeveral lists several kinds. A kind that the cluster does not have is left
// out unless it was named; one that may not be listed is a failure at the end.
func (a *app) getSeveral(ctx context.Context, q *query) error {
	var there []listing
	var failed error
	absent := 0
	for _, l := range q.listAll(ctx) {
		switch {
		case l.err == nil:
			if len(l.entries) > 0 {
				there = append(there, l)
			}
			failed = errors.Join(failed, a.reportMissing(q, l))
		case q.mayBeAbsent(l.err):
			absent++
		case q.stream != nil && q.stream.failure() != nil:
			return q.stream.failure()
		case ctx.Err() != nil || unreachable(l.err):
			return l.err
		default:
			a.report(l.err)
			failed = errReported
		}
	}
	if absent == len(q.kinds) {
		return notServed(q.kinds)
	}
	if len(there) == 0 && failed == nil && !q.printsObjects() {
		a.ui.Line("No objects found in %s.", q.where()) // not a failure, as in Flux 2.9
	}
	if err := a.printAll(q, there); err != nil {
		return err
	}
	return failed
}

// mayBeAbsent reports whether an error only says that the cluster does not serve
// a kind which nobody has named.
func (q *query) mayBeAbsent(err error) bool {
	var absent *kube.MissingKindError
	return errors.As(err, &absent) && q.every
}

func (a *app) printAll(q *query, listings []listing) error {
	if q.stream != nil {
		return q.stream.close()
	}
	if q.printsObjects() {
		return output.PrintObjects(a.answer(q.options.format), q.options.format, objectsOf(q.merge(listings)), false, output.NoHeader(q.options.noHeader))
	}
	if q.flat() && len(listings) > 0 {
		return a.show(q, tableOf(q.flatColumns(), q.merge(listings)))
	}
	for _, l := range listings {
		if err := a.show(q, tableOf(q.columns(l.kind), l.entries)); err != nil {
			return err
		}
		if err := a.printf("\n"); err != nil {
			return err
		}
	}
	return nil
}

// unreachable tells an error that every other request would meet as well.
func unreachable(err error) bool {
	var dial *net.OpError
	return errors.As(err, &dial) || apierrors.IsUnauthorized(err)
}
