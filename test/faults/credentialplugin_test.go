package faults_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fluxkit/flux/test/support/testcluster"
	"github.com/fluxkit/flux/test/support/testlimit"
)

// TestCredentialPluginHangs runs commands with a credential plugin that never responds: --timeout
// and SIGTERM end the command with the reason, and the plugin with the program that it runs.
func TestCredentialPluginHangs(t *testing.T) {
	t.Parallel()
	w := &world{bin: testcluster.Programs(t)}
	for name, args := range map[string]string{"get": "get ks", "why": "why ks app", "wait": "wait ks app", "reconcile": "reconcile ks app", "check": "check"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			folder := t.TempDir()
			runs := filepath.Join(folder, "runs")
			check(t, syscall.Mkfifo(runs, 0o600))
			kubeconfig := filepath.Join(folder, "kubeconfig")
			check(t, os.WriteFile(kubeconfig, fmt.Appendf(nil, `apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "https://127.0.0.1:1"}}]
contexts: [{name: c, context: {cluster: c, user: u}}]
current-context: c
users: [{name: u, user: {exec: {apiVersion: client.authentication.k8s.io/v1, command: sh, args: [-c, "echo started > '%s'; sleep 600; echo"], interactiveMode: Never}}}]
`, runs), 0o600))
			words := strings.Fields(args)
			p := w.start(t, kubeconfig, append(words, "--timeout=10m")...)
			_, err := os.ReadFile(runs) // returns when the plugin runs
			check(t, err)
			p.stops(syscall.SIGTERM)
			p.endsItsChildren()

			p = w.start(t, kubeconfig, append(words, "--timeout=10s")...)
			_, err = os.ReadFile(runs)
			check(t, err)
			select {
			case <-p.ended:
			case <-time.After(testlimit.Wait):
				p.fatalf("does not exit")
			}
			if code := p.cmd.ProcessState.ExitCode(); code != 1 && code != 2 || !strings.Contains(p.stderr.String(), "the credential plugin sh of the kubeconfig did not respond: timed out after 10s\n  increase --timeout") {
				p.fatalf("exit code %d", code)
			}
			p.endsItsChildren()
		})
	}
}
