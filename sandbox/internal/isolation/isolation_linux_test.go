package isolation

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
)

// onThread calls f on a separate thread, which ends afterwards.
func onThread(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		f()
	}()
	<-done
}

func TestFiles(t *testing.T) {
	t.Parallel()
	read, write, other := t.TempDir(), t.TempDir(), t.TempDir()
	for _, dir := range []string{read, write, other} {
		if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	onThread(func() {
		if err := Files(Access{Read: []string{read, filepath.Join(read, "none")}, Write: []string{write, os.DevNull}}); err != nil {
			t.Error(err)
			return
		}
		for _, c := range []struct {
			name    string
			do      func() error
			allowed bool
		}{
			{"read", func() error { _, err := os.ReadFile(filepath.Join(read, "file")); return err }, true},
			{"write what may be read", func() error { return os.WriteFile(filepath.Join(read, "file"), []byte("x"), 0o600) }, false},
			{"remove what may be read", func() error { return os.Remove(filepath.Join(read, "file")) }, false},
			{"write", func() error { return os.WriteFile(filepath.Join(write, "new"), []byte("x"), 0o600) }, true},
			{"write nothing", func() error { return os.WriteFile(os.DevNull, []byte("x"), 0o600) }, true},
			{"read another file", func() error { _, err := os.ReadFile(filepath.Join(other, "file")); return err }, false},
			{"list another directory", func() error { _, err := os.ReadDir(other); return err }, false},
			{"read the environment of a process", func() error { _, err := os.ReadFile("/proc/self/environ"); return err }, false},
			{"link another file", func() error { return os.Link(filepath.Join(other, "file"), filepath.Join(write, "link")) }, false},
		} {
			err := c.do()
			if c.allowed && err != nil || !c.allowed && !errors.Is(err, fs.ErrPermission) && !errors.Is(err, syscall.EXDEV) {
				t.Errorf("%s: %v", c.name, err)
			}
		}
	})
	if _, err := os.ReadFile(filepath.Join(other, "file")); err != nil {
		t.Errorf("another thread is restricted: %v", err)
	}
}

// entered is an environment variable of the process that TestEnter starts.
const entered = "ISOLATION_TEST_ENTERED"

// TestEnter opens a port in a network namespace, in a process that is allowed to create one. A server on this machine
// uses the same port and must not be reachable.
func TestEnter(t *testing.T) {
	t.Parallel()
	if address := os.Getenv(entered); address != "" {
		onThread(func() { enter(t, address) })
		return
	}
	outside, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = outside.Close() }()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestEnter$")
	cmd.Env, cmd.SysProcAttr = []string{entered + "=" + outside.Addr().String()}, Attributes(&syscall.SysProcAttr{})
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

func enter(t *testing.T, address string) {
	if err := Enter(); err != nil {
		t.Error(err)
		return
	}
	if conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", address); err == nil {
		_ = conn.Close()
		t.Error("the network of the machine can be reached")
	}
	inside, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", address)
	if err != nil {
		t.Error(err)
		return
	}
	_ = inside.Close()
	chosen, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Error(err)
		return
	}
	if port := chosen.Addr().(*net.TCPAddr).Port; port > 19999 {
		t.Errorf("the kernel chooses port %d", port)
	}
	_ = chosen.Close()
}
