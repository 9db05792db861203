// Package peers implements flux diff clusters.
package peers

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/clierr"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/clusters"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/command"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/complete"
	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/internal/secrets/redact"
	"github.com/fluxkit/flux/internal/terminal/output"
	"github.com/fluxkit/flux/internal/terminal/printable"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diff/peers"
)

type options struct {
	labels string
	format string
}

// NewCommand returns the command.
func NewCommand(a *app.App) *cobra.Command {
	o := &options{format: app.People}
	cmd := &cobra.Command{
		Use:   "clusters CONTEXT CONTEXT [CONTEXT ...]",
		Short: "Compare the Flux objects of clusters",
		Long: `Compare the Flux objects of several clusters, and the versions of Flux and its
controllers. Clusters are kubeconfig contexts, patterns and groups: see "flux
help clusters".

Comparison:
  An object is compared with the object of the same kind, namespace and name:
  its spec, whether it is ready or suspended, its applied revision and, for
  image policies, the latest image. Labels, annotations and the objects that
  Flux applies are not compared. --namespace selects the objects of a namespace;
  the default is all namespaces.`,
		Annotations: command.Exits{
			clierr.ExitSuccess: "the clusters are equal", clierr.ExitFailed: "the clusters differ",
			clierr.ExitUndetermined: "undetermined: a cluster could not be read, a kind could not be listed, or the command line is invalid",
		}.Annotations(),
		Example: `  # Compare two clusters
  flux diff clusters staging production

  # Compare the objects of a team in all production clusters
  flux diff clusters 'prod-*' -l team=blue

  # List the objects that are missing in one of the clusters
  flux diff clusters prod-eu prod-us -o json | jq '.differences[] | select(.field == "exists")'`,
		ValidArgsFunction: complete.Contexts(a),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.Interruptible(cmd, func() error { return run(a, cmd, o, args) })
		},
	}
	cmd.Flags().StringVarP(&o.labels, "label-selector", "l", "", "compare the objects with these labels, such as 'team=blue'")
	command.AddOutput(cmd.Flags(), &o.format, "output format", app.People, "json", "yaml")
	return cmd
}

func run(a *app.App, cmd *cobra.Command, o *options, args []string) error {
	if len(args) == 0 {
		return hint.Errorf("flux diff clusters staging production", "contexts are required")
	}
	contexts, err := clusters.Contexts(a, strings.Join(args, ","))
	if err != nil {
		return err
	}
	if len(contexts) < 2 {
		return hint.Errorf("flux diff clusters staging production", "only one context is selected: %s", contexts[0])
	}
	namespace := ""
	if cmd.Flags().Changed("namespace") {
		if namespace, err = a.Namespace(cmd); err != nil {
			return err
		}
	}
	ctx, cancel := a.WithTimeout(cmd.Context())
	defer cancel()
	states, err := read(ctx, a, contexts, peers.Options{FluxNamespace: a.FluxNamespace(), Namespace: namespace, Labels: o.labels})
	if err != nil {
		return err
	}
	return report(a, o.format, contexts, states)
}

// read reads the states of the clusters. It reports each cluster that cannot be read.
func read(ctx context.Context, a *app.App, contexts []string, o peers.Options) ([]*peers.State, error) {
	states, errs := make([]*peers.State, len(contexts)), make([]error, len(contexts))
	var group errgroup.Group
	group.SetLimit(app.Concurrency)
	for i, name := range contexts {
		group.Go(func() error {
			client, err := app.ClientIn(a, name)
			if err == nil {
				states[i], err = peers.Read(ctx, client, o)
			}
			errs[i] = err
			return nil
		})
	}
	_ = group.Wait() // the errors are in errs
	for i, name := range contexts {
		if errs[i] != nil {
			message, remedy := clierr.Explain(errs[i], nil)
			errs[i] = hint.Errorf(remedy, "%s: %s", name, message)
		}
	}
	return states, app.ReportAll(a, errs, func(err error) error { return err })
}

