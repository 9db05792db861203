// Command rules parses a file of Prometheus alerting rules, evaluates them with the Prometheus engine on gauges
// in the text format on standard input, and prints the name and the labels of each alert that would fire if its
// condition lasted.
//
//	rules FILE < metrics
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/util/annotations"
)

func main() {
	if err := run(os.Args[1:], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "rules:", err)
		os.Exit(1)
	}
}

func run(args []string, in io.Reader, out io.Writer) error {
	if len(args) != 1 {
		return errors.New("usage: rules FILE < metrics")
	}
	groups, errs := rulefmt.ParseFile(args[0], false, model.LegacyValidation)
	if len(errs) > 0 {
		return errors.Join(errs...)
	}
	now := time.Now()
	series, err := read(in, now)
	if err != nil {
		return err
	}
	w := bufio.NewWriter(out)
	engine := promql.NewEngine(promql.EngineOpts{MaxSamples: 1e6, Timeout: time.Minute})
	for _, group := range groups.Groups {
		for _, rule := range group.Rules {
			if err := evaluate(w, engine, rule, series, now); err != nil {
				return fmt.Errorf("%s: %w", rule.Alert, err)
			}
		}
	}
	return errors.Join(w.Flush(), engine.Close())
}

// evaluate prints the alerts of a rule.
func evaluate(out io.Writer, engine *promql.Engine, rule rulefmt.Rule, series []storage.Series, now time.Time) error {
	query, err := engine.NewInstantQuery(context.Background(), queryable(series), nil, rule.Expr, now)
	if err != nil {
		return err
	}
	defer query.Close()
	vector, err := query.Exec(context.Background()).Vector()
	if err != nil {
		return err
	}
	for _, sample := range vector {
		if _, err := fmt.Fprintf(out, "%s%s\n", rule.Alert, sample.Metric.MatchLabels(false, model.MetricNameLabel)); err != nil {
			return err
		}
	}
	return nil
}

// queryable selects series by matchers.
func queryable(series []storage.Series) storage.Queryable {
	return &storage.MockQueryable{MockQuerier: &storage.MockQuerier{
		SelectMockFunction: func(_ bool, _ *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
			var selected []storage.Series
			for _, s := range series {
				if matches(s.Labels(), matchers) {
					selected = append(selected, s)
				}
			}
			return &seriesSet{next: selected}
		},
	}}
}

func matches(l labels.Labels, matchers []*labels.Matcher) bool {
	for _, m := range matchers {
		if !m.Matches(l.Get(m.Name)) {
			return false
		}
	}
	return true
}

// seriesSet iterates over series.
type seriesSet struct {
	current storage.Series
	next    []storage.Series
}

func (s *seriesSet) Next() bool {
	if len(s.next) == 0 {
		return false
	}
	s.current, s.next = s.next[0], s.next[1:]
	return true
}

func (s *seriesSet) At() storage.Series                { return s.current }
func (s *seriesSet) Err() error                        { return nil }
func (s *seriesSet) Warnings() annotations.Annotations { return nil }

// read returns the gauges as series with one sample.
func read(in io.Reader, now time.Time) ([]storage.Series, error) {
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(in)
	if err != nil {
		return nil, err
	}
	var all []storage.Series
	for name, family := range families {
		for _, m := range family.GetMetric() {
			text := []string{model.MetricNameLabel, name}
			for _, l := range m.GetLabel() {
				text = append(text, l.GetName(), l.GetValue())
			}
			all = append(all, promql.NewStorageSeries(promql.Series{
				Metric: labels.FromStrings(text...),
				Floats: []promql.FPoint{{T: now.UnixMilli(), F: m.GetGauge().GetValue() + m.GetUntyped().GetValue()}},
			}))
		}
	}
	return all, nil
}
