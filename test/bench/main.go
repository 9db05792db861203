// Command bench measures flux against kubectl, side by side in one run. What
// it prints are medians and ratios; absolute times say more about the machine.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/fluxkit/flux/internal/testcluster"
)

func main() {
	runs := flag.Int("runs", 11, "how often each command is run; the median counts")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := measure(ctx, *runs); err != nil {
		fmt.Fprintln(os.Stderr, "✗", err)
		os.Exit(1)
	}
}

func measure(ctx context.Context, runs int) error {
	b := bench{runs: runs, env: os.Environ()}
	if err := b.startup(ctx); err != nil {
		return err
	}
	return b.reconcile(ctx)
}

type bench struct {
	runs int
	env  []string
}

// sample is what one run of a command cost.
type sample struct {
	wall, cpu time.Duration
	memory    int64 // peak resident set, KiB
}

func tool(name string) string { return filepath.Join(testcluster.Bin(), name) }

// run executes a command and returns its cost.
func (b *bench) run(ctx context.Context, name string, args ...string) (sample, error) {
	cmd := exec.CommandContext(ctx, tool(name), args...)
	cmd.Env = b.env
	start := time.Now()
	out, err := cmd.CombinedOutput()
	wall := time.Since(start)
	if err != nil {
		return sample{}, fmt.Errorf("%s %q: %w\n%s", name, args, err, out)
	}
	usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	if !ok {
		return sample{}, errors.New("this system does not tell what a process used")
	}
	cpu := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	return sample{wall, cpu, usage.Maxrss}, nil
}

// pair runs two commands in turn and prints their medians and the ratios.
func (b *bench) pair(ctx context.Context, title string, ours, theirs []string) error {
	var a, k []sample
	for i := range b.runs + 1 {
		first, err := b.run(ctx, ours[0], ours[1:]...)
		if err != nil {
			return err
		}
		second, err := b.run(ctx, theirs[0], theirs[1:]...)
		if err != nil {
			return err
		}
		if i > 0 { // the first round warms the caches
			a, k = append(a, first), append(k, second)
		}
	}
	ma, mk := medians(a), medians(k)
	fmt.Printf("%s\n", title)
	fmt.Printf("  %-42s %10s %10s %10s\n", "", "wall", "cpu", "memory")
	for _, row := range []struct {
		words []string
		s     sample
	}{{ours, ma}, {theirs, mk}} {
		fmt.Printf("  %-42s %8.1fms %8.1fms %7.1fMiB\n", shorten(row.words), ms(row.s.wall), ms(row.s.cpu), float64(row.s.memory)/1024)
	}
	fmt.Printf("  %-42s %10.2f %10.2f %10.2f\n\n", "ratio", ratio(ma.wall, mk.wall), ratio(ma.cpu, mk.cpu), float64(ma.memory)/float64(mk.memory))
	return nil
}

func medians(samples []sample) sample {
	return sample{
		wall:   median(samples, func(s sample) time.Duration { return s.wall }),
		cpu:    median(samples, func(s sample) time.Duration { return s.cpu }),
		memory: int64(median(samples, func(s sample) time.Duration { return time.Duration(s.memory) })),
	}
}

func median(samples []sample, of func(sample) time.Duration) time.Duration {
	values := make([]time.Duration, len(samples))
	for i, s := range samples {
		values[i] = of(s)
	}
	slices.Sort(values)
	return values[len(values)/2]
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func ratio(a, b time.Duration) float64 { return float64(a) / float64(b) }

func shorten(words []string) string {
	line := fmt.Sprint(words)
	return line[1 : len(line)-1]
}

// startup is what everybody pays: target ≤ 0.4 of the time, ≤ 0.75 of the memory.
func (b *bench) startup(ctx context.Context) error {
	return b.pair(ctx, "Start-up (target: wall ≤ 0.40, memory ≤ 0.75)",
		[]string{"flux", "--version"}, []string{"kubectl", "version", "--client"})
}
