package state

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fluxkit/flux/sandbox/internal/file"
	"github.com/fluxkit/flux/sandbox/internal/process"
)

func newFolder(t *testing.T) Folder {
	t.Helper()
	f, err := Open(filepath.Join(t.TempDir(), "sandbox"))
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Create(); err != nil {
		t.Fatal(err)
	}
	return f
}

func TestFolderIsPrivate(t *testing.T) {
	t.Parallel()
	f := newFolder(t)
	if err := os.Chmod(string(f), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := f.Create(); err != nil {
		t.Fatal(err)
	}
	if err := f.SaveConfig(Config{}); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]os.FileMode{string(f): 0o700, f.Path("pki"): 0o700, f.Path("sandbox.json"): 0o600} {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if got := info.Mode().Perm(); got != want {
			t.Errorf("%s has mode %o, want %o", path, got, want)
		}
	}
}

func TestConfigIsKept(t *testing.T) {
	t.Parallel()
	f := newFolder(t)
	if f.Exists() {
		t.Error("a directory without a configuration exists as a sandbox")
	}
	c, err := f.LoadConfig()
	if err != nil {
		t.Fatal(err)
	}
	if moved, err := c.ChoosePorts(); err != nil || len(moved) > 0 {
		t.Fatalf("moved %v, %v", moved, err)
	}
	c.Controllers = []string{"source-controller"}
	if err := f.SaveConfig(c); err != nil {
		t.Fatal(err)
	}
	again, err := f.LoadConfig()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(c, again); diff != "" || !f.Exists() {
		t.Error(diff)
	}
	seen := map[int]string{}
	for name, port := range again.Ports {
		if other, taken := seen[port]; taken {
			t.Errorf("%s and %s share port %d", name, other, port)
		}
		seen[port] = name
	}
}

func TestPortInUseIsReplaced(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	taken := l.Addr().(*net.TCPAddr).Port
	c := Config{Ports: map[string]int{"apiserver": taken}}
	moved, err := c.ChoosePorts()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"apiserver"}, moved); diff != "" || c.Ports["apiserver"] == taken {
		t.Errorf("port %d was kept: %s", taken, diff)
	}
}

func TestLock(t *testing.T) {
	t.Parallel()
	f := newFolder(t)
	if f.Held("command") {
		t.Error("a free lock is reported as held")
	}
	lock, err := f.TryLock("command")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.TryLock("command"); !errors.Is(err, file.ErrLocked) || !f.Held("command") {
		t.Errorf("a second TryLock returns %v", err)
	}
	ended, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, err := f.WaitLock(ended, "command"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("WaitLock returns %v", err)
	}
	if err := lock.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := f.WaitLock(t.Context(), "command")
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestStatusIsKept(t *testing.T) {
	t.Parallel()
	f := newFolder(t)
	want := Status{
		Supervisor: process.Self(), Phase: Ready, Started: time.Unix(1, 0).UTC(),
		Parts: []Part{{Name: "etcd", Identity: process.Self(), Phase: Ready, Ports: map[string]int{"client": 1}}},
	}
	if err := f.SaveStatus(want); err != nil {
		t.Fatal(err)
	}
	got, err := f.LoadStatus()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for range 2 {
		if err := f.RemoveStatus(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestPortSequence checks that each port is returned once, excluding ephemeral ports and ports that are in
// use.
func TestPortSequence(t *testing.T) {
	s, seen := NewPortSequence(), map[int]bool{}
	for range 100 {
		port, err := s.Next()
		if err != nil || seen[port] || port < 10000 || port >= 20000 {
			t.Fatal(port, err, seen[port])
		}
		seen[port] = true
	}
	s.next = 0
	first, err := s.Next()
	if err != nil {
		t.Fatal(err)
	}
	taken, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(first)))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	s.next = first - 10000
	if port, err := s.Next(); err != nil || port == first {
		t.Error("a port in use is returned", port, err)
	}
}
