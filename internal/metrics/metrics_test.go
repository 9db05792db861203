package metrics_test

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fluxkit/flux/internal/metrics"
)

func TestRead(t *testing.T) {
	t.Parallel()
	text := `# HELP depth of the queue
depth{name="a \"quoted\" \\ name",controller="x"} 3
depth 4 1700000000000
depths{name="other"} 5
took_bucket{le="+Inf",} 7
`
	var got []metrics.Series
	err := metrics.Read(strings.NewReader(text), []string{"depth", "took_bucket"}, func(s metrics.Series) { got = append(got, s) })
	if err != nil {
		t.Fatal(err)
	}
	want := []metrics.Series{
		{Name: "depth", Labels: map[string]string{"name": `a "quoted" \ name`, "controller": "x"}, Value: 3},
		{Name: "depth", Labels: map[string]string{}, Value: 4},
		{Name: "took_bucket", Labels: map[string]string{"le": "+Inf"}, Value: 7},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for _, bad := range []string{"depth{}", "depth{name=\"a} 3", "depth{} much"} {
		if err := metrics.Read(strings.NewReader(bad), []string{"depth"}, func(metrics.Series) {}); err == nil {
			t.Errorf("%s is taken", bad)
		}
	}
}

func TestQuantile(t *testing.T) {
	t.Parallel()
	h := metrics.Histogram{1: 50, 2: 90, math.Inf(1): 100}
	for share, want := range map[float64]float64{0.25: 0.5, 0.5: 1, 0.7: 1.5, 0.95: 2} {
		if got := h.Quantile(share); math.Abs(got-want) > 1e-9 {
			t.Errorf("%v: %v, want %v", share, got, want)
		}
	}
	if !math.IsNaN(metrics.Histogram{}.Quantile(0.5)) {
		t.Error("nothing has a median")
	}
}
