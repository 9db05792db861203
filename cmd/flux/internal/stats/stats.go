// Package stats implements the stats command.
package stats

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/clierr"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/command"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/complete"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/kinds"
	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/internal/secrets/redact"
	"github.com/fluxkit/flux/pkg/controllers"
)

type options struct {
	allNamespaces bool
	metrics       bool
	fluxNamespace string
	format        string
}

// NewCommand returns the stats command.
func NewCommand(a *app.App) *cobra.Command {
	o := &options{}
	cmd := &cobra.Command{
		Use:   "stats",
		Short: "Show the number of running, failing and suspended resources",
		Long: `Count Flux resources by kind: running, not ready and suspended resources, and
the storage of their artifacts.

Output:
  -o wide adds stalled resources and the resource that has been failing for the
  longest time. -o prometheus prints the metrics gotk_reconcile_condition and
  gotk_suspend_status, which the controllers no longer export.`,
		Example: `  # Count the resources of one or all namespaces
  flux stats -n apps
  flux stats -A -o wide

  # Show the reconciliation metrics of the controllers
  flux stats --metrics

  # Write metrics for the textfile collector of node-exporter
  flux stats -A -o prometheus`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.metrics {
				return controllerStats(a, cmd, o)
			}
			return run(a, cmd, o)
		},
	}
	cmd.PersistentFlags().BoolVarP(&o.allNamespaces, "all-namespaces", "A", false, "count the resources of all namespaces")
	fs := cmd.Flags()
	fs.BoolVar(&o.metrics, "metrics", false, "show the reconciliation metrics of the controllers")
	fs.StringVar(&o.fluxNamespace, "flux-namespace", a.FluxNamespace(), "namespace of the Flux controllers, with --metrics")
	complete.Flag(cmd, "flux-namespace", complete.Namespaces(a))
	command.AddOutput(fs, &o.format, "output format", "wide", "json", "yaml", "prometheus")
	return cmd
}

func (o *options) check() error {
	if o.format == "prometheus" && o.metrics {
		return hint.Errorf("scrape the controllers, or omit --metrics", "-o prometheus and --metrics are mutually exclusive")
	}
	return nil
}

// countedKinds are the kinds in the table of Flux 2.9, in its order. Other
// output formats include all kinds.
var countedKinds = []string{
	"GitRepository", "OCIRepository", "HelmRepository", "HelmChart", "Bucket", "Kustomization", "HelmRelease",
	"Alert", "Provider", "Receiver", "ImageUpdateAutomation", "ImagePolicy", "ImageRepository",
}

func (o *options) kinds() []controllers.Kind {
	var rows []controllers.Kind
	for _, name := range countedKinds {
		if k, ok := controllers.FindKind(name); ok {
			rows = append(rows, k)
		}
	}
	if o.format == "" {
		return rows
	}
	for _, k := range controllers.Kinds {
		if !slices.Contains(countedKinds, k.Kind) {
			rows = append(rows, k)
		}
	}
	return rows
}

// kindStats has the counts of a kind.
type kindStats struct {
	Kind      string `json:"kind"`
	Running   int    `json:"running"`
	Failing   int    `json:"failing"`
	Suspended int    `json:"suspended"`
	Stalled   int    `json:"stalled"`
	// Storage is the size of the artifacts in bytes.
	Storage int64 `json:"storageBytes"`
	// Oldest is the object that has been failing for the longest time.
	Oldest *failure `json:"oldestFailure,omitempty"`

	states []objectState
	err    error
}

// failure is an object that is not ready.
type failure struct {
	Kind      string    `json:"kind"`
	Namespace string    `json:"namespace"`
	Name      string    `json:"name"`
	Since     time.Time `json:"since"`
	Message   string    `json:"message"`
}

// objectState contains the metric values of an object.
type objectState struct {
	kind, namespace, name, ready string
	suspended                    bool
}

