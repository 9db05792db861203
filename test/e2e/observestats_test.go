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

// counts compares the output of stats with the endpoints of the controllers and with
// the objects.
func (s *story) counts() {
	reader := s.outside("series")
	s.metrics(reader)
	s.conditions(reader)
}

// samples parses the text format of Prometheus.
func (s *story) samples(reader, text string) []sample {
	s.Helper()
	cmd := exec.CommandContext(s.Context(), reader)
	cmd.Stdin = strings.NewReader(text)
	out, err := cmd.Output()
	if err != nil {
		s.Fatalf("Prometheus cannot parse this: %v\n%s", err, text)
	}
	var all []sample
	if err := json.Unmarshal(out, &all); err != nil {
		s.Fatal(err)
	}
	return all
}

// metrics repeats the comparison until the endpoints return the same before and after:
// controllers reconcile at any time.
func (s *story) metrics(reader string) {
	s.Helper()
	late := s.deadline()
	for {
		before := s.measured(reader)
		var got []worked
		if err := json.Unmarshal([]byte(s.run("flux", "stats", "--metrics", "--output=json")), &got); err != nil {
			s.Fatal(err)
		}
		text := s.run("flux", "stats", "--metrics")
		if gocmp.Equal(before, s.measured(reader)) {
			if diff := gocmp.Diff(before, got); diff != "" {
				s.Errorf("-endpoints +stats:\n%s", diff)
			}
			s.tabulated(got, text)
			return
		}
		select {
		case <-late:
			s.Fatal("the controllers do not become idle")
		default:
		}
	}
}

// measured computes the expected output from the endpoints of all controllers.
func (s *story) measured(reader string) []worked {
	s.Helper()
	found := map[string]*worked{}
	buckets := map[string]map[float64]float64{}
	for _, address := range s.endpoints() {
		for _, m := range s.samples(reader, s.fetch(address)) {
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
					s.Fatal(err)
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

// quantile is Prometheus' histogram_quantile: the bucket with the rank, interpolated
// by the position of the rank in it.
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

// endpoints returns the addresses of the controllers' metrics, which are read without
// the API server.
func (s *story) endpoints() []string {
	s.Helper()
	var all []string
	for _, p := range s.parts() {
		if port := p.Ports["8080"]; port != 0 {
			all = append(all, fmt.Sprintf("http://127.0.0.1:%d/metrics", port))
		}
	}
	if len(all) != 7 {
		s.Fatalf("%d controllers, want 7", len(all))
	}
	return all
}

func (s *story) fetch(address string) string {
	s.Helper()
	request, err := http.NewRequestWithContext(s.Context(), http.MethodGet, address, nil)
	if err != nil {
		s.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		s.Fatal(err)
	}
	body, err := io.ReadAll(response.Body)
	if err != nil {
		s.Fatal(err)
	}
	if err := response.Body.Close(); err != nil || response.StatusCode != http.StatusOK {
		s.Fatalf("%s returns %s, %v", address, response.Status, err)
	}
	return string(body)
}

// tabulated checks that the table has a row for each controller.
func (s *story) tabulated(want []worked, text string) {
	s.Helper()
	lines := strings.Split(strings.TrimSpace(text), "\n")
	if len(lines) != len(want)+1 || !slices.Equal(strings.Fields(lines[0]), []string{"CONTROLLER", "RECONCILED", "FAILED", "P50", "P95", "QUEUE"}) {
		s.Fatalf("the table is\n%s", text)
	}
	busy := 0
	for i, w := range want {
		fields := strings.Fields(lines[i+1])
		if fields[0] != w.Controller || fields[1] != fmt.Sprint(w.Reconciliations) || fields[2] != fmt.Sprint(w.Failures) || fields[5] != fmt.Sprint(w.Queue) ||
			(fields[3] == "-") != (w.P50Seconds == nil) {
			s.Errorf("%+v is printed as %q", w, lines[i+1])
		}
		if w.Reconciliations > 0 && w.P95Seconds != nil && *w.P95Seconds >= *w.P50Seconds {
			busy++
		}
	}
	if busy < 10 {
		s.Errorf("only %d controllers have reconciled:\n%s", busy, text)
	}
}

// conditions compares -o prometheus with the objects.
func (s *story) conditions(reader string) {
	s.Helper()
	want := map[string]float64{}
	for _, k := range controllers.Kinds {
		_, err := s.cluster.Client.List(s.Context(), kube.Of(k), kube.Selection{}, func(o controllers.Object) error {
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
			s.Fatal(err)
		}
	}
	got := map[string]float64{}
	for _, m := range s.samples(reader, s.run("flux", "stats", "--all-namespaces", "--output=prometheus")) {
		l := m.Labels
		key := fmt.Sprintf("%s %s/%s ", l["kind"], l["namespace"], l["name"])
		switch {
		case m.Name == "gotk_reconcile_condition" && m.Type == "GAUGE" && l["type"] == "Ready" && len(l) == 5:
			got[key+l["status"]] = m.Value
		case m.Name == "gotk_suspend_status" && m.Type == "GAUGE" && len(l) == 3:
			got[key+"suspended"] = m.Value
		default:
			s.Errorf("unexpected series %+v", m)
		}
	}
	if diff := gocmp.Diff(want, got); diff != "" {
		s.Errorf("-objects +series:\n%s", diff)
	}
	if got["HelmRelease apps/shop suspended"] != 1 || got["Kustomization apps/fleet True"] != 1 {
		s.Errorf("unexpected conditions: %v", got)
	}
}
