package process

import (
	"bufio"
	"context"
	"errors"
	"os"
	"testing"
	"time"
)

// start runs a script and returns after its first line, so that its traps are
// set.
func start(t *testing.T, script string) (*Child, *bufio.Reader) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = read.Close() })
	child, err := NewStarter(ctx).Start(ctx, Command{Path: "/bin/sh", Args: []string{"-c", script}, Output: write})
	if err := errors.Join(err, write.Close()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { child.Stop(0) })
	out := bufio.NewReader(read)
	if line, err := out.ReadString('\n'); err != nil || line != "ready\n" {
		t.Fatalf("the script prints %q, %v", line, err)
	}
	return child, out
}

func TestChildExits(t *testing.T) {
	t.Parallel()
	child, out := start(t, "echo ready; echo hello; exit 3")
	<-child.Done()
	line, err := out.ReadString('\n')
	if child.ExitCode() != 3 || line != "hello\n" || err != nil {
		t.Errorf("exit code %d, output %q, %v", child.ExitCode(), line, err)
	}
	if child.Alive() {
		t.Error("a child that has exited is alive")
	}
}

func TestStopKillsAfterGrace(t *testing.T) {
	t.Parallel()
	child, _ := start(t, "trap '' TERM; echo ready; while :; do sleep 1; done")
	if !child.Alive() {
		t.Fatal("a running child is not alive")
	}
	child.Stop(time.Millisecond)
	if child.ExitCode() != 128+9 || child.Alive() {
		t.Errorf("exit code %d, alive %v", child.ExitCode(), child.Alive())
	}
}

func TestStopSendsTERM(t *testing.T) {
	t.Parallel()
	child, _ := start(t, "trap 'exit 7' TERM; echo ready; while :; do sleep 0.01; done")
	child.Stop(time.Minute)
	if child.ExitCode() != 7 {
		t.Errorf("exit code %d", child.ExitCode())
	}
}

func TestIdentityOfAnotherProcess(t *testing.T) {
	t.Parallel()
	self := Self()
	if !self.Alive() {
		t.Error("this process is not alive")
	}
	// After a reboot the same process ID belongs to another process.
	other := Identity{PID: self.PID, Birth: self.Birth + "x"}
	if other.Alive() {
		t.Error("a process with the same ID and another start time counts as the same")
	}
	if err := other.End(t.Context(), time.Second); err != nil {
		t.Error(err) // a wrong identity would end this test
	}
	if (Identity{}).Alive() || Resident(self.PID) == 0 {
		t.Error("no process is alive, or this process uses no memory")
	}
}

func TestEndStopsAProcessThatIsNotAChild(t *testing.T) {
	t.Parallel()
	child, _ := start(t, "trap '' TERM; echo ready; while :; do sleep 1; done")
	if err := child.Identity.End(t.Context(), time.Millisecond); err != nil {
		t.Fatal(err)
	}
	<-child.Done()
}
