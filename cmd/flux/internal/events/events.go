// Package events implements the events command.
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

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/clierr"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/command"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/complete"
	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/internal/kube/event"
	"github.com/fluxkit/flux/internal/kube/objref"
	"github.com/fluxkit/flux/internal/terminal/output"
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

// NewCommand returns the events command.
func NewCommand(a *app.App) *cobra.Command {
	o := &options{}
	cmd := &cobra.Command{
		Use:   "events [kind/name ...]",
		Short: "Show Kubernetes events of Flux resources",
		Annotations: command.Exits{
			clierr.ExitFailed: "failure, or the object of --for does not exist and has no events",
		}.Annotations(),
		Long: `Show the Kubernetes events of Flux resources, oldest first. By default,
Kubernetes keeps events for one hour.

Selection:
  --for shows the events of one object, of Flux or of any other resource type.
  For a Flux resource, it includes relevant events of its upstream objects (the
  source of a Kustomization, the chart and the repository of a HelmRelease, the
  Provider of an Alert): Warnings, and the events of revisions that the object
  has attempted (with --watch, also of newer revisions). For all events of a
  source, use --for GitRepository/NAME.

Watch:
  --watch streams new events until it is interrupted. It reconnects after lost
  connections; --timeout does not apply to it.`,
		Example: `  # Show the events of a namespace
  flux events -n apps

  # Show the events of an application and its upstream objects
  flux events --for Kustomization/my-app
  flux events --for hr/my-app -n apps

  # Show the events of an object that Flux has applied
  flux events --for Deployment/my-app -n apps
  flux events --for certificates.cert-manager.io/my-app -n apps

  # Show the events of several objects or kinds
  flux events ks/my-app hr/my-app
  flux events ks,hr -A

  # Watch the Warnings of all namespaces, starting ten minutes ago
  flux events -A --types Warning --since 10m --watch

  # Print events as JSON
  flux events -A --reason HealthCheckFailed -o json`,
		ValidArgsFunction: complete.Subjects(a),
		RunE:              func(cmd *cobra.Command, args []string) error { return run(a, cmd, o, args) },
	}
	fs := cmd.Flags()
	fs.BoolVarP(&o.allNamespaces, "all-namespaces", "A", false, "show the events of all namespaces")
	fs.StringVar(&o.subject, "for", "", "show the events of an object: KIND/NAME, KIND.GROUP/NAME or KIND/NAMESPACE/NAME")
	fs.StringSliceVar(&o.types, "types", nil, "show only events of these types: Normal, Warning")
	fs.StringSliceVar(&o.reasons, "reason", nil, "show only events with these reasons, e.g. ReconciliationFailed")
	fs.DurationVar(&o.since, "since", 0, "show only events newer than a duration, e.g. 10m")
	fs.BoolVarP(&o.watch, "watch", "w", false, "watch for new events after listing existing ones")
	fs.BoolVar(&o.noHeader, "no-header", false, "do not print the table header")
	fs.BoolVar(&o.noTrunc, "no-trunc", false, "do not truncate lines to the width of the terminal")
	fs.StringVarP(&o.format, "output", "o", "", "print "+output.Formats)
	complete.Flag(cmd, "for", completeAnyObject(a))
	complete.Flag(cmd, "types", complete.List([]string{"Normal", "Warning"}))
	complete.Flag(cmd, "reason", cobra.NoFileCompletions)
	complete.Flag(cmd, "output", complete.Format)
	return cmd
}

// check validates the flags.
func (o *options) check() error {
	for i, typ := range o.types {
		switch strings.ToLower(typ) {
		case "normal":
			o.types[i] = "Normal"
		case "warning":
			o.types[i] = "Warning"
		default:
			return hint.Errorf("must be Normal or Warning", "invalid --types %q", typ)
		}
	}
	if o.since < 0 {
		return fmt.Errorf("--since %s is in the future: must be a positive duration such as 10m", o.since)
	}
	if o.printsObjects() {
		_, err := output.ObjectPrinter(o.format)
		return err
	}
	return nil
}

func (o *options) printsObjects() bool { return o.format != "" && o.format != "wide" }

// query has the events to show and their format.
type query struct {
	app       *app.App
	client    *kube.Client
	options   *options
	namespace string
	subject   *objref.Target // nil for all objects
	// kinds are the kinds of the selected objects, or empty for all kinds.
	kinds []controllers.Kind
	// resource is the resource of a subject that is not a Flux kind.
	resource *kube.Resource
	// hidden is the error that prevents checking whether the subject exists.
	hidden error
	// subjects are the Flux objects that the subject refers to.
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
		return hint.Errorf("specify kinds instead: flux events ks,hr --watch", "--watch accepts only one object")
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

// everything returns the scopes of all selected objects.
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

// find returns the existing events, sorted by time.
func (q *query) find(ctx context.Context) ([]event.Event, error) {
	var found []event.Event
	var mu sync.Mutex
	visit := func(ctx context.Context, scopes []eventScope) error {
		return q.list(ctx, scopes, func(h event.Event) {
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
		there, err = q.walkUpstream(ctx, visit)
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
		return output.PrintObjects(q.app.Output(q.options.format), q.options.format, output.Unstructured(objects), false, output.NoHeader(q.options.noHeader), app.Templates(q.app))
	}
	if len(found) == 0 {
		q.app.UI.Line("No events found%s.", q.where())
		return nil
	}
	table := output.Table{Headers: q.headers()}
	for _, h := range found {
		table.Rows = append(table.Rows, q.row(h))
	}
	return q.app.Table(table, app.TableStyle{NoHeader: q.options.noHeader, NoTrunc: q.options.noTrunc, Fold: q.options.format == "wide"})
}

func (q *query) where() string {
	if q.namespace == "" {
		return ""
	}
	return " in " + q.namespace + " namespace"
}

// list lists the events of several scopes concurrently.
func (q *query) list(ctx context.Context, scopes []eventScope, each func(event.Event)) error {
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
		if q.onlyUpstream(scopes[i], err) {
			q.app.UI.Warning("no permission to list events in namespace %q: events of %s not included", scopes[i].namespace, strings.Join(scopes[i].subjects(), ", "))
			continue
		}
		return err
	}
	return nil
}

// onlyUpstream reports whether an error affects only upstream objects in a
// namespace that the user cannot read.
func (q *query) onlyUpstream(s eventScope, err error) bool {
	return s.above && q.namespace != "" && s.namespace != q.subject.Namespace && apierrors.IsForbidden(err)
}

// shows reports whether the filters select an event of a scope. fresh is set
// for events that arrived after the watch began.
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

// eventScope is a list of events in a namespace, of all objects or of objects of one kind.
type eventScope struct {
	namespace string // "" for all namespaces
	kind      schema.GroupKind
	names     []string
	// above is set for upstream objects of the subject.
	above bool
}

// scopesOf returns the smallest set of lists with the events of all targets.
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

// includes reports whether the scope includes the involved object of an event.
func (s eventScope) includes(h event.Event) bool {
	if s.kind.Kind == "" {
		_, ok := controllers.KindOf(h.About.Group, h.About.Kind)
		return ok
	}
	return h.About.Group == s.kind.Group && h.About.Kind == s.kind.Kind && (len(s.names) == 0 || slices.Contains(s.names, h.About.Name))
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
