// Package lifecycle starts and stops sandboxes, and recovers from interrupted commands, crashes and reboots.
package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/fluxkit/flux/sandbox/internal/access"
	"github.com/fluxkit/flux/sandbox/internal/controller"
	"github.com/fluxkit/flux/sandbox/internal/isolation"
	"github.com/fluxkit/flux/sandbox/internal/process"
	"github.com/fluxkit/flux/sandbox/internal/state"
	"github.com/fluxkit/flux/sandbox/internal/supervisor"
)

// commandLock serializes up and down on one directory; supervisorLock is held while
// a supervisor runs.
const (
	commandLock    = "command"
	supervisorLock = "supervisor"
)

// Options configures Up.
type Options struct {
	Folder      state.Folder
	Binary      string // this program, which runs the components
	Controllers []string
	Mode        state.Mode
	// Parent is an inherited file, or nil. When it reaches EOF, the sandbox is stopped and removed.
	Parent   *os.File
	Timeout  time.Duration
	Progress io.Writer
}

type upper struct {
	Options
}

// Up starts the sandbox and returns when it is ready. If ctx is canceled or a component fails before that, all started
// processes are stopped.
func Up(ctx context.Context, o Options) error {
	u := upper{o}
	controllerDir, err := controller.Find(filepath.Dir(o.Binary), o.Controllers)
	if err != nil {
		return err
	}
	if err := o.Folder.Create(); err != nil {
		return err
	}
	bounded, cancel := context.WithTimeoutCause(ctx, o.Timeout, fmt.Errorf("not ready after %s", o.Timeout))
	defer cancel()
	lock, err := o.Folder.WaitLock(bounded, commandLock)
	if err != nil {
		return err
	}
	err = u.up(bounded, controllerDir)
	return errors.Join(err, lock.Close())
}

func (u upper) say(format string, args ...any) {
	// A progress message that cannot be printed must not stop the start.
	_, _ = fmt.Fprintf(u.Progress, format+"\n", args...)
}

func (u upper) up(ctx context.Context, controllerDir string) error {
	running, err := u.running()
	if err != nil || running {
		return err
	}
	existed := u.Folder.Exists()
	if err := u.start(ctx, controllerDir); err != nil {
		if existed && !errors.Is(err, context.Canceled) {
			return &DataError{err}
		}
		return err
	}
	return nil
}

// DataError is returned if a sandbox does not start with the data of an earlier run, which may be damaged.
type DataError struct{ Err error }

func (e *DataError) Error() string { return e.Err.Error() }

// Unwrap returns Err.
func (e *DataError) Unwrap() error { return e.Err }

// start stops the remaining processes of an earlier run, and starts the sandbox.
func (u upper) start(ctx context.Context, controllerDir string) error {
	if err := clear(ctx, u.Folder, u.Progress); err != nil {
		return err
	}
	if err := u.prepare(controllerDir); err != nil {
		return err
	}
	u.say("► starting the sandbox in %s", u.Folder)
	begin := time.Now()
	id, err := u.spawn()
	if err != nil {
		return err
	}
	if err := u.wait(ctx, id); err != nil {
		cleanup, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		defer cancel()
		u.say("✗ the sandbox did not start; stopping its processes")
		return errors.Join(err, clear(cleanup, u.Folder, io.Discard), u.Folder.RemoveStatus())
	}
	u.say("✔ the sandbox is ready after %.1f s", time.Since(begin).Seconds())
	return nil
}

// running reports whether a healthy sandbox is already running.
func (u upper) running() (bool, error) {
	if !u.Folder.Held(supervisorLock) {
		return false, nil
	}
	status, err := u.Folder.LoadStatus()
	if err != nil {
		return false, err
	}
	if status.Phase != state.Ready {
		return false, nil
	}
	config, err := u.Folder.LoadConfig()
	if err != nil {
		return false, err
	}
	if !slices.Equal(config.Controllers, u.Controllers) {
		return false, fmt.Errorf("the sandbox in %s is running with --controllers=%s: run down first, then up again",
			u.Folder, controller.Format(config.Controllers))
	}
	u.say("✔ the sandbox in %s is already running", u.Folder)
	return true, nil
}

