package main

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// scaleRow is a command on a large cluster with its limits.
type scaleRow struct {
	args []string
	// exit is the expected exit code.
	exit int
	// ratio is the maximum time relative to `flux get all -A`, memory the maximum
	// resident set in MiB; 0 means no limit.
	ratio, memory float64
}

// scaleRows lists commands that could load all objects of a cluster into memory. The
// object in them is one that the seed has marked as failed.
func scaleRows() []scaleRow {
	const name, namespace = "app-00017", "team-000"
	return []scaleRow{
		{args: []string{"get", "all", "-A"}},
		{args: []string{"why"}, exit: 1, ratio: 3, memory: 150},
		{args: []string{"why", "ks", name, "-n", namespace}, exit: 1, memory: 60},
		{args: []string{"status", name, "-n", namespace}, exit: 1, memory: 60},
		{args: []string{"get", "ks", "-A", "-o", "json"}, memory: 80},
		{args: []string{"get", "ks", "-A", "-o", "yaml"}, memory: 80},
		{args: []string{"get", "ks", "-A", "-o", "name"}, memory: 80},
		{args: []string{"get", "ks", "-A", "-o", "custom-columns=NAME:.metadata.name,REVISION:.status.lastAppliedRevision"}, memory: 80},
		{args: []string{"export", "ks", "-A"}, memory: 80},
		{args: []string{"export", "-A", "--with-credentials"}, memory: 80},
	}
}

// scale measures the commands alternately; the ratios are relative to the first
// row.
func (b *bench) scale(ctx context.Context, objects int) error {
	rows := scaleRows()
	samples := make([][]sample, len(rows))
	for range max(3, b.runs/4) {
		for i, row := range rows {
			one := *b
			one.exit = row.exit
			s, err := one.run(ctx, "flux", row.args...)
			if err != nil {
				return err
			}
			samples[i] = append(samples[i], s)
		}
	}
	fmt.Printf("Commands on %d objects, compared with flux get all -A\n", objects)
	fmt.Printf("  %-46s %10s %10s %10s %10s\n", "", "wall", "cpu", "memory", "ratio")
	var all time.Duration
	for i, row := range rows {
		m := medians(samples[i])
		if i == 0 {
			all = m.Wall
		}
		memory := float64(m.Memory) / 1024
		times := ratio(m.Wall, all)
		fmt.Printf("  %-46s %8.1fms %8.1fms %7.1fMiB %10.2f %s %s\n", "flux "+strings.Join(row.args, " "), ms(m.Wall), ms(m.CPU), memory, times,
			strings.Replace(target{}.judge(memory, row.memory), ".00", " MiB", 1), target{}.judge(times, row.ratio))
	}
	fmt.Println()
	return nil
}
