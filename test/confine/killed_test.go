//go:build linux

package confine_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// endTime is the maximum time until the processes of a sandbox have exited, even on a busy machine.
const endTime = 2 * time.Minute

// TestKilled kills flux test while the controllers are running. Before that, it checks that no component and no controller
// has a variable of its environment. After that, all processes must exit, and TestMain fails if the sandbox leaves a
// directory. It is not parallel, because it checks all processes in the temporary directory of the tests.
func TestKilled(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), fluxWithSandbox(t), "test", "--path="+cluster)
	cmd.Dir = writeRepository(t, map[string]string{cluster + "/config.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: default}\n"})
	cmd.Env = append(os.Environ(), "CANARY_TOKEN=canary-value", "GIT_SSH_COMMAND=canary-value", "SSH_AUTH_SOCK=canary-value")
	progress, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(progress)
	for lines.Scan() && !strings.Contains(lines.Text(), "reconciling") {
		t.Log(lines.Text())
	}
	parts, controllers := processes(t, os.TempDir(), "flux-sandbox"), processes(t, os.TempDir(), "-controller")
	if len(parts) != 9 || len(controllers) != 5 {
		t.Errorf("%d parts and %d controllers run", len(parts), len(controllers))
	}
	for _, pid := range append(parts, controllers...) {
		environment, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
		if err != nil || strings.Contains(string(environment), "canary-value") || strings.Contains(string(environment), "SSH") {
			t.Errorf("the environment of process %d: %v, %q", pid, err, environment)
		}
	}
	for _, pid := range controllers { // Landlock requires it, and the kernel does not show the rest
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		if err != nil || !strings.Contains(string(status), "NoNewPrivs:\t1\n") {
			t.Errorf("controller %d is not restricted: %v\n%s", pid, err, status)
		}
	}
	if err := cmd.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(endTime)
	for {
		left := processes(t, os.TempDir(), "")
		folders, err := os.ReadDir(os.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		var sandboxes []string
		for _, f := range folders {
			if strings.HasPrefix(f.Name(), "flux-") && !strings.HasPrefix(f.Name(), "flux-bin-") {
				sandboxes = append(sandboxes, f.Name())
			}
		}
		if len(left)+len(sandboxes) == 0 {
			return
		}
		select {
		case <-deadline:
			t.Fatalf("after flux test was killed, the processes %v and the directories %v are left", left, sandboxes)
		case <-tick.C:
		}
	}
}
