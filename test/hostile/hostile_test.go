// Package hostile_test runs flux on repositories and archives that try to exhaust its memory, to
// read files outside of them, or to send requests to other hosts.
package hostile_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/fluxkit/flux/test/support/testcluster"
	"github.com/fluxkit/flux/test/support/testlimit"
	"github.com/fluxkit/flux/test/support/tier"
)

var update = flag.Bool("update", false, "write times and memory to docs/security.md")

const (
	// memoryMax is the maximum memory of a command, in KiB.
	memoryMax = 1 << 20
	// messagesMax is the maximum size of stderr.
	messagesMax = 64 << 10
	// addressSpace limits the address space of the commands, in KiB: the Go runtime
	// reserves more than it uses.
	addressSpace = 8 << 20
)

// row is a hostile input and the expected result.
type row struct {
	name string
	// files are written to the directory, unless make writes it.
	files map[string]string
	make  func(t *testing.T, folder string)
	flags []string
	// want is expected in stderr; "" means that the build must succeed.
	want string
	// stdout is expected in stdout.
	stdout string
	// cluster is the cluster of the command, or nil.
	cluster func() cluster
	// answer is an endless response of the command's API server, or nil.
	answer *answer
	// interrupt sends SIGTERM when the helper process is running.
	interrupt bool
	// read sends SIGTERM when the process has read this number of bytes.
	read int64
	// dir runs the command in the directory.
	dir  bool
	exit int
	// nightly rows run only with TIER=nightly: a faster row tests the same limit.
	nightly bool
}

// outcome is the result of a row.
type outcome struct {
	name, want, printed string
	took                time.Duration
	kib                 int64
}

func TestHostile(t *testing.T) {
	t.Parallel()
	bin := testcluster.Programs(t)
	listener := &listener{}
	server := httptest.NewServer(listener)
	defer server.Close()
	var outcomes []outcome
	for _, r := range slices.Concat(repositories(), remotes(server.URL)) {
		if r.nightly && !tier.Nightly() {
			continue
		}
		t.Run(r.name, func(t *testing.T) { outcomes = append(outcomes, r.build(t, bin)) })
	}
	if asked := listener.asked.Load(); asked != 0 {
		t.Errorf("%d requests were sent that were not allowed", asked)
	}
	for _, r := range allowed(server.URL) {
		t.Run(r.name, func(t *testing.T) { outcomes = append(outcomes, r.build(t, bin)) })
	}
	if asked := listener.asked.Load(); asked != 1 {
		t.Errorf("%d requests were sent, of which 1 was allowed", asked)
	}
	for _, o := range unnamed(server.URL) {
		t.Run(o.name, func(t *testing.T) { outcomes = append(outcomes, o.command(t, bin)) })
	}
	for _, o := range served(servers(t, forbiddenServer(t, listener))) {
		t.Run(o.name, func(t *testing.T) { outcomes = append(outcomes, o.command(t, bin)) })
	}
	if asked := listener.asked.Load(); asked != 1 {
		t.Errorf("%d requests were sent, of which 1 was allowed", asked)
	}
	for _, a := range archives() {
		t.Run(a.name, func(t *testing.T) { outcomes = append(outcomes, a.pull(t, bin)) })
	}
	for _, o := range slices.Concat(trees(), blobs(zeroFiles(t)), catalogs(), clusters(), answers(), others(), schemas(), audits()) {
		if o.nightly && !tier.Nightly() {
			continue
		}
		t.Run(o.name, func(t *testing.T) { outcomes = append(outcomes, o.command(t, bin)) })
	}
	if *update {
		document(t, outcomes)
	}
}

// listener counts requests.
type listener struct{ asked atomic.Int64 }

func (l *listener) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	l.asked.Add(1)
	_, _ = fmt.Fprint(w, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: remote}\n")
}

const kustomization = "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: app, namespace: flux-system}\nspec: {path: ./}\n"

// build runs flux build kustomization on a row's directory.
func (r row) build(t *testing.T, bin string) outcome {
	t.Helper()
	folder, file := t.TempDir(), filepath.Join(t.TempDir(), "ks.yaml")
	write(t, file, kustomization)
	for name, text := range r.files {
		write(t, filepath.Join(folder, name), text)
	}
	if r.make != nil {
		r.make(t, folder)
	}
	for i := range r.flags {
		r.flags[i] = strings.ReplaceAll(r.flags[i], "$FOLDER", folder)
	}
	args := append([]string{"build", "kustomization", "app", "--dry-run", "--kustomization-file", file, "--path", folder}, r.flags...)
	return r.run(t, bin, args)
}

