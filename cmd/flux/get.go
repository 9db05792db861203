package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/internal/output"
	"github.com/fluxkit/flux/pkg/controllers"
)

type getOptions struct {
	allNamespaces bool
	labels        string
	status        string
	noHeader      bool
	watch         bool
	showSource    bool
	format        string
}

func newGet(a *app) *cobra.Command {
	o := &getOptions{}
	all := func(cmd *cobra.Command, rows []controllers.Kind) error { return a.getAll(cmd, o, rows) }
	cmd := a.multiply(verb{
		name: "get", applies: controllers.Get, plural: true,
		short: "List objects and how ready they are",
		of:    "List %s objects and how ready they are",
		example: `  # Those of one namespace
  flux get %[1]s -n apps

  # Those that are not ready, everywhere
  flux get %[1]s -A --status-selector ready=false

  # One of them, as a script reads it
  flux get %[1]s my-app -o jsonpath='{.status.conditions[?(@.type=="Ready")].message}'`,
		flags: o.add,
		kindFlags: func(k controllers.Kind, fs *pflag.FlagSet) {
			if k.Kind == "Kustomization" || k.Kind == "HelmRelease" {
				fs.BoolVar(&o.showSource, "show-source", false, "show where the object takes its content from")
			}
		},
		run:    func(cmd *cobra.Command, k controllers.Kind, names []string) error { return a.getKind(cmd, o, k, names) },
		family: all,
	})
	for _, c := range cmd.Commands() {
		if c.Name() == "sources" || c.Name() == "images" {
			c.AddCommand(allCommand("List the "+c.Name()+" of all kinds", controllers.Family(c.Aliases[0]), all))
		}
	}
	cmd.AddCommand(allCommand("List the objects of all kinds", listedByAll(), all))
	return cmd
}

func allCommand(short string, rows []controllers.Kind, run func(*cobra.Command, []controllers.Kind) error) *cobra.Command {
	return &cobra.Command{
		Use: "all", Short: short, Args: noSubcommand,
		Example: "  # In every namespace\n  flux get all -A",
		RunE:    func(cmd *cobra.Command, _ []string) error { return run(cmd, rows) },
	}
}

// listedByAll leaves out artifact generators, which `get all` of Flux 2.9
// does not list; `get artifacts generators` does.
func listedByAll() []controllers.Kind {
	return slices.DeleteFunc(slices.Clone(controllers.Kinds), func(k controllers.Kind) bool { return k.Family == "artifact" })
}

func (o *getOptions) add(fs *pflag.FlagSet) {
	fs.BoolVarP(&o.allNamespaces, "all-namespaces", "A", false, "list the objects of all namespaces")
	fs.StringVarP(&o.labels, "label-selector", "l", "", "list the objects with these labels, such as 'team=blue,env in (dev,test)'")
	fs.StringVar(&o.status, "status-selector", "", "list the objects in a condition, such as ready=false or ready!=true")
	fs.BoolVar(&o.noHeader, "no-header", false, "leave out the table's header")
	fs.BoolVarP(&o.watch, "watch", "w", false, "list, then show every change until interrupted")
	fs.StringVarP(&o.format, "output", "o", "", "print "+output.Formats)
}

// listing is one kind's part of an answer.
type listing struct {
	kind    controllers.Kind
	found   int // before the status selector
	objects []controllers.Object
	err     error
}

