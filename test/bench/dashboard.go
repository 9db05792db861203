package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/test/support/testcluster"
	"github.com/fluxkit/flux/test/support/testlimit"
	"github.com/fluxkit/flux/test/support/testterminal"
)

// The sizes of the dashboard measurement, its load in changes per second, and its limits in MiB, CPU percent and time.
const (
	dashboardSmall, dashboardLarge    = 1980, 4980
	changesPerSecond                  = 50
	dashboardMemory, dashboardIdle    = 150, 10
	dashboardFirst, dashboardResponse = time.Second, 50 * time.Millisecond
	dashboardLines                    = 40
)

// dashboard measures flux ui: the time until all objects are listed, and memory, CPU time and key latency, without changes
// and with changes.
func (b *bench) dashboard(ctx context.Context) error {
	return b.onCluster(ctx, func(ctx context.Context, cluster *testcluster.Cluster, home string) error {
		return dashboardOn(ctx, b, cluster, home)
	})
}

func dashboardOn(ctx context.Context, b *bench, cluster *testcluster.Cluster, home string) error {
	in := b.with("KUBECONFIG="+cluster.Kubeconfig, "HOME="+home, "TERM=xterm-256color", "FLUX_SYSTEM_NAMESPACE=team-000")
	seeder, err := newSeeder(cluster)
	if err != nil {
		return err
	}
	fmt.Println("Dashboard, compared with its limits")
	for _, objects := range []int{dashboardSmall, dashboardLarge} {
		during := b.soakTime
		if objects == dashboardSmall {
			during = min(during, time.Minute)
		}
		if err := seeder.fill(ctx, objects); err != nil {
			return fmt.Errorf("seeding %d objects: %w", objects, err)
		}
		if err := soak(ctx, in, seeder, objects, during); err != nil {
			return err
		}
	}
	return nil
}

// soak runs the dashboard, first without changes and then, for a duration, with changes.
func soak(ctx context.Context, b *bench, seeder *seeder, objects int, during time.Duration) (err error) {
	cmd := exec.CommandContext(ctx, tool("flux"), "ui")
	cmd.Env = b.env
	begun := time.Now()
	terminal, err := testterminal.StartFull(cmd, 120, dashboardLines)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, terminal.Type("q"), terminal.Wait()) }()
	shows := func() bool {
		screen, _ := terminal.Full()
		return strings.Contains(screen, strconv.Itoa(objects)+" resources") && strings.Contains(screen, "live\n")
	}
	if err := awaitScreen(ctx, terminal, shows); err != nil {
		return err
	}
	fmt.Printf("  %d objects: first full list %.2f s (limit %.0f s for %d)\n", objects, time.Since(begun).Seconds(), dashboardFirst.Seconds(), dashboardSmall)
	idle, err := watchKeys(ctx, terminal, during/4)
	if err != nil {
		return err
	}
	idle.print("without changes", dashboardIdle)
	changing, stop := context.WithCancel(ctx)
	g, changing := errgroup.WithContext(changing)
	g.Go(func() error { return seeder.change(changing, objects) })
	busy, err := watchKeys(ctx, terminal, during)
	stop()
	if err := errors.Join(err, g.Wait()); err != nil {
		return err
	}
	busy.print(fmt.Sprintf("%d changes per second", changesPerSecond), 0)
	return nil
}

// usage is the resource usage of the dashboard during a measurement, with the latency of keys.
type usage struct {
	memory    int64 // peak resident set, MiB
	processor float64
	responses []time.Duration
}

func (u usage) print(title string, processor float64) {
	slices.Sort(u.responses)
	limit := ""
	if processor > 0 {
		limit = fmt.Sprintf(" (limit %.0f)", processor)
	}
	n := len(u.responses)
	fmt.Printf("    %-24s %4d MiB (limit %d), %4.1f %% CPU%s, key latency: median %.0f ms, 99th percentile %.0f ms (limit %d)\n", title,
		u.memory, dashboardMemory, u.processor, limit, ms(u.responses[n/2]), ms(u.responses[n*99/100]), dashboardResponse.Milliseconds())
}

// watchKeys moves the cursor twice per second, and waits until the screen shows it in another line.
func watchKeys(ctx context.Context, terminal *testterminal.Terminal, during time.Duration) (usage, error) {
	var u usage
	began, before := time.Now(), processorTime(terminal.Cmd.Process.Pid)
	for i := 0; time.Since(began) < during; i++ {
		line := cursor(terminal)
		pressed := time.Now()
		if err := terminal.Type([]string{"j", "k"}[i%2]); err != nil {
			return u, err
		}
		if err := awaitScreen(ctx, terminal, func() bool { return cursor(terminal) != line }); err != nil {
			return u, err
		}
		u.responses = append(u.responses, time.Since(pressed))
		select {
		case <-ctx.Done():
			return u, context.Cause(ctx)
		case <-time.After(time.Second / 2):
		}
	}
	u.processor = 100 * (processorTime(terminal.Cmd.Process.Pid) - before).Seconds() / time.Since(began).Seconds()
	u.memory = peakMemory(terminal.Cmd.Process.Pid)
	return u, nil
}

// cursor returns the line of the selected row, or -1. It is called often, so it reads one column only.
func cursor(terminal *testterminal.Terminal) int {
	for y := range dashboardLines {
		if terminal.Style(0, y).Reverse {
			return y
		}
	}
	return -1
}

// awaitScreen waits until the screen satisfies a condition.
func awaitScreen(ctx context.Context, terminal *testterminal.Terminal, satisfies func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, testlimit.Wait)
	defer cancel()
	for {
		if satisfies() {
			return nil
		}
		select {
		case <-ctx.Done():
			screen, _ := terminal.Full()
			return fmt.Errorf("the dashboard shows:\n%s: %w", screen, context.Cause(ctx))
		case <-time.After(time.Millisecond):
		}
	}
}

// change patches the status of each Kustomization in turn until ctx is canceled.
func (s *seeder) change(ctx context.Context, objects int) error {
	ticker := time.NewTicker(time.Second / changesPerSecond)
	defer ticker.Stop()
	resource := s.client.Resource(kube.ResourceFor(of("Kustomization")).GroupVersionResource)
	for i := 0; ; i++ {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		number := i % (objects / kinds)
		patch := fmt.Sprintf(`{"status":{"lastAppliedRevision":"main@%s"}}`, digest(i))
		_, err := resource.Namespace(fmt.Sprintf("team-%03d", number/perKind)).Patch(ctx, fmt.Sprintf("app-%05d", number), types.MergePatchType, []byte(patch), metav1.PatchOptions{}, "status")
		if err != nil && ctx.Err() == nil {
			return err
		}
	}
}

// processorTime returns the CPU time of a process, which Linux counts in hundredths of a second.
func processorTime(pid int) time.Duration {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	total := 0
	for _, field := range fields[min(11, len(fields)):min(13, len(fields))] {
		n, _ := strconv.Atoi(field)
		total += n
	}
	return time.Duration(total) * 10 * time.Millisecond
}

// peakMemory returns the peak resident set of a process in MiB.
func peakMemory(pid int) int64 {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	_, rest, _ := strings.Cut(string(text), "VmHWM:")
	n, _ := strconv.ParseInt(strings.Fields(rest + " 0")[0], 10, 64)
	return n >> 10
}
