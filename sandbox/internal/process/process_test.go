package process

import (
	"bytes"
	"context"
	"testing"
	"time"
)

func start(t *testing.T, script string) (*Child, *bytes.Buffer) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	out := &bytes.Buffer{}
	child, err := NewStarter(ctx).Start(ctx, Command{Path: "/bin/sh", Args: []string{"-c", script}, Output: out})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { child.Stop(0) })
	return child, out
}

func TestChildEndsByItself(t *testing.T) {
	t.Parallel()
	child, out := start(t, "echo hello; exit 3")
	<-child.Done()
	if child.ExitCode() != 3 || out.String() != "hello\n" {
		t.Errorf("exit code %d, output %q", child.ExitCode(), out)
	}
	if child.Alive() {
		t.Error("a child that has ended is alive")
	}
}

func TestStopKillsWhoDoesNotListen(t *testing.T) {
	t.Parallel()
	child, _ := start(t, "trap '' TERM; while :; do sleep 1; done")
	if !child.Alive() {
		t.Fatal("a running child is not alive")
	}
	child.Stop(time.Millisecond)
	if child.ExitCode() != 128+9 || child.Alive() {
		t.Errorf("exit code %d, alive %v", child.ExitCode(), child.Alive())
	}
}

func TestStopAsksFirst(t *testing.T) {
	t.Parallel()
	child, _ := start(t, "trap 'exit 7' TERM; kill -TERM $$; while :; do :; done")
	child.Stop(time.Minute)
	if child.ExitCode() != 7 {
		t.Errorf("exit code %d", child.ExitCode())
	}
}

func TestIdentityOfAnother(t *testing.T) {
	t.Parallel()
	self := Self()
	if !self.Alive() {
		t.Error("this process is not alive")
	}
	// The same process id after a restart of the machine names somebody else.
	other := Identity{PID: self.PID, Birth: self.Birth + "x"}
	if other.Alive() {
		t.Error("a process that only shares the id counts as the same")
	}
	if err := other.End(t.Context(), time.Second); err != nil {
		t.Error(err) // and, above all, this test still runs
	}
	if (Identity{}).Alive() || Resident(self.PID) == 0 {
		t.Error("no process is alive, or this one needs no memory")
	}
}

func TestEndStopsWhatIsNoChild(t *testing.T) {
	t.Parallel()
	child, _ := start(t, "trap '' TERM; while :; do sleep 1; done")
	if err := child.Identity.End(t.Context(), time.Millisecond); err != nil {
		t.Fatal(err)
	}
	<-child.Done()
}
