package metrics_test

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fluxkit/flux/cmd/flux/internal/stats/metrics"
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

func TestReadTypes(t *testing.T) {
	t.Parallel()
	text := `# HELP took Length of time per reconciliation per controller.
# TYPE took histogram
took_bucket{controller="a",le="0.5"} 2
took_bucket{controller="a",le="+Inf"} 3
took_sum{controller="a"} 1.5
took_count{controller="a"} 3
# TYPE done counter
done{controller="a"} 3e2
# TYPE depth gauge
depth{name="a"} 0
# TYPE other summary
other{quantile="0.5"} 1
other_sum 1
other_count 1
`
	var got []metrics.Series
	err := metrics.Read(strings.NewReader(text), []string{"done", "took_bucket", "depth", "absent_bucket", "other_bucket"}, func(s metrics.Series) { got = append(got, s) })
	if err != nil {
		t.Fatal(err)
	}
	want := []metrics.Series{
		{Name: "done", Labels: map[string]string{"controller": "a"}, Value: 300},
		{Name: "took_bucket", Labels: map[string]string{"controller": "a", "le": "0.5"}, Value: 2},
		{Name: "took_bucket", Labels: map[string]string{"controller": "a", "le": "+Inf"}, Value: 3},
		{Name: "depth", Labels: map[string]string{"name": "a"}, Value: 0},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// endless is a text that never ends.
type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = '#'
	}
	return len(p), nil
}

func TestReadIsBounded(t *testing.T) {
	t.Parallel()
	err := metrics.Read(endless{}, []string{"depth"}, func(metrics.Series) {})
	if err == nil || !strings.Contains(err.Error(), "larger than 64 MiB") {
		t.Error(err)
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