// document is the JSON and YAML output.
type document struct {
	// Flux has the version of Flux in each cluster, "" if it is not known.
	Flux        map[string]string `json:"flux"`
	Differences []difference      `json:"differences"`
	// NotCompared has the kinds that could not be listed in each cluster.
	NotCompared map[string][]string `json:"notCompared,omitempty"`
}

// difference is a field with its value in each cluster.
type difference struct {
	Object controllers.ID     `json:"object"`
	Field  string             `json:"field"`
	Values map[string]*string `json:"values"`
}

// report prints the differences, and returns the exit code.
func report(a *app.App, format string, contexts []string, states []*peers.State) error {
	found := peers.Compare(states)
	d := document{Flux: map[string]string{}, Differences: []difference{}, NotCompared: map[string][]string{}}
	table := output.Table{Headers: append([]string{"OBJECT", "FIELD"}, printable.Lines(contexts)...)}
	versions := []string{"Flux", peers.Version}
	for i, s := range states {
		d.Flux[contexts[i]] = s.Flux
		versions = append(versions, s.Flux)
		if len(s.Missed) > 0 {
			d.NotCompared[contexts[i]] = slices.Sorted(maps.Keys(s.Missed))
		}
	}
	same := len(slices.Compact(slices.Clone(versions[2:]))) == 1
	if !same {
		table.Rows = append(table.Rows, versions)
	}
	for _, f := range found {
		values := map[string]*string{}
		for i, v := range f.Values {
			if v != nil {
				*v = redact.Text(*v) // a URL with credentials
			}
			values[contexts[i]] = v
		}
		d.Differences = append(d.Differences, difference{f.Object, f.Field, values})
		table.Rows = append(table.Rows, append([]string{f.Object.String(), f.Field}, cells(f.Values)...))
	}
	if err := show(a, format, d, table); err != nil {
		return err
	}
	for i, name := range contexts {
		warn(a, name, states[i].Missed)
	}
	switch {
	case len(d.NotCompared) > 0:
		return &clierr.ExitCodeError{Code: clierr.ExitUndetermined}
	case !same || len(found) > 0:
		return &clierr.ExitCodeError{Code: clierr.ExitFailed}
	}
	a.UI.Success("no differences between the Flux objects of %s", strings.Join(contexts, ", "))
	return nil
}

// warn reports which kinds of a cluster are not compared.
func warn(a *app.App, name string, missed map[string]error) {
	var forbidden []string
	for _, kind := range slices.Sorted(maps.Keys(missed)) {
		if errors.Is(missed[kind], peers.ErrNoControllers) {
			a.UI.Warning("%s: versions not compared: %s in namespace %q", name, missed[kind], a.FluxNamespace())
			a.UI.Line("  set FLUX_SYSTEM_NAMESPACE to the namespace of the controllers")
		} else {
			forbidden = append(forbidden, kind)
		}
	}
	if len(forbidden) > 0 {
		a.UI.Warning("%s: not compared: no permission to list %s", name, strings.Join(forbidden, ", "))
	}
}

// cells returns the values for the table, with shortened digests if they still differ.
func cells(values []*string) []string {
	full, short := make([]string, len(values)), make([]string, len(values))
	for i, v := range values {
		full[i] = "<none>"
		if v != nil {
			full[i] = *v
		}
		short[i] = controllers.Shorten(full[i])
	}
	distinct := func(texts []string) int { return len(slices.Compact(slices.Sorted(slices.Values(texts)))) }
	if distinct(short) < distinct(full) {
		return full
	}
	return short
}

func show(a *app.App, format string, d document, table output.Table) error {
	switch {
	case format != app.People:
		return a.Encode(format, d)
	case len(table.Rows) > 0:
		return a.Table(table, app.TableStyle{})
	}
	return nil
}
