package stats

import (
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/report"
	"github.com/fluxkit/flux/internal/terminal/output"
)

// fluxStats is the JSON and YAML output.
type fluxStats struct {
	Reconcilers []kindStats `json:"reconcilers"`
	Total       kindStats   `json:"total"`
}

func printStats(a *app.App, o *options, all []kindStats) error {
	total := kindStats{Kind: "Total"}
	for _, s := range all {
		total.add(s)
	}
	switch o.format {
	case "json", "yaml":
		return a.Encode(o.format, fluxStats{all, total})
	case "prometheus":
		return printSeries(a, all)
	}
	wide := o.format == "wide"
	t := output.Table{Headers: []string{"RECONCILERS", "RUNNING", "FAILING", "SUSPENDED", "STORAGE"}}
	if wide {
		t.Headers = []string{"RECONCILERS", "RUNNING", "FAILING", "SUSPENDED", "STALLED", "STORAGE", "OLDEST FAILURE"}
		all = append(all[:len(all):len(all)], total)
	}
	for _, s := range all {
		t.Rows = append(t.Rows, statsRow(a, s, wide))
	}
	return a.Table(t, app.TableStyle{})
}

func statsRow(a *app.App, s kindStats, wide bool) []string {
	row := []string{s.Kind, fmt.Sprint(s.Running), fmt.Sprint(s.Failing), fmt.Sprint(s.Suspended)}
	if !wide {
		return append(row, size(s.Storage))
	}
	oldest := ""
	if f := s.Oldest; f != nil {
		oldest = fmt.Sprintf("%s/%s/%s for %s", f.Kind, f.Namespace, f.Name, since(a, f.Since))
	}
	return append(row, fmt.Sprint(s.Stalled), size(s.Storage), oldest)
}

// size formats a number of bytes, or "-" for 0.
func size(bytes int64) string {
	if bytes == 0 {
		return "-"
	}
	if bytes < 1024 {
		return fmt.Sprintf("%d B", bytes)
	}
	value, unit := float64(bytes)/1024, 0
	for ; value >= 1024 && unit < 3; unit++ {
		value /= 1024
	}
	return fmt.Sprintf("%.1f %ciB", value, "KMGT"[unit])
}

// printSeries prints, in the Prometheus text format, the metrics that earlier
// controllers exported and alert rules still use.
func printSeries(a *app.App, all []kindStats) error {
	err := a.Printf("# HELP gotk_reconcile_condition The current condition status of a Flux object.\n# TYPE gotk_reconcile_condition gauge\n")
	each := func(show func(objectState) error) {
		for _, s := range all {
			for _, o := range s.states {
				err = errors.Join(err, show(o))
			}
		}
	}
	each(func(o objectState) error {
		var failed error
		for _, status := range []string{"True", "False", "Unknown", "Deleted"} {
			failed = errors.Join(failed, a.Printf("gotk_reconcile_condition{kind=%q,name=%q,namespace=%q,status=%q,type=\"Ready\"} %d\n",
				o.kind, o.name, o.namespace, status, report.OneIf(o.ready == status)))
		}
		return failed
	})
	err = errors.Join(err, a.Printf("# HELP gotk_suspend_status The current suspend status of a Flux object.\n# TYPE gotk_suspend_status gauge\n"))
	each(func(o objectState) error {
		return a.Printf("gotk_suspend_status{kind=%q,name=%q,namespace=%q} %d\n", o.kind, o.name, o.namespace, report.OneIf(o.suspended))
	})
	return err
}

func since(a *app.App, at time.Time) string { return duration.HumanDuration(a.Now().Sub(at)) }
