// Package logs implements the logs command.
package logs

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/fatih/color"
	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/clierr"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/command"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/complete"
	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/internal/kube/objref"
	"github.com/fluxkit/flux/internal/terminal/output"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/logs"
)

type options struct {
	allNamespaces bool
	fluxNamespace string
	follow        bool
	kind          string
	name          string
	level         command.Choice
	since         time.Duration
	sinceTime     string
	tail          int64
	subject       string
	streams       int
	format        string
	pods          bool
}

// NewCommand returns the logs command.
func NewCommand(a *app.App) *cobra.Command {
	o := &options{level: command.Choice{Value: new(string), Allowed: logs.Levels()}}
	cmd := &cobra.Command{
		Use:   "logs [kind/name ...]",
		Short: "Stream Flux controller logs, merged by time",
		Long: `Show the logs of all Flux controller pods, merged by time: the records about
objects in a namespace, or with -A all records.

Selection:
  --for shows records about an object and the objects that it manages: nested
  Kustomizations, HelmReleases and sources. Unstructured lines, such as the
  stack trace of a panic, are shown unless objects or kinds are selected.
  --pods shows the logs of the pods that the selected objects manage instead.

Watch:
  --follow streams new records until it is interrupted. It reconnects after lost
  connections and follows replacement pods without losing or repeating lines.`,
		Example: `  # Show the errors of the last hour in all namespaces
  flux logs -A --level error --since 1h

  # Follow the logs of an application and the objects that it manages
  flux logs --for Kustomization/my-app --follow
  flux logs ks/my-app hr/my-app

  # Follow the logs of the pods of an application
  flux logs hr/my-app --pods --follow

  # Show the logs of a kind or an object
  flux logs --kind HelmRelease -n apps
  flux logs ks,hr -n apps
  flux logs --kind Kustomization --name my-app -n apps

  # Print the records as JSON
  flux logs -A --tail 100 -o json`,
		ValidArgsFunction: complete.Subjects(a),
		RunE:              func(cmd *cobra.Command, args []string) error { return run(a, cmd, o, args) },
	}
	fs := cmd.Flags()
	fs.BoolVarP(&o.allNamespaces, "all-namespaces", "A", false, "show the records of all namespaces, including those not tied to an object")
	fs.StringVar(&o.fluxNamespace, "flux-namespace", a.FluxNamespace(), "namespace of the Flux controllers")
	fs.BoolVarP(&o.follow, "follow", "f", false, "stream new records until interrupted")
	fs.StringVar(&o.kind, "kind", "", "show records of objects of this kind, e.g. GitRepository or ks")
	fs.StringVar(&o.name, "name", "", "show records of objects with this name")
	fs.Var(o.level, "level", "show lines of this level or above: "+strings.Join(logs.Levels(), ", "))
	fs.DurationVar(&o.since, "since", 0, "show records newer than a duration, e.g. 10m; 0 for all")
	fs.StringVar(&o.sinceTime, "since-time", "", "show records after a time (RFC 3339), e.g. 2026-11-01T10:00:00Z")
	fs.Int64Var(&o.tail, "tail", -1, "number of recent matching lines per pod, -1 for all")
	fs.StringVar(&o.subject, "for", "", "show records of an object and the objects that it manages: KIND/NAME")
	fs.BoolVar(&o.pods, "pods", false, "show the logs of the pods that the selected objects manage, instead of the controllers")
	fs.IntVar(&o.streams, "max-log-requests", 50, "maximum number of concurrent log requests")
	command.AddOutput(fs, &o.format, "output format, one line per record with its pod", "json")
	complete.Flag(cmd, "for", complete.FluxObjects(a))
	complete.Flag(cmd, "kind", cobra.FixedCompletions(kindNames(), cobra.ShellCompDirectiveNoFileComp))
	complete.Flag(cmd, "name", completeNamed(a, &o.kind))
	complete.Flag(cmd, "flux-namespace", complete.Namespaces(a))
	complete.Flag(cmd, "since-time", cobra.NoFileCompletions)
	complete.Flag(cmd, "output", cobra.FixedCompletions([]string{"json"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func kindNames() []string {
	var names []string
	for _, k := range controllers.Known {
		names = append(names, k.Kind)
	}
	return names
}

// completeNamed completes the names of objects of the kind in a flag.
func completeNamed(a *app.App, kind *string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, given []string, prefix string) ([]string, cobra.ShellCompDirective) {
		rows := controllers.KindsNamed(*kind)
		if len(rows) != 1 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return complete.Names(a, rows[0])(cmd, given, prefix)
	}
}

// parsed validates the flags and converts them to log options.
func (o *options) parsed() (logs.Options, error) {
	options := logs.Options{Since: o.since, Tail: o.tail, Streams: o.streams}
	options.Filter.Level, options.Filter.Name = o.level.String(), o.name
	switch {
	case o.since < 0:
		return options, fmt.Errorf("--since %s is in the future: must be a positive duration such as 10m", o.since)
	case o.tail < -1:
		return options, fmt.Errorf("invalid --tail %d: must be a number of lines, or -1 for all", o.tail)
	case o.streams < 1:
		return options, fmt.Errorf("invalid --max-log-requests %d: must be at least 1", o.streams)
	case o.since > 0 && o.sinceTime != "":
		return options, errors.New("--since and --since-time are mutually exclusive")
	case o.pods && o.level.String() != "":
		return options, hint.Errorf("omit --level", "--pods and --level are mutually exclusive: the levels of applications are unknown")
	case o.subject != "" && (o.kind != "" || o.name != ""):
		return options, errors.New("--for and --kind or --name are mutually exclusive")
	}
	if o.sinceTime != "" {
		at, err := time.Parse(time.RFC3339, o.sinceTime)
		if err != nil {
			return options, hint.Errorf("use a time such as 2026-11-01T10:00:00Z", "invalid --since-time %q", o.sinceTime)
		}
		options.SinceTime = at
	}
	if o.kind != "" {
		k, err := objref.Ref{Word: o.kind, Kinds: controllers.KindsNamed(o.kind)}.Kind()
		options.Filter.Kinds = []string{k.Kind}
		return options, err
	}
	return options, nil
}

func run(a *app.App, cmd *cobra.Command, o *options, args []string) error {
	options, err := o.parsed()
	if err != nil {
		return err
	}
	roots, err := o.selected(a, cmd, args, &options.Filter)
	if err != nil {
		return err
	}
	client, err := a.Client()
	if err != nil {
		return err
	}
	namespaces := []string{o.fluxNamespace}
	switch {
	case o.pods && len(roots) == 0:
		return hint.Errorf("add an object, e.g. flux logs hr/my-app --pods", "--pods requires an object")
	case o.pods:
		if namespaces, options.Select, err = workloads(cmd.Context(), a, client, roots); err != nil {
			return err
		}
		options.Filter = logs.Filter{}
	case len(roots) > 0:
		if options.Filter.Objects, err = inventories(cmd.Context(), a, client, roots); err != nil {
			return err
		}
	}
	a.LimitMemory(logMemory)
	options.Warn = a.UI.Warning
	if o.follow {
		options.Failed = a.Report // called concurrently
		return clierr.UntilInterrupted(cmd.Context(), followLogs(cmd.Context(), a, client, o, namespaces, options))
	}
	ctx, cancel := a.WithTimeout(cmd.Context())
	defer cancel()
	return readLogs(ctx, a, client, o, namespaces, options)
}

// selected sets the kinds and namespace of the filter. It returns the objects whose inventories the filter
// must include.
func (o *options) selected(a *app.App, cmd *cobra.Command, args []string, filter *logs.Filter) ([]objref.Target, error) {
	namespace, err := a.Namespace(cmd)
	if err != nil {
		return nil, err
	}
	about, err := objref.ParseSubjects(o.subject, args)
	if err != nil {
		return nil, err
	}
	if len(args) > 0 && (o.kind != "" || o.name != "") {
		return nil, errors.New("objects and --kind or --name are mutually exclusive")
	}
	roots, err := about.Targets(namespace)
	for _, k := range about.Kinds {
		filter.Kinds = append(filter.Kinds, k.Kind)
	}
	if len(roots) == 0 && !o.allNamespaces {
		filter.Namespace = namespace
	}
	return roots, err
}

// readLogs prints the existing logs.
func readLogs(ctx context.Context, a *app.App, client *kube.Client, o *options, namespaces []string, options logs.Options) error {
	var pods []logs.Pod
	for _, namespace := range namespaces {
		found, err := options.Pods(ctx, client, namespace)
		if err != nil {
			return err
		}
		pods = append(pods, found...)
	}
	switch {
	case len(pods) == 0 && o.pods:
		return errNoPods
	case len(pods) == 0:
		return hint.Errorf("set --flux-namespace to the namespace of the controllers", "no controller pods found in %q namespace", o.fluxNamespace)
	}
	var failed error
	options.Failed = func(err error) {
		a.Report(err)
		failed = clierr.ErrReported
	}
	out := bufio.NewWriterSize(logStream(a, o), 64<<10)
	format := logFormat(a, o)
	err := logs.Read(ctx, client, pods, options, func(e *logs.Entry) error { return format(out, e) })
	if err := errors.Join(err, out.Flush()); err != nil {
		return manyLogs(err)
	}
	return failed
}

// logMemory is the memory limit of the garbage collector. Each stream holds
// one line and its read buffer; without a limit, the heap may grow to twice
// their size.
const logMemory = 64 << 20

func followLogs(ctx context.Context, a *app.App, client *kube.Client, o *options, namespaces []string, options logs.Options) error {
	format := logFormat(a, o)
	out := bufio.NewWriter(logStream(a, o))
	options.Bound = a.WithTimeout
	var writing sync.Mutex
	each := func(e *logs.Entry) error {
		writing.Lock()
		defer writing.Unlock()
		return errors.Join(format(out, e), out.Flush())
	}
	g, ctx := errgroup.WithContext(ctx)
	for _, namespace := range namespaces {
		g.Go(func() error { return logs.Follow(ctx, client, namespace, options, each) })
	}
	err := g.Wait()
	if errors.Is(err, logs.ErrUnreadable) {
		return clierr.ErrReported
	}
	return manyLogs(err)
}

func manyLogs(err error) error {
	var many *logs.ManyError
	if errors.As(err, &many) {
		return hint.Errorf(fmt.Sprintf("allow it with --max-log-requests %d", many.Pods), "%w", err)
	}
	return err
}

// logStream returns the writer for standard output. Human-readable lines may be colored.
func logStream(a *app.App, o *options) io.Writer {
	if o.format == "json" {
		return a.Output("lines")
	}
	return a.Out
}

// logFormat returns the line format, with colored levels on a terminal.
func logFormat(a *app.App, o *options) logs.Format {
	if o.format == "json" {
		return logs.JSON
	}
	screen, terminal := a.Screen(true)
	if !terminal {
		return logs.Text
	}
	return logs.Screen(func(level string) string { return paintLevel(screen, level) })
}

func paintLevel(screen output.Screen, level string) string {
	hues := map[string]color.Attribute{"debug": color.Faint, "info": color.FgGreen, "error": color.FgRed}
	hue, ok := hues[level]
	if !ok || !screen.Color {
		return level
	}
	c := color.New(hue)
	c.EnableColor()
	return c.Sprint(level)
}