func run(a *app.App, cmd *cobra.Command, o *options) error {
	if err := o.check(); err != nil {
		return err
	}
	client, namespace, err := a.Connect(cmd)
	if err != nil {
		return err
	}
	if o.allNamespaces {
		namespace = ""
	}
	ctx, cancel := a.WithTimeout(cmd.Context())
	defer cancel()
	all := make([]kindStats, len(o.kinds()))
	var wg sync.WaitGroup
	for i, k := range o.kinds() {
		wg.Go(func() { all[i] = count(ctx, client, k, namespace, o.format == "prometheus") })
	}
	wg.Wait()
	var there []kindStats
	var failed error
	var errs []error
	missing := 0
	for _, s := range all {
		var absent *kube.MissingKindError
		switch {
		case s.err == nil:
			there = append(there, s)
		case errors.As(s.err, &absent):
			missing++
			if o.format == "" {
				there = append(there, s) // Flux 2.9 prints all rows, even on a default installation
			}
		case ctx.Err() != nil || clierr.Unreachable(s.err):
			return s.err
		default:
			errs = append(errs, s.err)
		}
	}
	if app.ReportLists(a, errs); len(errs) > 0 {
		failed = clierr.ErrReported
	}
	if missing == len(all) {
		return kinds.NotServed(controllers.Kinds)
	}
	if err := printStats(a, o, there); err != nil {
		return err
	}
	return failed
}

// count lists and counts the objects of a kind.
func count(ctx context.Context, client *kube.Client, k controllers.Kind, namespace string, states bool) kindStats {
	s := kindStats{Kind: k.Kind}
	selection := kube.Selection{Namespace: namespace, Without: []string{
		"metadata.managedFields",
		"spec.values", "spec.postRenderers", "spec.patches", "spec.postBuild", "status.inventory", "status.history",
	}}
	s.err = client.WithServedVersion(ctx, k, func(r kube.Resource) error {
		s = kindStats{Kind: k.Kind}
		_, err := client.List(ctx, r, selection, func(o controllers.Object) error {
			s.take(k, o, states)
			return nil
		})
		return err
	})
	return s
}

func (s *kindStats) take(k controllers.Kind, o controllers.Object, state bool) {
	suspended := k.Suspension.Is(o)
	if suspended {
		s.Suspended++
	} else {
		s.Running++
	}
	if _, stalled := controllers.Stalled(o); stalled {
		s.Stalled++
	}
	size, _ := controllers.Path{"status.artifact.size"}.Lookup(o)
	if n, ok := size.(int64); ok {
		s.Storage += n
	}
	ready, ok := controllers.FindCondition(o, "Ready")
	if ok && ready.Status == "False" {
		s.Failing++
		s.fails(k, o, ready)
	}
	if state {
		s.states = append(s.states, objectState{k.Kind, controllers.Namespace(o), controllers.Name(o), readiness(k, o), suspended})
	}
}

// readiness returns the status of the Ready condition, or Unknown for an
// object that was never reconciled, so that alerts fire only on failures.
func readiness(k controllers.Kind, o controllers.Object) string {
	if ready := k.Ready(o); ready.Reason != "" || ready.Status == "True" {
		return ready.Status
	}
	return "Unknown"
}

// fails updates the object that has been failing for the longest time.
func (s *kindStats) fails(k controllers.Kind, o controllers.Object, ready controllers.Condition) {
	since, err := time.Parse(time.RFC3339, ready.LastTransitionTime)
	if err != nil || s.Oldest != nil && !since.Before(s.Oldest.Since) {
		return
	}
	s.Oldest = &failure{k.Kind, controllers.Namespace(o), controllers.Name(o), since, redact.Text(ready.Message)}
}

// add adds the counts of another kind.
func (s *kindStats) add(other kindStats) {
	s.Running += other.Running
	s.Failing += other.Failing
	s.Suspended += other.Suspended
	s.Stalled += other.Stalled
	s.Storage += other.Storage
	if other.Oldest != nil && (s.Oldest == nil || other.Oldest.Since.Before(s.Oldest.Since)) {
		s.Oldest = other.Oldest
	}
}
