// Command bench compares flux with kubectl in alternating runs, and prints medians and
// ratios. Absolute times depend on the machine.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/fluxkit/flux/test/support/testcluster"
)

func main() {
	runs := flag.Int("runs", 11, "number of runs of each command; the median is printed")
	only := flag.String("only", "", "measurement to run: startup, lists, tree, logs, reconcile, build, diff, base or ui (default: all)")
	large := flag.Bool("large", false, "also measure up to 30,000 objects, which take minutes to create")
	soak := flag.Duration("soak", time.Minute, "duration of the measurement of flux ui with changes (at most a minute for the small size)")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := measure(ctx, &bench{runs: *runs, large: *large, soakTime: *soak, env: os.Environ()}, *only); err != nil {
		fmt.Fprintln(os.Stderr, "✗", err)
		os.Exit(1)
	}
}

func measure(ctx context.Context, b *bench, only string) (err error) {
	remove, err := b.prepare(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, remove()) }()
	known := false
	for _, part := range []struct {
		name string
		run  func(context.Context) error
	}{{"startup", b.startup}, {"lists", b.lists}, {"tree", b.tree}, {"logs", b.logs}, {"reconcile", b.reconcile}, {"build", b.build}, {"diff", b.diff}, {"base", b.base}, {"ui", b.dashboard}} {
		if only != "" && only != part.name {
			continue
		}
		known = true
		if err := part.run(ctx); err != nil {
			return fmt.Errorf("measuring %s: %w", part.name, err)
		}
	}
	if !known {
		return fmt.Errorf("unknown measurement %q: must be startup, lists, tree, logs, reconcile, build, diff, base or ui", only)
	}
	return nil
}

type bench struct {
	runs  int
	large bool
	// soakTime is the duration of the measurement of flux ui with changes.
	soakTime time.Duration
	env      []string
	// dir is the working directory of commands, "" for the current one.
	dir string
	// measure is the path of the program that runs and measures commands.
	measure string
	// exit is the expected exit code of commands.
	exit int
}

// target is the maximum ratio of the cost of flux to kubectl; 0 means no target.
type target struct{ wall, memory float64 }

// sample is the cost of one run of a command.
type sample struct {
	Wall, CPU time.Duration
	Memory    int64 // peak resident set, KiB
}

func tool(name string) string { return filepath.Join(testcluster.Bin(), name) }

// prepare builds the measuring program; the caller removes its directory.
func (b *bench) prepare(ctx context.Context) (remove func() error, err error) {
	dir, err := os.MkdirTemp("", "flux-bench-")
	if err != nil {
		return nil, err
	}
	remove = func() error { return os.RemoveAll(dir) }
	b.measure = filepath.Join(dir, "measure")
	cmd := exec.CommandContext(ctx, "go", "build", "-o", b.measure, "./test/bench/measure")
	cmd.Dir = testcluster.Root()
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, errors.Join(fmt.Errorf("building the measuring program: %w\n%s", err, out), remove())
	}
	return remove, nil
}

// run executes a command and returns its cost.
func (b *bench) run(ctx context.Context, name string, args ...string) (s sample, err error) {
	cmd := exec.CommandContext(ctx, b.measure, append([]string{fmt.Sprintf("-exit=%d", b.exit), tool(name)}, args...)...)
	cmd.Env, cmd.Dir = b.env, b.dir
	var said strings.Builder
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		return s, fmt.Errorf("%s %q: %w\n%s", name, args, err, said.String())
	}
	return s, json.Unmarshal(out, &s)
}

// pair runs two commands alternately and prints their medians and the ratios with
// the targets.
func (b *bench) pair(ctx context.Context, title string, t target, ours, theirs []string) error {
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
		if i > 0 { // fills the caches
			a, k = append(a, first), append(k, second)
		}
	}
	ma, mk := medians(a), medians(k)
	fmt.Printf("%s\n", title)
	fmt.Printf("  %-46s %10s %10s %10s\n", "", "wall", "cpu", "memory")
	for _, row := range []struct {
		words []string
		s     sample
	}{{ours, ma}, {theirs, mk}} {
		fmt.Printf("  %-46s %8.1fms %8.1fms %7.1fMiB\n", strings.Join(row.words, " "), ms(row.s.Wall), ms(row.s.CPU), float64(row.s.Memory)/1024)
	}
	wall, memory := ratio(ma.Wall, mk.Wall), float64(ma.Memory)/float64(mk.Memory)
	fmt.Printf("  %-46s %10.2f %10.2f %10.2f\n", "ratio", wall, ratio(ma.CPU, mk.CPU), memory)
	if t != (target{}) {
		fmt.Printf("  %-46s %10s %10s %10s\n", "target", t.judge(wall, t.wall), "", t.judge(memory, t.memory))
	}
	fmt.Println()
	return nil
}

// judge formats a target and whether it is met.
func (target) judge(is, most float64) string {
	switch {
	case most == 0:
		return ""
	case is <= most:
		return fmt.Sprintf("≤ %.2f ✔", most)
	default:
		return fmt.Sprintf("≤ %.2f ✗", most)
	}
}

func medians(samples []sample) sample {
	return sample{
		Wall:   median(samples, func(s sample) time.Duration { return s.Wall }),
		CPU:    median(samples, func(s sample) time.Duration { return s.CPU }),
		Memory: int64(median(samples, func(s sample) time.Duration { return time.Duration(s.Memory) })),
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

// startup measures the fixed cost of every command.
func (b *bench) startup(ctx context.Context) error {
	return b.pair(ctx, "Start-up", target{wall: 0.4, memory: 0.75},
		[]string{"flux", "--version"}, []string{"kubectl", "version", "--client"})
}
