package stats

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/clierr"
	"github.com/fluxkit/flux/cmd/flux/internal/stats/metrics"
	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/internal/terminal/output"
	"github.com/fluxkit/flux/pkg/logs"
)

// metricsPort is the metrics port of every Flux controller.
const metricsPort = 8080

// Metrics of controller-runtime.
const (
	reconciled = "controller_runtime_reconcile_total"
	failures   = "controller_runtime_reconcile_errors_total"
	took       = "controller_runtime_reconcile_time_seconds_bucket"
	queued     = "workqueue_depth"
)

// work has the reconciliation metrics of a controller since it started.
type work struct {
	Controller string  `json:"controller"`
	Reconciled float64 `json:"reconciliations"`
	Failed     float64 `json:"failures"`
	// P50 and P95 are percentiles of the reconciliation duration in seconds,
	// or null without reconciliations.
	P50   *float64 `json:"p50Seconds"`
	P95   *float64 `json:"p95Seconds"`
	Queue float64  `json:"queue"`

	took metrics.Histogram
}

// controllerStats prints the metrics of the controllers, summed over replicas.
func controllerStats(a *app.App, cmd *cobra.Command, o *options) error {
	if err := o.check(); err != nil {
		return err
	}
	client, err := a.Client()
	if err != nil {
		return err
	}
	ctx, cancel := a.WithTimeout(cmd.Context())
	defer cancel()
	pods, err := logs.Pods(ctx, client, o.fluxNamespace)
	if err != nil {
		return err
	}
	if len(pods) == 0 {
		return hint.Errorf("set --flux-namespace to the namespace of the controllers", "no controller pods found in %q namespace", o.fluxNamespace)
	}
	found := map[string]*work{}
	var mu sync.Mutex
	errs := make([]error, len(pods))
	var wg sync.WaitGroup
	for i, pod := range pods {
		wg.Go(func() {
			errs[i] = readMetrics(ctx, client, pod, func(s metrics.Series) {
				mu.Lock()
				defer mu.Unlock()
				addSample(found, s)
			})
		})
	}
	wg.Wait()
	var failed error
	for _, err := range errs {
		if err != nil {
			a.Report(err)
			failed = clierr.ErrReported
		}
	}
	return errors.Join(printWork(a, o, found), failed)
}

// readMetrics reads the metrics of a pod.
func readMetrics(ctx context.Context, client *kube.Client, pod logs.Pod, each func(metrics.Series)) (err error) {
	conn, err := client.Pods().Forward(ctx, pod.Namespace, pod.Name, metricsPort)
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	defer func() { err = errors.Join(err, conn.Close()) }()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+pod.Name+"/metrics", nil)
	if err != nil {
		return err
	}
	request.Close = true
	if err := request.Write(conn); err != nil {
		return fmt.Errorf("requesting the metrics of pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	response, err := http.ReadResponse(bufio.NewReader(conn), request)
	if err != nil {
		return fmt.Errorf("reading the metrics of pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	defer func() { err = errors.Join(err, response.Body.Close()) }()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("pod %s/%s rejected the metrics request: %s", pod.Namespace, pod.Name, response.Status)
	}
	return metrics.Read(response.Body, []string{reconciled, failures, took, queued}, each)
}

// addSample adds a sample to the metrics of its controller.
func addSample(found map[string]*work, s metrics.Series) {
	name := cmp.Or(s.Labels["controller"], s.Labels["name"])
	w := found[name]
	if w == nil {
		w = &work{Controller: name, took: metrics.Histogram{}}
		found[name] = w
	}
	switch s.Name {
	case reconciled:
		w.Reconciled += s.Value
	case failures:
		w.Failed += s.Value
	case queued:
		w.Queue += s.Value
	default:
		w.took.Add(s)
	}
}

func printWork(a *app.App, o *options, found map[string]*work) error {
	all := []*work{}
	t := output.Table{Headers: []string{"CONTROLLER", "RECONCILED", "FAILED", "P50", "P95", "QUEUE"}}
	for _, name := range slices.Sorted(maps.Keys(found)) {
		w := found[name]
		w.P50, w.P95 = seconds(w.took.Quantile(0.5)), seconds(w.took.Quantile(0.95))
		all = append(all, w)
		t.Rows = append(t.Rows, []string{strings.ToLower(name), fmt.Sprint(w.Reconciled), fmt.Sprint(w.Failed), shownSeconds(w.P50), shownSeconds(w.P95), fmt.Sprint(w.Queue)})
	}
	if o.format == "json" || o.format == "yaml" {
		return a.Encode(o.format, all)
	}
	return a.Table(t, app.TableStyle{})
}

// seconds returns nil for NaN, which JSON cannot encode.
func seconds(s float64) *float64 {
	if math.IsNaN(s) {
		return nil
	}
	return &s
}

func shownSeconds(s *float64) string {
	if s == nil {
		return "-"
	}
	return time.Duration(*s * float64(time.Second)).Round(time.Millisecond).String()
}