// prepare writes the files that the components read: ports, keys and kubeconfigs.
func (u upper) prepare(controllerDir string) error {
	config, err := u.Folder.LoadConfig()
	if err != nil {
		return err
	}
	config.Controllers, config.ControllerDir, config.Mode, config.Reachable = u.Controllers, controllerDir, u.Mode, nil
	if err := u.linkPrograms(); err != nil {
		return err
	}
	moved, err := config.ChoosePorts()
	if err != nil {
		return err
	}
	if len(moved) > 0 {
		u.say("⚠️ the ports of %s are in use by other programs: new ports were chosen", strings.Join(moved, ", "))
	}
	if err := u.Folder.SaveConfig(config); err != nil {
		return err
	}
	return access.Prepare(u.Folder, config)
}

// linkPrograms makes only git and gpg available to controllers: kustomize uses git for bases in other repositories, and
// kustomize-controller uses gpg to decrypt. Without ssh on PATH, git cannot use the keys of the user.
func (u upper) linkPrograms() error {
	for _, name := range []string{"git", "gpg"} {
		link := filepath.Join(u.Folder.Programs(), name)
		if err := remove(link); err != nil {
			return err
		}
		path, err := exec.LookPath(name)
		if err != nil || name == "git" && u.Mode.Isolated {
			continue // features that require it fail
		}
		if path, err = filepath.Abs(path); err != nil {
			return err
		}
		if err := os.Symlink(path, link); err != nil {
			return err
		}
	}
	return nil
}

// spawn starts the supervisor in a new session, so that Ctrl-C and the end of the
// terminal do not reach it.
func (u upper) spawn() (process.Identity, error) {
	var none process.Identity
	if err := u.Folder.RemoveStatus(); err != nil {
		return none, err
	}
	output, err := process.OpenLog(u.Folder.Log("supervisor"))
	if err != nil {
		return none, err
	}
	cmd := exec.Command(u.Binary, "part", "supervisor", "--dir", string(u.Folder))
	if u.Parent != nil {
		cmd.ExtraFiles = []*os.File{u.Parent} // the first one has file descriptor 3
		cmd.Args = append(cmd.Args, "--parent=3")
	}
	cmd.Dir, cmd.Stdout, cmd.Stderr = string(u.Folder), output, output
	cmd.Env = process.Environment(string(u.Folder))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if u.Mode.Isolated {
		cmd.SysProcAttr = isolation.Attributes(cmd.SysProcAttr)
	}
	err = cmd.Start()
	if err := errors.Join(err, output.Close()); err != nil {
		return none, fmt.Errorf("starting the supervisor: %w", err)
	}
	id := process.Identify(cmd.Process.Pid)
	// This program reaps the process while it runs; init does afterwards.
	go func() { _ = cmd.Wait() }()
	return id, nil
}

// wait reads the supervisor's status until the sandbox is ready, and reports each
// component that becomes ready.
func (u upper) wait(ctx context.Context, id process.Identity) error {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	shown := map[string]state.Phase{}
	for {
		alive := id.Alive()
		status, err := u.Folder.LoadStatus()
		if err != nil {
			return err
		}
		u.show(status, shown)
		switch {
		case status.Phase == state.Ready:
			return nil
		case status.Phase == state.Failed:
			return errors.New(status.Message)
		case !alive:
			return fmt.Errorf("the supervisor exited; the end of %s:\n%s",
				u.Folder.Log("supervisor"), supervisor.Tail(u.Folder.Log("supervisor"), 12))
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w", pending(status), context.Cause(ctx))
		case <-tick.C:
		}
	}
}

func (u upper) show(status state.Status, shown map[string]state.Phase) {
	for _, p := range status.Parts {
		if shown[p.Name] == p.Phase {
			continue
		}
		shown[p.Name] = p.Phase
		switch p.Phase {
		case state.Starting:
			u.say("◎ waiting for %s", p.Name)
		case state.Ready:
			u.say("✔ %s ready", p.Name)
		case state.Failed:
			u.say("✗ %s %s", p.Name, p.Message)
		}
	}
}

func pending(status state.Status) string {
	var names []string
	for _, p := range status.Parts {
		if p.Phase == state.Starting {
			names = append(names, p.Name)
		}
	}
	if len(names) == 0 {
		return "the supervisor"
	}
	return strings.Join(names, ", ")
}
