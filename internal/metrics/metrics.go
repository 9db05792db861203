// Package metrics reads metrics of controllers in the Prometheus text format: only the requested
// series, line by line.
package metrics

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
)

// longest is the maximum length of a line.
const longest = 1 << 20

// Series is a sample of a series: a name, its labels and a value.
type Series struct {
	Name   string
	Labels map[string]string
	Value  float64
}

// Read calls each with the series that have one of the names.
func Read(r io.Reader, names []string, each func(Series)) error {
	scanner := bufio.NewScanner(r)
	scanner.Buffer(nil, longest)
	for scanner.Scan() {
		line := strings.TrimSpace(scanner.Text())
		end := strings.IndexAny(line, "{ \t")
		if end < 1 || line[0] == '#' || !slices.Contains(names, line[:end]) {
			continue
		}
		s, err := parse(line[:end], line[end:])
		if err != nil {
			return fmt.Errorf("reading the metric %q: %w", line, err)
		}
		each(s)
	}
	if err := scanner.Err(); err != nil {
		return fmt.Errorf("reading metrics: %w", err)
	}
	return nil
}

func parse(name, rest string) (Series, error) {
	s := Series{Name: name, Labels: map[string]string{}}
	rest = strings.TrimPrefix(rest, "{")
	for {
		rest = strings.TrimLeft(rest, ", \t")
		key, after, ok := strings.Cut(rest, "=")
		if !ok || strings.HasPrefix(rest, "}") || !strings.HasPrefix(after, `"`) {
			break
		}
		quoted, err := strconv.QuotedPrefix(after)
		if err != nil {
			return s, fmt.Errorf("label %s: %w", key, err)
		}
		value, err := strconv.Unquote(quoted)
		if err != nil {
			return s, fmt.Errorf("label %s: %w", key, err)
		}
		s.Labels[key], rest = value, after[len(quoted):]
	}
	fields := strings.Fields(strings.TrimPrefix(rest, "}"))
	if len(fields) == 0 {
		return s, fmt.Errorf("no value")
	}
	var err error
	s.Value, err = strconv.ParseFloat(fields[0], 64)
	return s, err
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