func (a *app) getKind(cmd *cobra.Command, o *getOptions, k controllers.Kind, names []string) error {
	q, err := a.query(cmd, o, names)
	if err != nil {
		return err
	}
	if o.watch {
		return a.getWatch(cmd.Context(), q, k)
	}
	ctx, cancel := a.bounded(cmd.Context())
	defer cancel()
	l := q.list(ctx, k)
	if l.err != nil {
		return l.err
	}
	missing := q.missing(l)
	if l.found == 0 && len(names) == 0 && !q.printsObjects() {
		return fmt.Errorf("no %s objects found in %s", k.Kind, q.where())
	}
	if q.printsObjects() {
		err = output.PrintObjects(a.out, o.format, unstructuredOf(l.objects), len(names) == 1)
	} else if len(l.objects) > 0 || len(names) == 0 {
		err = q.table(k, l.objects, "").Write(a.out, !o.noHeader)
	}
	if err != nil {
		return err
	}
	for _, name := range missing {
		a.ui.Failure("%s object '%s' not found in %s", k.Kind, name, q.where())
		a.hintElsewhere(ctx, q, k, name)
	}
	if len(missing) > 0 {
		return errReported
	}
	return nil
}

// hintElsewhere tells in which other namespaces an object of that name is.
func (a *app) hintElsewhere(ctx context.Context, q *query, k controllers.Kind, name string) {
	if q.namespace == "" {
		return
	}
	var elsewhere []string
	err := q.client.With(ctx, k, func(r kube.Resource) error {
		_, err := q.client.List(ctx, r, kube.Selection{Name: name}, func(o controllers.Object) error {
			elsewhere = append(elsewhere, controllers.Namespace(o))
			return nil
		})
		return err
	})
	if err == nil && len(elsewhere) > 0 {
		a.ui.Line("  it exists in namespace %q: add -n %s", elsewhere[0], elsewhere[0])
	}
}

// getAll lists several kinds, one table each. A kind that the cluster does
// not have is left out; one that may not be listed is a failure at the end.
func (a *app) getAll(cmd *cobra.Command, o *getOptions, rows []controllers.Kind) error {
	q, err := a.query(cmd, o, nil)
	if err != nil {
		return err
	}
	if o.watch {
		return errors.New("--watch follows one kind at a time: name it")
	}
	ctx, cancel := a.bounded(cmd.Context())
	defer cancel()
	var there []listing
	var failed error
	for _, l := range q.listAll(ctx, rows) {
		var absent *kube.MissingKindError
		switch {
		case errors.As(l.err, &absent):
		case l.err != nil && ctx.Err() != nil:
			return l.err
		case unreachable(l.err):
			return l.err
		case l.err != nil:
			a.ui.Failure("%s", l.err)
			failed = errReported
		case len(l.objects) > 0:
			there = append(there, l)
		}
	}
	if err := a.printAll(q, there); err != nil {
		return err
	}
	return failed
}

func (a *app) printAll(q *query, listings []listing) error {
	if q.printsObjects() {
		var objects []controllers.Object
		for _, l := range listings {
			objects = append(objects, l.objects...)
		}
		return output.PrintObjects(a.out, q.options.format, unstructuredOf(objects), false)
	}
	if len(listings) > 0 && q.wide() {
		return q.flatTable(listings).Write(a.out, !q.options.noHeader)
	}
	for _, l := range listings {
		if err := q.table(l.kind, l.objects, strings.ToLower(l.kind.Kind)+"/").Write(a.out, !q.options.noHeader); err != nil {
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

// getWatch lists a kind and then prints a row for every change.
func (a *app) getWatch(ctx context.Context, q *query, k controllers.Kind) error {
	if q.printsObjects() {
		return errors.New("--watch prints rows: leave out --output")
	}
	header := !q.options.noHeader
	return q.client.With(ctx, k, func(r kube.Resource) error {
		return q.client.Follow(ctx, r, q.selection(), "", func(e kube.Event) (bool, error) {
			if e.Deleted || !q.keeps(k, e.Object) {
				return false, nil
			}
			t := q.table(k, []controllers.Object{e.Object}, "")
			err := t.Write(a.out, header)
			header = false
			return false, err
		})
	})
}

func unstructuredOf(objects []controllers.Object) []unstructured.Unstructured {
	items := make([]unstructured.Unstructured, len(objects))
	for i, o := range objects {
		items[i] = unstructured.Unstructured{Object: o}
	}
	return items
}
