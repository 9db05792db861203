// Command series parses the Prometheus text format on standard input with the
// parser of Prometheus and prints its series as JSON, a list of names, labels and
// values. A histogram is printed as its buckets, count and sum.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

func main() {
	if err := run(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "series:", err)
		os.Exit(1)
	}
}

type series struct {
	Name   string            `json:"name"`
	Type   string            `json:"type"`
	Labels map[string]string `json:"labels"`
	Value  float64           `json:"value"`
}

func run(in io.Reader, out io.Writer) error {
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(in)
	if err != nil {
		return err
	}
	all := []series{}
	for name, family := range families {
		for _, m := range family.GetMetric() {
			all = append(all, of(name, family.GetType(), m)...)
		}
	}
	return json.NewEncoder(out).Encode(all)
}

func of(name string, kind dto.MetricType, m *dto.Metric) []series {
	one := func(suffix string, value float64, more ...string) series {
		s := series{Name: name + suffix, Type: kind.String(), Labels: map[string]string{}, Value: value}
		for _, l := range m.GetLabel() {
			s.Labels[l.GetName()] = l.GetValue()
		}
		for i := 0; i < len(more); i += 2 {
			s.Labels[more[i]] = more[i+1]
		}
		return s
	}
	switch kind {
	case dto.MetricType_COUNTER:
		return []series{one("", m.GetCounter().GetValue())}
	case dto.MetricType_GAUGE:
		return []series{one("", m.GetGauge().GetValue())}
	case dto.MetricType_UNTYPED:
		return []series{one("", m.GetUntyped().GetValue())}
	case dto.MetricType_HISTOGRAM:
		all := []series{one("_count", float64(m.GetHistogram().GetSampleCount()))}
		for _, b := range m.GetHistogram().GetBucket() {
			all = append(all, one("_bucket", float64(b.GetCumulativeCount()), "le", strconv.FormatFloat(b.GetUpperBound(), 'g', -1, 64)))
		}
		return all
	default: // summaries are not needed
		return nil
	}
}
