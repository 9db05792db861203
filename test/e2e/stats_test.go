package e2e_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/controllers"
)

// sample is a series as parsed by Prometheus.
type sample struct {
	Name, Type string
	Labels     map[string]string
	Value      float64
}

// worked is the output of `flux stats --metrics` for the controller of a kind.
type worked struct {
	Controller      string
	Reconciliations float64
	Failures        float64
	P50Seconds      *float64
	P95Seconds      *float64
	Queue           float64
}

// compareStats compares the output of stats with the endpoints of the controllers and with
// the objects.
func compareStats(f *fixture) {
	reader := buildOutside(f.t, "series")
	compareMetrics(f, reader)
	compareConditions(f, reader)
}

// parseMetrics parses the text format of Prometheus.
func parseMetrics(t *testing.T, reader, text string) []sample {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), reader)
	cmd.Stdin = strings.NewReader(text)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("Prometheus cannot parse this: %v\n%s", err, text)
	}
	var all []sample
	if err := json.Unmarshal(out, &all); err != nil {
		t.Fatal(err)
	}
	return all
}

// compareMetrics repeats the comparison until the endpoints return the same before and after:
// controllers reconcile at any time.
func compareMetrics(f *fixture, reader string) {
	f.t.Helper()
	late := deadline(f.t)
	for {
		before := expectedStats(f, reader)
		var got []worked
		if err := json.Unmarshal([]byte(f.shell.run("flux", "stats", "--metrics", "--output=json")), &got); err != nil {
			f.t.Fatal(err)
		}
		text := f.shell.run("flux", "stats", "--metrics")
		if gocmp.Equal(before, expectedStats(f, reader)) {
			if diff := gocmp.Diff(before, got); diff != "" {
				f.t.Errorf("-endpoints +stats:\n%s", diff)
			}
			checkTable(f.t, got, text)
			return
		}
		select {
		case <-late:
			f.t.Fatalf("the controllers do not become idle: -endpoints +stats:\n%s", gocmp.Diff(before, got))
		default:
		}
	}
}

// expectedStats computes the expected output from the endpoints of all controllers.
func expectedStats(f *fixture, reader string) []worked {
	f.t.Helper()
	found := map[string]*worked{}
	buckets := map[string]map[float64]float64{}
	for _, address := range metricsEndpoints(f) {
		for _, m := range parseMetrics(f.t, reader, httpGet(f.t, address)) {
			name := cmp.Or(m.Labels["controller"], m.Labels["name"])
			w := cmp.Or(found[name], &worked{Controller: name})
			switch m.Name {
			case "controller_runtime_reconcile_total":
				w.Reconciliations += m.Value
			case "controller_runtime_reconcile_errors_total":
				w.Failures += m.Value
			case "workqueue_depth":
				w.Queue += m.Value
			case "controller_runtime_reconcile_time_seconds_bucket":
				if buckets[name] == nil {
					buckets[name] = map[float64]float64{}
				}
				bound, err := strconv.ParseFloat(m.Labels["le"], 64)
				if err != nil {
					f.t.Fatal(err)
				}
				buckets[name][bound] += m.Value
			default:
				continue
			}
			found[name] = w
		}
	}
	var all []worked
	for name, w := range found {
		w.P50Seconds, w.P95Seconds = quantile(buckets[name], 0.5), quantile(buckets[name], 0.95)
		all = append(all, *w)
	}
	slices.SortFunc(all, func(a, b worked) int { return strings.Compare(a.Controller, b.Controller) })
	return all
}

// quantile implements histogram_quantile of Prometheus: the bucket with the rank,
// interpolated by the position of the rank in it.
func quantile(buckets map[float64]float64, share float64) *float64 {
	rank, low, high := share*buckets[math.Inf(1)], 0.0, math.Inf(1)
	if buckets[math.Inf(1)] == 0 {
		return nil
	}
	for bound, count := range buckets {
		if count < rank {
			low = max(low, bound)
		} else {
			high = min(high, bound)
		}
	}
	value := low
	if !math.IsInf(high, 1) {
		value += (high - low) * (rank - buckets[low]) / (buckets[high] - buckets[low])
	}
	return &value
}

