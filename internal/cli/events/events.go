// Package events has the command events.
package events

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fluxkit/flux/internal/cli/app"
	"github.com/fluxkit/flux/internal/cli/clierr"
	"github.com/fluxkit/flux/internal/cli/complete"
	"github.com/fluxkit/flux/internal/cli/objref"
	"github.com/fluxkit/flux/internal/event"
	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/internal/output"
	"github.com/fluxkit/flux/pkg/controllers"
)

type options struct {
	allNamespaces bool
	subject       string
	types         []string
	reasons       []string
	since         time.Duration
	watch         bool
	noHeader      bool
	noTrunc       bool
	format        string
}

// NewCommand returns the command events.
func NewCommand(a *app.App) *cobra.Command {
	o := &options{}
	cmd := &cobra.Command{
		Use:   "events [kind/name ...]",
		Short: "Show Kubernetes events of Flux resources",
		Long: `Show the events about the objects of Flux, the oldest first.

--for shows the events of one object, of Flux or of any other resource type. Of
what an object of Flux depends on (the source of a Kustomization, the chart and
the repository of a HelmRelease, the provider of an Alert) it shows what concerns
the object: Warnings, and the events about revisions that the object has worked
on; with --watch also those about newer revisions. All events of a source are
those of --for GitRepository/NAME.

--watch goes on with every event that comes until it is interrupted; it
outlives lost connections, and --timeout does not bound it.

A cluster forgets events after an hour, unless it is set up otherwise.`,
		Example: `  # Those of one namespace
  flux events -n apps

  # Those of one application and what concerns it of all that it comes from
  flux events --for Kustomization/my-app
  flux events --for hr/my-app -n apps

  # Those of an object that Flux has applied
  flux events --for Deployment/my-app -n apps
  flux events --for certificates.cert-manager.io/my-app -n apps

  # Those of several applications, or of all of a kind
  flux events ks/my-app hr/my-app
  flux events ks,hr -A

  # What has gone wrong anywhere in the last ten minutes, and what does from now on
  flux events -A --types Warning --since 10m --watch

  # For scripts
  flux events -A --reason HealthCheckFailed -o json`,
		ValidArgsFunction: complete.Subjects(a),
		RunE:              func(cmd *cobra.Command, args []string) error { return run(a, cmd, o, args) },
	}
	fs := cmd.Flags()
	fs.BoolVarP(&o.allNamespaces, "all-namespaces", "A", false, "show the events of all namespaces")
	fs.StringVar(&o.subject, "for", "", "show the events that concern an object: KIND/NAME, KIND.GROUP/NAME or KIND/NAMESPACE/NAME")
	fs.StringSliceVar(&o.types, "types", nil, "show only events of these types: Normal, Warning")
	fs.StringSliceVar(&o.reasons, "reason", nil, "show only events with these reasons, such as ReconciliationFailed")
	fs.DurationVar(&o.since, "since", 0, "show only what has happened since so long ago, such as 10m")
	fs.BoolVarP(&o.watch, "watch", "w", false, "show what there is, then every event that comes, until interrupted")
	fs.BoolVar(&o.noHeader, "no-header", false, "leave out the table's header")
	fs.BoolVar(&o.noTrunc, "no-trunc", false, "on a terminal: do not cut lines to its width")
	fs.StringVarP(&o.format, "output", "o", "", "print "+output.Formats)
	complete.Flag(cmd, "for", completeAnyObject(a))
	complete.Flag(cmd, "types", complete.List([]string{"Normal", "Warning"}))
	complete.Flag(cmd, "reason", cobra.NoFileCompletions)
	complete.Flag(cmd, "output", complete.Format)
	return cmd
}

// check says what is wrong with the flags before a request is sent.
func (o *options) check() error {
	for i, typ := range o.types {
		switch strings.ToLower(typ) {
		case "normal":
			o.types[i] = "Normal"
		case "warning":
			o.types[i] = "Warning"
		default:
			return clierr.WithHint("events are of the types Normal and Warning", "--types %q is not known", typ)
		}
	}
	if o.since < 0 {
		return fmt.Errorf("--since %s is in the future: give a time such as 10m", o.since)
	}
	if o.printsObjects() {
		_, err := output.ObjectPrinter(o.format)
		return err
	}
	return nil
}

func (o *options) printsObjects() bool { return o.format != "" && o.format != "wide" }

