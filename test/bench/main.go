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
	"strings"
	"syscall"
	"time"

	"github.com/fluxkit/flux/internal/testcluster"
)

func main() {
	runs := flag.Int("runs", 11, "how often each command is run; the median counts")
	only := flag.String("only", "", "measure only one of startup, lists, reconcile")
	large := flag.Bool("large", false, "let lists grow to 30,000 objects, which take minutes to seed")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := measure(ctx, &bench{runs: *runs, large: *large, env: os.Environ()}, *only); err != nil {
		fmt.Fprintln(os.Stderr, "✗", err)
		os.Exit(1)
	}
}

func measure(ctx context.Context, b *bench, only string) error {
	known := false
	for _, part := range []struct {
		name string
		run  func(context.Context) error
	}{{"startup", b.startup}, {"lists", b.lists}, {"reconcile", b.reconcile}} {
		if only != "" && only != part.name {
			continue
		}
		known = true
		if err := part.run(ctx); err != nil {
			return fmt.Errorf("measuring %s: %w", part.name, err)
		}
	}
	if !known {
		return fmt.Errorf("nothing is called %q: there are startup, lists and reconcile", only)
	}
	return nil
}

type bench struct {
	runs  int
	large bool
	env   []string
}

// target is the most that flux may cost in relation to kubectl; 0 is no target.
type target struct{ wall, memory float64 }

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

// pair runs two commands in turn and prints their medians and the ratios
// beside the targets.
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
		if i > 0 { // the first round warms the caches
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
		fmt.Printf("  %-46s %8.1fms %8.1fms %7.1fMiB\n", strings.Join(row.words, " "), ms(row.s.wall), ms(row.s.cpu), float64(row.s.memory)/1024)
	}
	wall, memory := ratio(ma.wall, mk.wall), float64(ma.memory)/float64(mk.memory)
	fmt.Printf("  %-46s %10.2f %10.2f %10.2f\n", "ratio", wall, ratio(ma.cpu, mk.cpu), memory)
	if t != (target{}) {
		fmt.Printf("  %-46s %10s %10s %10s\n", "target", t.judge(wall, t.wall), "", t.judge(memory, t.memory))
	}
	fmt.Println()
	return nil
}

// judge shows a target and whether it is met.
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

// startup is what everybody pays.
func (b *bench) startup(ctx context.Context) error {
	return b.pair(ctx, "Start-up", target{wall: 0.4, memory: 0.75},
		[]string{"flux", "--version"}, []string{"kubectl", "version", "--client"})
}
