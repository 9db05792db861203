package main

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// maxLine is the maximum length of a line of output.
const maxLine = 16 << 20

// event is a line of go test -json.
type event struct {
	Action, Package, Test, Output string
	Elapsed                       float64
}

// result contains the outcomes of one test in all runs.
type result struct {
	name string
	// failures is the number of runs in which the test failed, and output is its output in the last one.
	failures int
	output   string
	// seconds contains the durations of all runs.
	seconds []float64
}

// results maps the names of tests to their results.
type results map[string]*result

// read adds the events in the output of make. Lines that are not JSON are written by other programs.
func (r results) read(output io.Reader) error {
	printed := map[string]*strings.Builder{}
	lines := bufio.NewScanner(output)
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		var e event
		if !bytes.HasPrefix(lines.Bytes(), []byte("{")) || json.Unmarshal(lines.Bytes(), &e) != nil || e.Package == "" {
			continue
		}
		name := strings.TrimPrefix(e.Package, "github.com/fluxkit/flux/")
		if e.Test != "" {
			name += " " + e.Test
		}
		switch e.Action {
		case "output":
			if printed[name] == nil {
				printed[name] = &strings.Builder{}
			}
			printed[name].WriteString(e.Output)
		case "pass", "fail":
			r.add(name, e, printed[name])
		}
	}
	return lines.Err()
}

func (r results) add(name string, e event, printed *strings.Builder) {
	one := r[name]
	if one == nil {
		one = &result{name: name}
		r[name] = one
	}
	one.seconds = append(one.seconds, e.Elapsed)
	if e.Action == "fail" {
		one.failures++
		if printed != nil {
			one.output = printed.String()
		}
	}
}

// percentile returns a percentile of the durations.
func (r *result) percentile(percent int) float64 {
	sorted := slices.Sorted(slices.Values(r.seconds))
	return sorted[min(len(sorted)*percent/100, len(sorted)-1)]
}

// report returns a table of the failed and the slowest tests, followed by the output of the failed ones.
func (r results) report(slowest int) string {
	all := slices.SortedFunc(maps.Values(r), func(a, b *result) int {
		return cmp.Or(cmp.Compare(b.failures, a.failures), cmp.Compare(b.percentile(95), a.percentile(95)), strings.Compare(a.name, b.name))
	})
	var out strings.Builder
	fmt.Fprintf(&out, "\n%8s  %4s  %9s  %9s  %s\n", "failures", "runs", "p50", "p95", "test")
	for i, one := range all {
		if i >= slowest && one.failures == 0 {
			break
		}
		fmt.Fprintf(&out, "%8d  %4d  %7.1f s  %7.1f s  %s\n", one.failures, len(one.seconds), one.percentile(50), one.percentile(95), one.name)
	}
	for _, one := range all {
		if one.output != "" && one.failures > 0 {
			fmt.Fprintf(&out, "\n=== %s\n%s", one.name, one.output)
		}
	}
	return out.String()
}