// query is which events are shown, and how.
type query struct {
	app       *app.App
	client    *kube.Client
	options   *options
	namespace string
	subject   *objref.Target // nil where the events of all objects are meant
	// kinds are those of all objects that are meant, none for all kinds.
	kinds []controllers.Kind
	// resource is that of the subject where it is not one of Flux.
	resource *kube.Resource
	// hidden is why it is not known whether the subject exists.
	hidden error
	// subjects are the objects of Flux that the subject stands for.
	subjects []controllers.Object
}

func run(a *app.App, cmd *cobra.Command, o *options, args []string) error {
	if err := o.check(); err != nil {
		return err
	}
	namespace, err := a.Namespace(cmd)
	if err != nil {
		return err
	}
	about, err := objref.ParseSubjects(o.subject, args)
	if err != nil {
		return err
	}
	if o.watch && len(about.Objects) > 1 {
		return clierr.WithHint("name kinds instead, as in flux events ks,hr --watch", "--watch takes one object")
	}
	q := &query{app: a, options: o, namespace: namespace, kinds: about.Kinds}
	if o.allNamespaces {
		q.namespace = ""
	}
	if q.client, err = a.Client(); err != nil {
		return err
	}
	if len(about.Objects) == 1 {
		if err := q.about(cmd.Context(), about.Objects[0]); err != nil {
			return err
		}
	}
	if o.watch {
		return clierr.UntilInterrupted(cmd.Context(), q.watch(cmd.Context()))
	}
	ctx, cancel := a.WithTimeout(cmd.Context())
	defer cancel()
	if len(about.Objects) > 1 {
		return q.listEach(ctx, about.Objects)
	}
	found, err := q.find(ctx)
	if err != nil {
		return err
	}
	return q.print(found)
}

// listEach prints the events of several objects, each event once.
func (q *query) listEach(ctx context.Context, objects []objref.Ref) error {
	var all []event.Event
	var failed error
	seen := map[string]bool{}
	for _, ref := range objects {
		one := *q
		err := one.about(ctx, ref)
		var found []event.Event
		if err == nil {
			found, err = one.find(ctx)
		}
		if err != nil {
			q.app.Report(err)
			failed = clierr.ErrReported
		}
		for _, h := range found {
			if uid := (controllers.Path{"metadata.uid"}).String(h.Object); !seen[uid] {
				seen[uid] = true
				all = append(all, h)
			}
		}
	}
	if len(all) == 0 && failed != nil {
		return failed
	}
	event.Sort(all)
	return errors.Join(q.print(all), failed)
}

// everything are the lists that have the events of all objects that are meant.
func (q *query) everything() []eventScope {
	if len(q.kinds) == 0 {
		return []eventScope{{namespace: q.namespace}}
	}
	var scopes []eventScope
	for _, k := range q.kinds {
		scopes = append(scopes, eventScope{namespace: q.namespace, kind: schema.GroupKind{Group: k.Group, Kind: k.Kind}})
	}
	return scopes
}

// find returns the events that there are, in the order of time.
func (q *query) find(ctx context.Context) ([]event.Event, error) {
	var found []event.Event
	var mu sync.Mutex
	visit := func(ctx context.Context, scopes []eventScope) error {
		return q.ask(ctx, scopes, func(h event.Event) {
			mu.Lock()
			defer mu.Unlock()
			found = append(found, h)
		})
	}
	there := true
	var err error
	switch {
	case q.subject == nil:
		err = visit(ctx, q.everything())
	case q.resource != nil:
		there, err = q.visitResource(ctx, visit)
	default:
		there, err = q.climb(ctx, visit)
	}
	switch {
	case err != nil:
		return nil, err
	case there || len(found) > 0:
		event.Sort(found)
		return found, nil
	case q.hidden != nil:
		return nil, q.hidden
	}
	return nil, &objref.NotFoundError{Target: *q.subject}
}

func (q *query) print(found []event.Event) error {
	if q.options.printsObjects() {
		objects := make([]controllers.Object, len(found))
		for i, h := range found {
			objects[i] = h.Object
		}
		return output.PrintObjects(q.app.Answer(q.options.format), q.options.format, output.Unstructured(objects), false, output.NoHeader(q.options.noHeader))
	}
	if len(found) == 0 {
		q.app.UI.Line("No events found%s.", q.where())
		return nil
	}
	table := output.Table{Headers: q.headers()}
	for _, h := range found {
		table.Rows = append(table.Rows, q.row(h))
	}
	if screen, ok := q.app.Screen(q.options.noTrunc); ok {
		screen.Fold = q.options.format == "wide"
		return table.Show(q.app.Out, !q.options.noHeader, screen)
	}
	return table.Write(q.app.Out, !q.options.noHeader)
}