func (r row) run(t *testing.T, bin string, args []string) outcome {
	t.Helper()
	return r.runIn(t, "", bin, args)
}

// runIn runs flux in a directory, or in the test directory if it is "".
func (r row) runIn(t *testing.T, dir, bin string, args []string) outcome {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testlimit.Wait)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", append([]string{"-c", fmt.Sprintf(`ulimit -v %d && exec "$0" "$@"`, addressSpace), filepath.Join(bin, "flux")}, args...)...)
	temporary := t.TempDir()
	cmd.Dir = dir
	cmd.Env = []string{"HOME=" + t.TempDir(), "TMPDIR=" + temporary, "PATH=" + os.Getenv("PATH"), "CANARY=canary-of-the-environment", "FLUXCD_PLUGIN_CATALOG=" + dir}
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	forgetPeak(t)
	began := time.Now()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if r.interrupt || r.read > 0 {
		if r.interrupt {
			awaitHelper(t, cmd.Process.Pid)
		} else {
			awaitRead(t, cmd.Process.Pid, r.read)
		}
		began = time.Now()
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
	}
	err := cmd.Wait()
	took := time.Since(began)
	usage, _ := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	wanted := r.exit
	if wanted == 0 && r.want != "" {
		wanted = 1
	}
	if code := cmd.ProcessState.ExitCode(); code != wanted || ctx.Err() != nil {
		t.Errorf("exit code %d, want %d: %v\n%s", code, wanted, err, stderr.String())
	}
	if !strings.Contains(stderr.String(), r.want) {
		t.Errorf("stderr lacks %q:\n%.2000s", r.want, stderr.String())
	}
	if !strings.Contains(stdout.String(), r.stdout) {
		t.Errorf("stdout lacks %q:\n%.2000s", r.stdout, stdout.String())
	}
	if stderr.Len() > messagesMax {
		t.Errorf("stderr has %d bytes:\n%.2000s", stderr.Len(), stderr.String())
	}
	if usage.Maxrss > memoryMax {
		t.Errorf("%d MiB of memory", usage.Maxrss>>10)
	}
	if all := stdout.String() + stderr.String(); strings.Contains(all, "canary-of-the-environment") || strings.Contains(all, "goroutine ") {
		t.Errorf("what is not of the repository is printed:\n%.2000s", all)
	}
	if left, err := os.ReadDir(temporary); err != nil || len(left) > 0 {
		t.Errorf("left in the temporary directory: %v, %v", left, err)
	}
	return outcome{r.name, r.want, r.stdout, took, usage.Maxrss}
}

// forgetPeak frees memory of this process and resets its peak, which is attributed to a command
// until the command starts.
func forgetPeak(t *testing.T) {
	t.Helper()
	debug.FreeOSMemory()
	const resetPeak = "5"
	if err := os.WriteFile("/proc/self/clear_refs", []byte(resetPeak), 0); err != nil {
		t.Fatal(err)
	}
}

// awaitHelper returns when a process has a child.
func awaitHelper(t *testing.T, pid int) {
	t.Helper()
	children := fmt.Sprintf("/proc/%d/task/%d/children", pid, pid)
	tasks := fmt.Sprintf("/proc/%d/task/*/children", pid)
	for ctx := t.Context(); ctx.Err() == nil; {
		files, err := filepath.Glob(tasks)
		if err != nil || len(files) == 0 {
			t.Fatalf("the process has ended before its helper began (%s)", children)
		}
		for _, file := range files {
			if text, err := os.ReadFile(file); err == nil && len(bytes.TrimSpace(text)) > 0 {
				return
			}
		}
	}
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
}

const (
	begins = "<!-- Written by 'TIER=nightly go test ./test/hostile -update'. -->\n"
	ends   = "<!-- End of what the test writes. -->\n"
)

// document writes the table of outcomes.
func document(t *testing.T, outcomes []outcome) {
	t.Helper()
	file := filepath.Join(testcluster.Root(), "docs", "security.md")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(text), begins)
	_, after, ended := strings.Cut(rest, ends)
	if !found || !ended {
		t.Fatalf("%s has no place for the table", file)
	}
	var b strings.Builder
	b.WriteString(before + begins + "| input | result | time | peak memory |\n|---|---|---|---|\n")
	for _, o := range outcomes {
		result := "`" + o.want + "`"
		switch {
		case o.want == "" && o.printed != "":
			result = "prints `" + o.printed + "`"
		case o.want == "":
			result = "succeeds"
		}
		fmt.Fprintf(&b, "| %s | %s | %.1f s | %d MiB |\n", o.name, result, o.took.Seconds(), o.kib>>10)
	}
	b.WriteString(ends + after)
	if err := os.WriteFile(file, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
}
