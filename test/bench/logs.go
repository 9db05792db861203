package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/fluxkit/flux/test/support/testcluster"
)

// The content of the logs: the total number of lines, and the interval and the length of long
// lines.
const (
	logLines   = 200_000
	longEvery  = 5_000
	longLine   = 1 << 20
	logPods    = 7
	logRuns    = 3
	runtimeCut = 16 << 10 // length at which container runtimes split lines
	// logMemory is the maximum memory of flux in MiB.
	logMemory = 100
)

// logs measures how fast the logs of seven controllers are merged through a real API server,
// and checks that all lines are printed in order.
func (b *bench) logs(ctx context.Context) (err error) {
	cluster, err := testcluster.Up(ctx, "all")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cluster.Down()) }()
	on := b.with("KUBECONFIG=" + cluster.Kubeconfig)
	if _, err := on.run(ctx, "flux", "install", "--components-extra=image-reflector-controller,image-automation-controller,source-watcher"); err != nil {
		return err
	}
	if err := fillLogs(cluster); err != nil {
		return fmt.Errorf("writing logs: %w", err)
	}
	var samples []sample
	for range min(b.runs, logRuns) {
		s, err := merge(ctx, on, filepath.Join(cluster.Dir, "merged"))
		if err != nil {
			return err
		}
		samples = append(samples, s)
	}
	m := medians(samples)
	memory := float64(m.Memory) / 1024
	fmt.Printf("Logs of %d pods, %d lines, %d of them of a mebibyte\n", logPods, logLines, logLines/longEvery)
	fmt.Printf("  %-46s %10s %10s %10s\n", "", "wall", "cpu", "memory")
	fmt.Printf("  %-46s %8.1fms %8.1fms %7.1fMiB\n", "flux logs --all-namespaces", ms(m.Wall), ms(m.CPU), memory)
	fmt.Printf("  %-46s %10s %10s %10s\n\n", "target", "", "", strings.Replace(target{}.judge(memory, logMemory), ".00", " MiB", 1))
	return nil
}

// fillLogs appends lines in the container runtime log format, one per millisecond, to the
// files in which the sandbox stores the output of controllers.
func fillLogs(cluster *testcluster.Cluster) error {
	records, err := filepath.Glob(filepath.Join(cluster.Dir, "pods", "*", "pod.json"))
	if err != nil {
		return err
	}
	if len(records) != logPods {
		return fmt.Errorf("%d pods found, want %d", len(records), logPods)
	}
	var texts [logPods]bytes.Buffer
	// The time is later than the lines that the controllers write in the meantime, which
	// would delay the merge.
	start, long := time.Now().UTC().Add(time.Hour), strings.Repeat("x", longLine)
	for i := range logLines {
		at := start.Add(time.Duration(i) * time.Millisecond)
		message := fmt.Sprintf("line %d ", i)
		if i%longEvery == 1 {
			message += long
		}
		text := fmt.Sprintf(`{"level":"info","ts":%q,"msg":%q,"controllerKind":"GitRepository","name":"app","namespace":"apps"}`,
			at.Format("2006-01-02T15:04:05.000Z"), message)
		writeLine(&texts[(i*7919/13)%logPods], at, text)
	}
	for i, path := range records {
		var record struct{ LogFile string }
		data, err := os.ReadFile(path)
		if err == nil {
			err = json.Unmarshal(data, &record)
		}
		if err == nil {
			err = appendFile(record.LogFile, texts[i].Bytes())
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// appendFile appends with a single write, because the controller writes to the same file and
// lines must not be interleaved.
func appendFile(path string, data []byte) error {
	file, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	return errors.Join(err, file.Close())
}

// writeLine writes a line in parts, like container runtimes.
func writeLine(w *bytes.Buffer, at time.Time, text string) {
	stamp := at.Format("2006-01-02T15:04:05.000000000Z")
	for len(text) > runtimeCut {
		fmt.Fprintf(w, "%s stdout P %s\n", stamp, text[:runtimeCut])
		text = text[runtimeCut:]
	}
	fmt.Fprintf(w, "%s stdout F %s\n", stamp, text)
}

// merge runs flux once and checks its output.
func merge(ctx context.Context, b *bench, file string) (s sample, err error) {
	script := fmt.Sprintf("exec %q logs --all-namespaces >%q", tool("flux"), file)
	cmd := exec.CommandContext(ctx, b.measure, "sh", "-c", script)
	cmd.Env = b.env
	var said strings.Builder
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		return s, fmt.Errorf("reading logs: %w\n%s", err, said.String())
	}
	if err := json.Unmarshal(out, &s); err != nil {
		return s, err
	}
	return s, checkMerged(file)
}

// checkMerged checks that every line appears once and in order, among the
// controllers' own lines.
func checkMerged(file string) (err error) {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	next := 0
	for r := bufio.NewReaderSize(f, 2*longLine); ; {
		line, err := r.ReadString('\n')
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		_, text, mine := strings.Cut(line, " info GitRepository/app.apps - line ")
		if !mine {
			continue
		}
		number, rest, _ := strings.Cut(text, " ")
		if number != fmt.Sprint(next) {
			return fmt.Errorf("found line %s, want %d", number, next)
		}
		if next%longEvery == 1 && len(strings.TrimSpace(rest)) != longLine {
			return fmt.Errorf("line %d has %d bytes", next, len(rest))
		}
		next++
	}
	if next != logLines {
		return fmt.Errorf("found %d lines of %d", next, logLines)
	}
	return nil
}