// metricsEndpoints returns the addresses of the controllers' metrics, which are read without
// the API server.
func metricsEndpoints(f *fixture) []string {
	f.t.Helper()
	var all []string
	for _, p := range sandboxProcesses(f) {
		if port := p.Ports["8080"]; port != 0 {
			all = append(all, fmt.Sprintf("http://127.0.0.1:%d/metrics", port))
		}
	}
	if len(all) != 7 {
		f.t.Fatalf("%d controllers, want 7", len(all))
	}
	return all
}

func httpGet(t *testing.T, address string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	if err := response.Body.Close(); err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("%s returns %s, %v", address, response.Status, err)
	}
	return string(body)
}

// checkTable checks that the table has a row for each controller.
func checkTable(t *testing.T, want []worked, text string) {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(text), "\n")
	if len(lines) != len(want)+1 || !slices.Equal(strings.Fields(lines[0]), []string{"CONTROLLER", "RECONCILED", "FAILED", "P50", "P95", "QUEUE"}) {
		t.Fatalf("the table is\n%s", text)
	}
	busy := 0
	for i, w := range want {
		fields := strings.Fields(lines[i+1])
		if fields[0] != w.Controller || fields[1] != fmt.Sprint(w.Reconciliations) || fields[2] != fmt.Sprint(w.Failures) || fields[5] != fmt.Sprint(w.Queue) ||
			(fields[3] == "-") != (w.P50Seconds == nil) {
			t.Errorf("%+v is printed as %q", w, lines[i+1])
		}
		if w.Reconciliations > 0 && w.P95Seconds != nil && *w.P95Seconds >= *w.P50Seconds {
			busy++
		}
	}
	if busy < 10 {
		t.Errorf("only %d controllers have reconciled:\n%s", busy, text)
	}
}

// compareConditions compares -o prometheus with the objects.
func compareConditions(f *fixture, reader string) {
	f.t.Helper()
	want := map[string]float64{}
	for _, k := range controllers.Kinds {
		_, err := f.cluster.Client.List(f.t.Context(), kube.Of(k), kube.Selection{}, func(o controllers.Object) error {
			ready, _ := controllers.FindCondition(o, "Ready")
			name := fmt.Sprintf("%s %s/%s ", k.Kind, controllers.Namespace(o), controllers.Name(o))
			for _, status := range []string{"True", "False", "Unknown", "Deleted"} {
				want[name+status] = 0
			}
			want[name+ready.Status] = 1
			want[name+"suspended"] = 0
			if text(o, "spec.suspend") == "true" {
				want[name+"suspended"] = 1
			}
			return nil
		})
		if err != nil {
			f.t.Fatal(err)
		}
	}
	got := map[string]float64{}
	for _, m := range parseMetrics(f.t, reader, f.shell.run("flux", "stats", "--all-namespaces", "--output=prometheus")) {
		l := m.Labels
		key := fmt.Sprintf("%s %s/%s ", l["kind"], l["namespace"], l["name"])
		switch {
		case m.Name == "gotk_reconcile_condition" && m.Type == "GAUGE" && l["type"] == "Ready" && len(l) == 5:
			got[key+l["status"]] = m.Value
		case m.Name == "gotk_suspend_status" && m.Type == "GAUGE" && len(l) == 3:
			got[key+"suspended"] = m.Value
		default:
			f.t.Errorf("unexpected series %+v", m)
		}
	}
	if diff := gocmp.Diff(want, got); diff != "" {
		f.t.Errorf("-objects +series:\n%s", diff)
	}
	if got["HelmRelease apps/shop suspended"] != 1 || got["Kustomization apps/fleet True"] != 1 {
		f.t.Errorf("unexpected conditions: %v", got)
	}
}
