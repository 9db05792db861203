// Package metrics reads metrics of controllers in the Prometheus text format.
package metrics

import (
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/fluxkit/flux/internal/budget"
)

// textMax is the maximum size of the metrics of a process. Controllers with thousands of objects
// export several megabytes.
const textMax = 64 << 20

// Series is a sample: a name, its labels and a value.
type Series struct {
	Name   string
	Labels map[string]string
	Value  float64
}

// bucketSuffix is the name suffix of histogram buckets.
const bucketSuffix = "_bucket"

// Read calls each for the series with one of the names, in the order of the names.
func Read(r io.Reader, names []string, each func(Series)) error {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(budget.Reader(r, textMax, budget.TooLarge("", "the text", textMax)))
	if err != nil {
		return fmt.Errorf("reading metrics: %w", err)
	}
	for _, name := range names {
		if family := families[name]; family != nil {
			samples(name, family, each)
		} else if histogram, ok := strings.CutSuffix(name, bucketSuffix); ok && families[histogram].GetType() == dto.MetricType_HISTOGRAM {
			buckets(name, families[histogram], each)
		}
	}
	return nil
}

// samples calls each with the series of a counter, a gauge, or a metric without type.
func samples(name string, family *dto.MetricFamily, each func(Series)) {
	for _, m := range family.GetMetric() {
		// At most one of these exists; the others are 0.
		value := m.GetCounter().GetValue() + m.GetGauge().GetValue() + m.GetUntyped().GetValue()
		each(Series{name, labels(m), value})
	}
}

// buckets calls each with the buckets of a histogram.
func buckets(name string, family *dto.MetricFamily, each func(Series)) {
	for _, m := range family.GetMetric() {
		own := labels(m)
		for _, b := range m.GetHistogram().GetBucket() {
			with := maps.Clone(own)
			with[model.BucketLabel] = strconv.FormatFloat(b.GetUpperBound(), 'g', -1, 64)
			each(Series{name, with, float64(b.GetCumulativeCount())})
		}
	}
}

func labels(m *dto.Metric) map[string]string {
	all := map[string]string{}
	for _, l := range m.GetLabel() {
		all[l.GetName()] = l.GetValue()
	}
	return all
}

// Histogram maps the upper bounds of buckets to their cumulative counts.
type Histogram map[float64]float64

// Add adds a bucket.
func (h Histogram) Add(s Series) {
	if bound, err := strconv.ParseFloat(s.Labels["le"], 64); err == nil {
		h[bound] += s.Value
	}
}

// Quantile returns the estimated quantile, interpolated within a bucket as by Prometheus. It is
// NaN for an empty histogram.
func (h Histogram) Quantile(share float64) float64 {
	var bounds []float64
	for b := range h {
		bounds = append(bounds, b)
	}
	slices.Sort(bounds)
	if len(bounds) == 0 || h[bounds[len(bounds)-1]] == 0 {
		return math.NaN()
	}
	rank := share * h[bounds[len(bounds)-1]]
	low, below := 0.0, 0.0
	for _, b := range bounds {
		if h[b] >= rank {
			if math.IsInf(b, 1) || h[b] == below {
				return low
			}
			return low + (b-low)*(rank-below)/(h[b]-below)
		}
		low, below = b, h[b]
	}
	return low
}
