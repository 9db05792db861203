package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// Command is what to start.
type Command struct {
	Path   string
	Args   []string
	Env    []string
	Dir    string
	Output io.Writer // both streams; an *os.File is handed over without a copy
}

// Child is a process that this one started and waits for.
type Child struct {
	Identity
	done chan struct{}
	err  error
}

// Starter starts children from one thread that lives as long as the program:
// Linux sends the parent-death signal when the starting thread ends, which for
// an ordinary goroutine's thread can be long before the program does.
type Starter struct{ requests chan func() }

// NewStarter begins the thread. It ends with ctx, and with it every child on
// Linux, so ctx must outlive them.
func NewStarter(ctx context.Context) *Starter {
	s := &Starter{requests: make(chan func())}
	go func() {
		runtime.LockOSThread()
		for {
			select {
			case <-ctx.Done():
				return
			case start := <-s.requests:
				start()
			}
		}
	}()
	return s
}

// Start runs the command and returns once it is running.
func (s *Starter) Start(ctx context.Context, c Command) (*Child, error) {
	cmd := exec.Command(c.Path, c.Args...)
	cmd.Env, cmd.Dir = c.Env, c.Dir
	cmd.Stdout, cmd.Stderr = c.Output, c.Output
	cmd.SysProcAttr = childAttributes()
	// A grandchild that keeps the output open must not keep Wait from returning.
	cmd.WaitDelay = time.Second
	started := make(chan error, 1)
	select {
	case s.requests <- func() { started <- cmd.Start() }:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if err := <-started; err != nil {
		return nil, fmt.Errorf("starting %s: %w", c.Path, err)
	}
	child := &Child{Identity: Identify(cmd.Process.Pid), done: make(chan struct{})}
	go func() {
		child.err = cmd.Wait()
		close(child.done)
	}()
	return child, nil
}

// Done is closed when the child has ended.
func (c *Child) Done() <-chan struct{} { return c.done }

// Err is how the child ended; it may be asked once Done is closed.
func (c *Child) Err() error { return c.err }

// Stop asks the child to end, kills it after grace, and waits for it.
func (c *Child) Stop(grace time.Duration) {
	if c.ended() {
		return
	}
	// The signals can only fail when the child has ended already.
	_ = c.signal(syscall.SIGTERM)
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-c.done:
	case <-timer.C:
		_ = c.signal(syscall.SIGKILL)
		<-c.done
	}
}

func (c *Child) ended() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

// ExitCode is the code a child ended with, 128+n when signal n ended it.
func (c *Child) ExitCode() int {
	var exit *exec.ExitError
	if !errors.As(c.err, &exit) {
		return 0
	}
	if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return exit.ExitCode()
}

// OpenLog opens an output file for appending, private to its owner.
func OpenLog(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening log %s: %w", path, err)
	}
	return file, nil
}