func (q *query) where() string {
	if q.namespace == "" {
		return ""
	}
	return " in " + q.namespace + " namespace"
}

// ask lists the events of several scopes at once.
func (q *query) ask(ctx context.Context, scopes []eventScope, each func(event.Event)) error {
	failures := make([]error, len(scopes))
	var wg sync.WaitGroup
	for i, s := range scopes {
		wg.Go(func() {
			_, err := q.client.List(ctx, event.Resource(), s.selection(), func(o controllers.Object) error {
				if h := event.Of(o); q.shows(s, h, false) {
					each(h)
				}
				return nil
			})
			failures[i] = s.explain(err)
		})
	}
	wg.Wait()
	for i, err := range failures {
		if err == nil {
			continue
		}
		if q.mayLack(scopes[i], err) {
			q.app.UI.Warning("you may not list the events in namespace %q: those of %s are left out", scopes[i].namespace, strings.Join(scopes[i].subjects(), ", "))
			continue
		}
		return err
	}
	return nil
}

// mayLack tells an error that only hides what is above the object that was
// asked for, in a namespace that somebody else looks after.
func (q *query) mayLack(s eventScope, err error) bool {
	return s.above && q.namespace != "" && s.namespace != q.subject.Namespace && apierrors.IsForbidden(err)
}

// shows reports whether the filters let an event of a scope through; fresh is
// one that has come while the events were watched.
func (q *query) shows(s eventScope, h event.Event, fresh bool) bool {
	o := q.options
	switch {
	case !s.includes(h), s.above && !q.concerns(h, fresh), len(o.types) > 0 && !slices.Contains(o.types, h.Type):
		return false
	case o.since > 0 && h.At.Before(q.app.Now().Add(-o.since)):
		return false
	}
	return len(o.reasons) == 0 || slices.ContainsFunc(o.reasons, func(r string) bool { return strings.EqualFold(r, h.Reason) })
}

// eventScope is a list of events: all of a namespace, or those of some objects
// of a kind there.
type eventScope struct {
	namespace string // "" for all
	kind      schema.GroupKind
	names     []string
	// above is set where the objects are not what was asked for, but what that
	// depends on.
	above bool
}

// scopesOf are the fewest lists that have the events of all the objects.
func scopesOf(targets []objref.Target, above bool) []eventScope {
	var scopes []eventScope
	for _, t := range targets {
		kind := schema.GroupKind{Group: t.Kind.Group, Kind: t.Kind.Kind}
		i := slices.IndexFunc(scopes, func(s eventScope) bool { return s.namespace == t.Namespace && s.kind == kind })
		if i < 0 {
			i, scopes = len(scopes), append(scopes, eventScope{namespace: t.Namespace, kind: kind, above: above})
		}
		scopes[i].names = append(scopes[i].names, t.Name)
	}
	return scopes
}

func (s eventScope) selection() kube.Selection {
	selection := kube.Selection{Namespace: s.namespace, Without: []string{"metadata.managedFields"}}
	if s.kind.Kind != "" {
		selection.Fields = "involvedObject.kind=" + s.kind.Kind
	}
	if len(s.names) == 1 {
		selection.Fields += ",involvedObject.name=" + s.names[0]
	}
	return selection
}

// includes reports whether an event is about an object of the scope.
func (s eventScope) includes(h event.Event) bool {
	if s.kind.Kind == "" {
		_, ok := controllers.KindOf(h.Group, h.Kind)
		return ok
	}
	return h.Group == s.kind.Group && h.Kind == s.kind.Kind && (len(s.names) == 0 || slices.Contains(s.names, h.Name))
}

func (s eventScope) subjects() []string {
	var words []string
	for _, name := range s.names {
		words = append(words, s.kind.Kind+"/"+name)
	}
	return words
}

func (s eventScope) explain(err error) error {
	if err == nil || errors.Is(err, context.Canceled) {
		return err
	}
	return fmt.Errorf("listing the events: %w", err)
}
