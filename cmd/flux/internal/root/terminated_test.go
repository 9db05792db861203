package root

import (
	"bytes"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/clierr"
	"github.com/fluxkit/flux/test/support/testcluster"
	"github.com/fluxkit/flux/test/support/testlimit"
	"github.com/fluxkit/flux/test/support/tier"
)

// TestEveryCommandTerminates sends SIGTERM to a process of every command that waits for a response.
// make nightly runs all commands, make test the first one of each verb.
func TestEveryCommandTerminates(t *testing.T) {
	t.Parallel()
	flux := filepath.Join(testcluster.Programs(t), "flux")
	var mu sync.Mutex
	verbs := map[string]bool{}
	forEnds(t, func(c endCase, how, _ string) string {
		verb, _, _ := strings.Cut(c.path, " ")
		mu.Lock()
		sampled := verbs[verb] && !tier.Nightly()
		verbs[verb] = true
		mu.Unlock()
		if how != "nothing" || c.row.local != "" || sampled {
			return ""
		}
		return c.terminate(t, flux)
	})
}

// terminate starts a process against a mute server, sends SIGTERM when the first request arrives,
// and returns what is wrong with its end.
func (c endCase) terminate(t *testing.T, flux string) string {
	t.Helper()
	server := startMute(t, "")
	defer func() {
		if err := server.close(); err != nil {
			t.Error(err)
		}
	}()
	args, env, err := c.prepare(t.TempDir(), server.listener.Addr().String(), 10*testlimit.Wait)
	if err != nil {
		return err.Error()
	}
	cmd := exec.CommandContext(t.Context(), flux, args...)
	for name, value := range env {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		return err.Error()
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait() // the exit code is in ProcessState
	}()
	select {
	case <-server.asked:
	case <-ended:
		return "it ended before a request\n" + out.String()
	case <-time.After(testlimit.Wait):
	}
	start := time.Now()
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err.Error()
	}
	select {
	case <-ended:
	case <-time.After(testlimit.Wait):
		_ = cmd.Process.Kill() // it is the failure of the test
		<-ended
		return fmt.Sprintf("it runs %s after SIGTERM\n%s", testlimit.Wait, out.String())
	}
	if took := time.Since(start); took > time.Second {
		t.Logf("%s: %s", c.path, took.Round(time.Millisecond))
	}
	if code := cmd.ProcessState.ExitCode(); code != clierr.ExitInterrupted || !strings.Contains(out.String(), "interrupted") && !strings.Contains(c.path, "--") {
		return fmt.Sprintf("exit code %d\n%s", code, out.String())
	}
	return ""
}
