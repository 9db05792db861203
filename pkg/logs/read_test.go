package logs_test

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/fluxkit/flux/pkg/logs"
)

func options(t *testing.T) logs.Options {
	t.Helper()
	return logs.Options{
		Tail: -1, Streams: 50, Bound: context.WithCancel,
		Warn:   func(format string, args ...any) { t.Errorf("warned: "+format, args...) },
		Failed: func(err error) { t.Errorf("failed: %v", err) },
	}
}

func record(level, kind, name, namespace, message string, at time.Time) string {
	return fmt.Sprintf(`{"level":%q,"ts":%q,"msg":%q,"controllerKind":%q,"name":%q,"namespace":%q}`,
		level, at.UTC().Format("2006-01-02T15:04:05.000Z"), message, kind, name, namespace)
}

const (
	manyLines = 200_000
	manyPods  = 7
	longLine  = 1 << 20
	mebibyte  = 1 << 20
)

// TestReadMuch reads 200,000 lines of seven pods, some of a mebibyte, over connections that break.
// Each line must be read once, sorted by time, with bounded memory.
func TestReadMuch(t *testing.T) { // measures the memory of the process
	k := newKubelet(t)
	start := time.Date(2026, 11, 1, 10, 0, 0, 0, time.UTC)
	long := strings.Repeat("x", longLine)
	var byPod [manyPods][]int32
	for i := range manyLines {
		pod := (i * 7919 / 13) % manyPods
		byPod[pod] = append(byPod[pod], int32(i))
	}
	for pod, mine := range byPod {
		name := fmt.Sprintf("source-controller-%d", pod)
		k.breaks[name] = []int{10_000, 5_000, 1}
		k.run(name, name, &printing{ended: true, count: len(mine), line: func(i int) printed {
			global := int(mine[i])
			at := start.Add(time.Duration(global) * time.Millisecond)
			message := strconv.Itoa(global)
			if global%5000 == 1 {
				message += " " + long
			}
			return printed{at, record("info", "GitRepository", "app", "apps", message, at)}
		}})
	}
	k.breaks["source-controller-6"] = nil
	pods, err := logs.Pods(t.Context(), k.server.Client, "flux-system")
	if err != nil {
		t.Fatal(err)
	}
	next, most := 0, uint64(0)
	err = logs.Read(t.Context(), k.server.Client, pods, options(t), func(e *logs.Entry) error {
		number, _, _ := strings.Cut(e.Message, " ")
		if number != strconv.Itoa(next) {
			return fmt.Errorf("line %s where %d should be", number, next)
		}
		if next%5000 == 1 && len(e.Message) != len(number)+1+longLine {
			return fmt.Errorf("line %d has %d bytes", next, len(e.Message))
		}
		if next++; next%2000 == 0 {
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			most = max(most, m.HeapInuse+m.StackInuse)
		}
		return logs.Text(io.Discard, e)
	})
	if err != nil || next != manyLines {
		t.Fatalf("%d of %d lines, then: %v", next, manyLines, err)
	}
	// The memory includes that of the server, which is in the same process.
	if most > 100*mebibyte {
		t.Errorf("it took %d MiB", most/mebibyte)
	}
	t.Logf("at most %d MiB, with the server", most/mebibyte)
}
