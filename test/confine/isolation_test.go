//go:build linux

package confine_test

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// TestWithoutNamespaces runs flux test on a system without user namespaces, which cannot isolate the sandbox: it fails
// with the reason and the fixes, unless the network is allowed.
func TestWithoutNamespaces(t *testing.T) {
	flux, dir := fluxWithSandbox(t), writeRepository(t, map[string]string{})
	for _, c := range []struct {
		flags []string
		code  int
		says  []string
	}{
		{nil, 2, []string{"this machine cannot isolate the sandbox from the network", "kernel.apparmor_restrict_unprivileged_userns=0", "--allow-network"}},
		{[]string{"--allow-network"}, 0, []string{"2 of 2 Flux resources ready"}},
	} {
		// The limit applies to the namespace in which the shell runs.
		script := `echo 0 >/proc/sys/user/max_user_namespaces && exec "$0" "$@"`
		cmd := exec.CommandContext(t.Context(), "/bin/sh", append([]string{"-c", script, flux, "test", "--path=" + cluster}, c.flags...)...)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "KUBECONFIG=/dev/null")
		cmd.SysProcAttr = &syscall.SysProcAttr{
			Cloneflags:  syscall.CLONE_NEWUSER,
			UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}, GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}},
		}
		out, err := cmd.CombinedOutput()
		if exited := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exited) {
			t.Fatal(err)
		}
		if code := cmd.ProcessState.ExitCode(); code != c.code {
			t.Errorf("%v: exit code %d, want %d\n%s", c.flags, code, c.code, out)
		}
		for _, text := range c.says {
			if !strings.Contains(string(out), text) {
				t.Errorf("%v: no %q in\n%s", c.flags, text, out)
			}
		}
	}
}
